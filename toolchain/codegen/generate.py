"""Plan to C: one header, one source file and one file of weights for a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np

from toolchain import cmsis_nn
from toolchain.boards import Core
from toolchain.c_sources import CTree, source_closure
from toolchain.codegen.arrays import c_type
from toolchain.codegen.constants import ConstantTable
from toolchain.codegen.environment import environment
from toolchain.codegen.header import accessors
from toolchain.codegen.layout import wrap
from toolchain.codegen.memory_map import memory_map
from toolchain.codegen.names import Names, identifier, model_identifier
from toolchain.codegen.places import Places
from toolchain.codegen.views import Move, moves
from toolchain.ir import Op, Plan, Sources, Tensor
from toolchain.ops import spec_of
from toolchain.ops.spec import Lowering
from toolchain.resources import RUNTIME_C

STATIC_ALIGNMENT_BYTES = 8
"""That of uint64_t, which the static arena shares a union with."""
_INT_BYTES = 4
_STRING_FUNCTIONS = ("memcpy(", "memmove(", "memset(")


def runtime_tree() -> CTree:
    """Our own kernels."""
    return CTree(RUNTIME_C / "source", RUNTIME_C / "include")


@dataclass(frozen=True)
class Operand:
    """A tensor as templates see it: `ptr` is a C expression for its first element.

    `offset` is where it lies in the arena, in bytes; None for a constant.
    """

    tensor: Tensor
    offset: int | None
    pointer: str
    owner: str
    constants: ConstantTable

    @property
    def ptr(self) -> str:
        if self.tensor.is_constant:
            return self.constants.symbol_of(self.tensor, self.owner)
        return self.pointer


class Operands(list[Operand | None]):
    """An operator's inputs or outputs; None for an absent one, and for any beyond the last."""

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(index) if index < len(self) else None


@dataclass(frozen=True)
class Call:
    """One function of the generated file: `index` counts calls, `number` is that in the graph."""

    index: int
    number: int
    function: str
    op: Op
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    scratch_bytes: int
    scratch_offset: int
    copies_only: bool
    body: str


@dataclass(frozen=True)
class Reset:
    """A state's place and its initial value: the array `symbol`, or `byte` throughout."""

    tensor: Tensor
    address: str
    symbol: str
    byte: int


class _Writer:
    """Renders the operators of one plan and gathers the constants and functions they use."""

    def __init__(self, plan: Plan, core: Core, name: str) -> None:
        self.plan = plan
        self.core = core
        self.name = name
        self.names = Names()
        self.places = Places(plan.arena, name)
        self.constants = ConstantTable(name, self.names)
        self.functions: set[str] = set()

    def pointer(self, tensor: Tensor, writable: bool) -> str:
        """`(const int8_t *)(arena + 96)`. A wider type goes through void *: see the alignment."""
        if tensor.is_constant:
            return ""
        element = c_type(tensor.dtype)
        const = "" if writable else "const "
        address = f"({self.places.address(self.plan.arena.offsets[tensor.name])})"
        through = f"({const}void *)" if tensor.dtype.size_bytes > 1 else ""
        return f"({const}{element} *){through}{address}"

    def operand(self, name: str, owner: str, writable: bool = False) -> Operand | None:
        if not name:
            return None
        tensor = self.plan.graph.tensors[name]
        offset = None if tensor.is_constant else self.plan.arena.offsets[name]
        return Operand(tensor, offset, self.pointer(tensor, writable), owner, self.constants)

    def scratch(self, op: Op, lowering: Lowering) -> str:
        if not lowering.scratch_bytes:
            return "NULL"
        return f"(void *)({self.places.address(self.plan.arena.scratch_offsets[op.name])})"

    def address(self, name: str, offset: int, owner: str) -> str:
        """The byte `offset` of a tensor, for memcpy."""
        tensor = self.plan.graph.tensors[name]
        if not tensor.is_constant:
            return self.places.address(self.plan.arena.offsets[name] + offset)
        symbol = self.constants.symbol_of(tensor, owner)
        return f"(const uint8_t *){symbol} + {offset}" if offset else symbol

    def kernel(self, op: Op, lowering: Lowering, owner: str) -> str:
        names = [identifier(f"{owner}_{c.key}") for c in lowering.constants]
        symbols = {
            c.key: self.constants.symbol(c.data, name, f"{c.comment or c.key}, for {op.name}")
            for c, name in zip(lowering.constants, names, strict=True)
        }
        self.functions.update(lowering.functions)
        return (
            environment()
            .get_template(f"ops/{op.kind}.c.j2")
            .render(
                op=op,
                graph=self.plan.graph,
                inputs=Operands(self.operand(n, owner) for n in op.inputs),
                outputs=Operands(self.operand(n, owner, writable=True) for n in op.outputs),
                scratch=self.scratch(op, lowering),
                fields=SimpleNamespace(**lowering.fields),
                constants=SimpleNamespace(**symbols),
                core=self.core,
            )
        )

    def copies(self, wanted: Sequence[Move], owner: str) -> str:
        rows = [
            {
                "function": "memmove" if self.overlap(move) else "memcpy",
                "source": self.address(move.source, move.source_offset, owner),
                "target": self.address(move.target, move.target_offset, owner),
                "size_bytes": move.size_bytes,
            }
            for move in wanted
        ]
        return environment().get_template("copy.c.j2").render(copies=rows)

    def overlap(self, move: Move) -> bool:
        """Whether the two ends of a copy share bytes of the arena."""
        offsets = self.plan.arena.offsets
        if move.source not in offsets or move.target not in offsets:
            return False
        source = offsets[move.source] + move.source_offset
        target = offsets[move.target] + move.target_offset
        return abs(source - target) < move.size_bytes

    def call(self, index: int, number: int) -> Call | None:
        """The function for operator `number`; None for a pure view."""
        graph, arena = self.plan.graph, self.plan.arena
        op = graph.ops[number]
        lowering = spec_of(op.kind).lower(op, graph, self.core)
        wanted = moves(op, graph, arena)
        if wanted == ():
            return None
        owner = f"op{index}"
        body = self.kernel(op, lowering, owner) if wanted is None else self.copies(wanted, owner)
        return Call(
            index=index,
            number=number,
            function=f"{self.name}_{owner}_{op.kind}",
            op=op,
            inputs=tuple(graph.tensors[n] for n in op.present_inputs()),
            outputs=tuple(graph.tensors[n] for n in op.outputs),
            scratch_bytes=lowering.scratch_bytes if wanted is None else 0,
            scratch_offset=arena.scratch_offsets.get(op.name, 0),
            copies_only=wanted is not None,
            body=wrap(indent(body.strip("\n"), "    ")),
        )

    def resets(self) -> tuple[Reset, ...]:
        """What gives each state its initial value."""
        found = []
        for number, state in enumerate(self.plan.graph.states):
            tensor = self.plan.graph.tensors[state.input]
            data = np.frombuffer(state.initial.tobytes(), np.uint8)
            uniform = bool((data == data[0]).all())
            symbol = (
                ""
                if uniform
                else self.constants.symbol(
                    state.initial, f"state{number}", f"initial value of {tensor.name}"
                )
            )
            address = self.places.address(self.plan.arena.offsets[state.input])
            found.append(Reset(tensor, address, symbol, int(data[0])))
        return tuple(found)

    def calls(self) -> tuple[Call, ...]:
        found: list[Call] = []
        for number in self.plan.schedule.order:
            call = self.call(len(found), number)
            if call is not None:
                found.append(call)
        return tuple(found)


