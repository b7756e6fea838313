"""Renders the operators of one plan as C, and gathers the constants and functions that they use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolchain.codegen.arrays import c_float, c_type
from toolchain.codegen.bounds import calls_at, check_call, check_moves, lines_of
from toolchain.codegen.calls import (
    NUMBER,
    OFFSET,
    POINTER,
    SIZE,
    Address,
    Body,
    Leaf,
    Node,
    PrintedCall,
    Printer,
    Word,
)
from toolchain.codegen.constants import ConstantTable, Use, role_of
from toolchain.codegen.names import Names, identifier
from toolchain.codegen.places import Places
from toolchain.ir import DType, Op, Tensor
from toolchain.memory.plan import Plan
from toolchain.ops.kernel import Array, Constant, Input, Kernel, Output, Packed, Scratch
from toolchain.ops.kernel import Call as KernelCall
from toolchain.ops.movement.input_rows import rows_of
from toolchain.ops.moves import Move, moves

_BYTES = ("int8_t", "uint8_t")
_BYTE = "value"
"""The name of an argument that is one byte."""
_OF_SCALES = re.compile(
    r"(^|_)(multiplier|shift|offset|zero_point|bias|factor|min|max|rounding|input_sum|least"
    r"|entries|value)(_\d)?$"
)
"""Names of arguments that depend on scales and zero points of tensors, and not on their shapes. One
that is not among them stays in the code, so that other values of it make another layout."""


@dataclass(frozen=True)
class Fetch:
    """The constants of a call, where it has any that are fetched: so many bytes from `offset` of
    the blob's constants, which lie `to` in the arena while it runs."""

    offset: int
    size_bytes: int
    to: int


@dataclass(frozen=True)
class RowsTaken:
    """Rows [begin, begin + rows) of an input that arrives by rows go to the byte `target` of the
    arena.
    """

    target: int
    begin: int
    rows: int


@dataclass(frozen=True)
class Call:
    """An operator that has code. `number` is its index in the graph. `rows`: set where the caller
    brings what it copies, so that it has no function of its own.
    """

    number: int
    op: Op
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    kernel: Kernel
    scratch_bytes: int
    scratch_offset: int
    copies_only: bool
    body: Body
    fetch: Fetch
    rows: RowsTaken | None = None


@dataclass(frozen=True)
class Reset:
    """The reset of a state: its address, and its initial value: the array `symbol`, or `byte` in
    every byte. Both are C expressions.
    """

    tensor: Tensor
    address: str
    symbol: str
    byte: str


def _steps(reference: Input | Output | Packed | Scratch, role: str) -> tuple[tuple[str, Leaf], ...]:
    return tuple(
        (variable, Leaf(f"{role}_step", NUMBER, str(count))) for variable, count in reference.steps
    )


class Writer:
    """Renders the operators of one plan and gathers the constants and functions that they use.

    `external`: constants, and numbers that depend on scales, lie in a blob; `fetched`: from where
    they are fetched to the arena.
    """

    def __init__(
        self, plan: Plan, name: str, *, external: bool = False, fetched: bool = False
    ) -> None:
        self.plan = plan
        self.core = plan.lowered.core
        self.name = name
        self.names = Names()
        self.places = Places(plan.arena, name)
        self.constants = ConstantTable(name, self.names, external=external)
        self.functions: set[str] = set()
        self._fetched = fetched
        self._fetch = Fetch(0, 0, 0)

    def body(self, op: Op, kernel: Kernel, owner: str) -> Body:
        """The calls of a kernel as trees. The names of its constants begin with `owner`, such as
        `op3`.
        """
        constants = {constant.key: constant for constant in kernel.constants}

        def operand(reference: Input | Output, role: str) -> Node:
            names = op.inputs if isinstance(reference, Input) else op.outputs
            name = names[reference.index] if reference.index < len(names) else ""
            if not name:
                return Word("NULL")
            return self._operand(name, reference, owner, role, kernel.constants_in)

        def packed(reference: Packed, role: str) -> Node:
            constant = constants[reference.key]
            data = self._reserved(constant)
            symbol = self._symbol(op, kernel, owner, constant)
            array_type = c_type(DType(data.dtype.name))
            element, role = reference.element or array_type, identifier(constant.key)
            steps = _steps(reference, role)
            if self.constants.external:
                const, start = not reference.writable, reference.at * data.dtype.itemsize
                return self.in_blob(symbol, role, element, const=const, at=start, steps=steps)
            leaf = Leaf(role, POINTER, symbol, array_type)
            at = Leaf(f"{role}_at", NUMBER, str(reference.at)) if reference.at else None
            cast = reference.writable or element != array_type
            const = cast and not reference.writable
            return Address(element, const, symbol=leaf, cast=cast, at=at, steps=steps)

        def scratch(reference: Scratch, role: str) -> Node:
            if not kernel.scratch_bytes:
                return Word("NULL")
            offset = self.plan.arena.scratch_offsets[op.name] + reference.at_bytes
            wide = reference.element not in ("", *_BYTES)
            steps = _steps(reference, role)
            return self._place(offset, "scratch", reference.element, wide=wide, steps=steps)

        seen: Counter[str] = Counter()

        def number(value: int, role: str) -> Node:
            if not self.constants.external or not _OF_SCALES.search(role):
                return Leaf(role, NUMBER, str(value))
            seen[role] += 1
            return self._number(value, role, (op.counted_as, kernel.functions, seen[role]))

        self.functions.update(kernel.functions)
        printer = Printer(operand, packed, scratch, number, c_float)
        calls = calls_at(op, kernel, self.plan.arena.pitches)
        return tuple(printer.printed(call) for call in calls)

    def _symbol(self, op: Op, kernel: Kernel, owner: str, constant: Constant) -> str:
        """The symbol of a constant that a kernel packs."""
        return self.constants.symbol(
            self._reserved(constant),
            identifier(f"{owner}_{constant.key}"),
            Use(constant.comment or constant.key, op.counted_as[0]),
            kernel.constants_in,
            (self._reader(op), constant.key, kernel.functions),
        )

    def _operand(
        self, name: str, reference: Input | Output, owner: str, role: str, bank: str
    ) -> Node:
        tensor = self.plan.graph.tensors[name]
        element = reference.element or c_type(tensor.dtype)
        steps = _steps(reference, role)
        if tensor.is_constant:
            array_type = c_type(tensor.dtype)
            symbol_of = self.constants.symbol_of(tensor, owner, bank, self._fetch_of)
            if self.constants.external:
                start = reference.at * tensor.dtype.size_bytes
                return self.in_blob(symbol_of, role_of(tensor), element, at=start, steps=steps)
            symbol = Leaf(role_of(tensor), POINTER, symbol_of, array_type)
            at = Leaf(f"{role}_at", NUMBER, str(reference.at)) if reference.at else None
            cast = element != array_type
            return Address(element, True, symbol=symbol, cast=cast, at=at, steps=steps)
        offset = self.plan.arena.offsets[name] + reference.at * tensor.dtype.size_bytes
        const, wide = isinstance(reference, Input), tensor.dtype.size_bytes > 1
        return self._place(offset, role, element, const=const, wide=wide, steps=steps)

    def _place(
        self,
        offset: int,
        role: str,
        element: str,
        *,
        const: bool = False,
        wide: bool = False,
        steps: tuple[tuple[str, Leaf], ...] = (),
    ) -> Address:
        """A pointer to the byte at this offset of the arena. One to a `wide` type goes through
        void *: see the alignment."""
        base, start = self.places.split(offset)
        leaf = Leaf(role, OFFSET, str(start))
        return Address(element, const, base=base, offset=leaf, wide=wide, steps=steps)

    def in_blob(
        self,
        symbol: str,
        role: str,
        element: str,
        *,
        const: bool = True,
        at: int = 0,
        steps: tuple[tuple[str, Leaf], ...] = (),
    ) -> Address:
        """A pointer to the byte `at` of a constant in the blob; `element` '' for memcpy."""
        offset, base = self.constants[symbol].offset + at, self.blob
        if self._fetched:
            offset, base = offset - self._fetch.offset + self._fetch.to, "arena"
        leaf = Leaf(role, OFFSET, str(offset), symbol=symbol)
        wide = not const or element not in _BYTES
        return Address(
            element, const, base=base, offset=leaf, wide=wide, plain=not element, steps=steps
        )

    @property
    def _fetch_of(self) -> Hashable:
        """A key that keeps constants fetched for one call apart from those of another."""
        return self._fetch.offset if self._fetched else ()

    def _reader(self, op: Op) -> Hashable:
        return op.name if self._fetched else op.counted_as

    def value(self, tensor: Tensor) -> str:
        """The C expression of a constant that is an output."""
        symbol = self.constants.symbol_of(tensor, "graph")
        if not self.constants.external:
            return symbol
        at = f"{self.blob} + {self.constants[symbol].offset}"
        return f"(const {c_type(tensor.dtype)} *)(const void *)({at})"

    @property
    def blob(self) -> str:
        """The C expression of the first constant in the blob."""
        return f"{self.name}_weights"

    def _number(self, value: int, role: str, source: Hashable) -> Word:
        """A number that the blob holds."""
        index = self.constants.number(value, (role, source))
        cast = "(uint8_t)" if role == _BYTE else ""
        return Word(f"{cast}{self.name}_number({index})", varies=True)

    def _reserved(self, constant: Constant) -> Array:
        """The data; in a blob with room for the longest table of this kind."""
        data = constant.data
        more = constant.most - data.size
        return np.pad(data, (0, more)) if self.constants.external and more > 0 else data

    def copies(self, wanted: Sequence[Move], owner: str) -> Body:
        """The copies of an operator that only copies."""
        return tuple(
            PrintedCall(
                "memmove" if self.overlap(move) else "memcpy",
                "call",
                (
                    ("target", self._bytes(move.target, move.target_offset, owner, "target")),
                    ("source", self._bytes(move.source, move.source_offset, owner, "source")),
                    ("size_bytes", Leaf("size_bytes", SIZE, str(move.size_bytes))),
                ),
            )
            for move in wanted
        )

    def _bytes(self, name: str, offset: int, owner: str, role: str) -> Node:
        """The byte `offset` of a tensor, for memcpy."""
        tensor = self.plan.graph.tensors[name]
        if not tensor.is_constant:
            base, start = self.places.split(self.plan.arena.offsets[name] + offset)
            return Address("", False, base=base, offset=Leaf(role, OFFSET, str(start)), plain=True)
        array_type = c_type(tensor.dtype)
        if self.constants.external:
            symbol_of = self.constants.symbol_of(tensor, owner, source=self._fetch_of)
            return self.in_blob(symbol_of, role_of(tensor), "", at=offset)
        symbol = Leaf(role_of(tensor), POINTER, self.constants.symbol_of(tensor, owner), array_type)
        at = Leaf(f"{role}_at", NUMBER, str(offset)) if offset else None
        return Address("uint8_t", True, symbol=symbol, cast=bool(offset), at=at)

    def overlap(self, move: Move) -> bool:
        """Whether source and destination of a copy share bytes of the arena."""
        offsets = self.plan.arena.offsets
        if move.source not in offsets or move.target not in offsets:
            return False
        source = offsets[move.source] + move.source_offset
        target = offsets[move.target] + move.target_offset
        return abs(source - target) < move.size_bytes

    def call(self, number: int, owner: str, wanted: tuple[Move, ...] | None) -> Call:
        """The code of operator `number`. If it only copies, `wanted` are its copies.

        Raises UnsupportedError if a call would touch bytes beyond its operands.
        """
        graph, arena = self.plan.graph, self.plan.arena
        op = graph.ops[number]
        kernel = self.plan.lowered.kernels[number]
        if wanted is None:
            check_call(op, graph, kernel, arena.pitches)
        else:
            check_moves(op, graph, wanted)
        begin = self.constants.end_bytes
        self._fetch = Fetch(begin, 0, arena.fetch_offsets.get(op.name, 0))
        rows = self._rows_taken(op)
        if rows is not None:
            self.functions.update(kernel.functions)
            body: Body = ()
        elif wanted is None:
            body = self.body(op, kernel, owner)
        else:
            body = self.copies(wanted, owner)
        fetch = replace(self._fetch, size_bytes=self.constants.end_bytes - begin)
        return Call(
            number=number,
            op=op,
            inputs=tuple(graph.tensors[n] for n in op.present_inputs()),
            outputs=tuple(graph.tensors[n] for n in op.outputs),
            kernel=kernel,
            scratch_bytes=kernel.scratch_bytes if wanted is None else 0,
            scratch_offset=arena.scratch_offsets.get(op.name, 0),
            copies_only=wanted is not None,
            body=body,
            fetch=fetch,
            rows=rows,
        )

    def _rows_taken(self, op: Op) -> RowsTaken | None:
        pushed = self.plan.graph.pushed
        if pushed is None or pushed.input not in op.inputs:
            return None
        taken = rows_of(op)
        return RowsTaken(self.plan.arena.offsets[op.outputs[0]], taken.begin, taken.rows)

    def calls(self) -> tuple[tuple[Call, ...], ...]:
        """The calls of each operator that has code, in the order of the schedule.

        The blocks of one operator come together. A view has no code.
        """
        graph, arena = self.plan.graph, self.plan.arena
        index: dict[tuple[str, str], int] = {}
        by_operator: list[list[Call]] = []
        for number in self.plan.schedule.order:
            op = graph.ops[number]
            wanted = moves(op, graph, arena)
            if wanted != ():
                operator = index.setdefault(op.counted_as, len(by_operator))
                by_operator += [[]] if operator == len(by_operator) else []
                by_operator[operator].append(self.call(number, f"op{operator}", wanted))
        return tuple(map(tuple, by_operator))

    def gather(self) -> None:
        """The constants that `calls` gathers, without the calls. A kernel is checked once.

        Raises UnsupportedError if a call would touch bytes beyond its operands.
        """
        graph, arena = self.plan.graph, self.plan.arena
        for number in self.plan.schedule.order:
            op, kernel = graph.ops[number], self.plan.lowered.kernels[number]
            wanted = moves(op, graph, arena)
            if wanted is not None:
                check_moves(op, graph, wanted)
                self.copies(wanted, "")
                continue
            lines = lines_of(op, arena.pitches)
            if lines not in kernel.checked:
                check_call(op, graph, kernel, arena.pitches)
                kernel.checked.add(lines)
            if self._rows_taken(op) is None:
                self._gather(op, kernel, kernel.calls_at(*lines))

    def _gather(self, op: Op, kernel: Kernel, calls: Sequence[KernelCall]) -> None:
        packed = {constant.key: constant for constant in kernel.constants}
        for reference in (one for call in calls for one in call.references):
            if isinstance(reference, Packed):
                self._symbol(op, kernel, "", packed[reference.key])
            elif reference.index < len(op.inputs) and (name := op.inputs[reference.index]):
                tensor = self.plan.graph.tensors[name]
                if tensor.is_constant:
                    self.constants.symbol_of(tensor, "", kernel.constants_in, self._fetch_of)

    def resets(self) -> tuple[Reset, ...]:
        """The reset of each state to its initial value."""
        made = []
        for number, state in enumerate(self.plan.graph.states):
            tensor = self.plan.graph.tensors[state.input]
            data = np.frombuffer(state.initial.tobytes(), np.uint8)
            uniform = bool((data == data[0]).all()) and not self.constants.external
            symbol = (
                ""
                if uniform
                else self.constants.symbol(
                    state.initial,
                    f"state{number}",
                    Use("initial value", tensor.name),
                    source=("state", number),
                )
            )
            if self.constants.external:
                symbol = f"{self.blob} + {self.constants[symbol].offset}"
            address = self.places.address(self.plan.arena.offsets[state.input])
            made.append(Reset(tensor, address, symbol, str(data[0])))
        return tuple(made)