def generate(plan: Plan, core: Core, cmsis_nn_folder: Path, *, name: str = "") -> Sources:
    """C99 for `plan`: `<name>.h`, `<name>.c`, `<name>_weights.h`, and what to link with them.

    `name` (default: the graph's) becomes the prefix of every symbol, made a C identifier. The text
    depends on nothing but the arguments. Raises UnsupportedError where an operator has no kernel,
    MissingToolError where a kernel's source is not found.
    """
    if plan.core != core.name:
        raise ValueError(f"the plan is for core {plan.core}, not {core.name}")
    if plan.arena.alignment_bytes > STATIC_ALIGNMENT_BYTES:
        raise ValueError(f"C99 cannot align a static arena to {plan.arena.alignment_bytes} bytes")
    prefix = model_identifier(name or plan.graph.name)
    writer = _Writer(plan, core, prefix)
    calls = writer.calls()
    steps = {op: step for step, op in enumerate(plan.schedule.order)}
    resets = writer.resets()
    inputs, outputs = accessors(plan, writer.constants, writer.places)
    trees = (cmsis_nn.tree(cmsis_nn_folder), runtime_tree())
    closure = source_closure(writer.functions, trees)
    values: Mapping[str, object] = {
        "name": prefix,
        "NAME": prefix.upper(),
        "plan": plan,
        "graph": plan.graph,
        "places": writer.places,
        "calls": calls,
        "inputs": inputs,
        "outputs": outputs,
        "constants": writer.constants.arrays,
        "weight_bytes": writer.constants.size_bytes,
        "arena_bytes": max(plan.arena.size_bytes, 1),
        "alignment_bytes": max(plan.arena.alignment_bytes, _INT_BYTES),
        "memory_map": memory_map(plan, [steps[call.number] for call in calls]),
        "kernel_headers": closure.headers,
        "resets": resets,
        "uses_string": bool(resets)
        or any(f in call.body for call in calls for f in _STRING_FUNCTIONS),
    }
    files = {
        f"{prefix}{suffix}": environment().get_template(f"{template}.j2").render(values)
        for suffix, template in (
            (".h", "model.h"),
            (".c", "model.c"),
            ("_weights.h", "model_weights.h"),
        )
        if suffix != "_weights.h" or writer.constants.arrays
    }
    return Sources(
        name=prefix,
        files=MappingProxyType(files),
        cmsis_nn=_below(closure.files, cmsis_nn_folder),
        runtime=_below(closure.files, RUNTIME_C),
        calls=tuple(call.number for call in calls),
        inputs=tuple(end.identifier for end in inputs),
        outputs=tuple(end.identifier for end in outputs),
        weight_bytes=writer.constants.size_bytes,
        stateful=bool(plan.graph.states),
        parts=plan.arena.parts,
    )


def _below(files: Iterable[Path], folder: Path) -> tuple[str, ...]:
    return tuple(p.relative_to(folder).as_posix() for p in files if p.is_relative_to(folder))
