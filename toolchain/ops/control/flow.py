"""The calls of nested graphs as calls of the operator that holds them.

A nested operator's pointers become the operator's own: to its operands, to its scratch, where the
nested arena lies, or to constants. Between them stand calls whose templates (`if`, `else`, `loop`,
`break`, `end`) open and close blocks of C.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from toolchain.ops import kit
from toolchain.ops.control.body import Body, hollow, laid_out
from toolchain.ops.moves import Move, moves

Place: TypeAlias = kit.Input | kit.Output | kit.Packed | kit.Scratch
"""Where the first element of a tensor lies, as the operator that holds the graph sees it."""
_BYTE = "uint8_t"


@dataclass(frozen=True)
class Entered:
    """A nested graph whose calls are part of the flow: where its tensors lie."""

    graph: kit.Graph
    places: Mapping[str, Place]

    def result(self, index: int) -> tuple[kit.Tensor, Place]:
        name = self.graph.outputs[index]
        return self.graph.tensors[name], self.places[name]


class Flow:
    """The calls of one operator so far, and what they need."""

    def __init__(self, op: kit.AnyOperator, core: kit.Core) -> None:
        self._op, self._core = op, core
        self._calls: list[kit.Call] = []
        self._constants: list[kit.Constant] = []
        self._nested: list[kit.Nested] = []
        self._at_words: set[str] = set()
        self._scratch_bytes = 0
        self._touched: list[tuple[Place, kit.Extent]] = []
        self._largest = 0

    def mark(self, template: str, flag: Place | None = None) -> None:
        """Open or close a block of C; `flag` is the bool on which that depends."""
        arguments: dict[str, kit.Argument] = {}
        if flag is not None:
            arguments["flag"] = replace(flag, element=_BYTE)
            self._touched.append((flag, kit.Extent(0, 1)))
        self._calls.append(kit.Call(template, arguments, template=template, defined=False))

    def copy(self, source: Place, target: Place, size_bytes: int, *, within: bool = False) -> None:
        """Copy bytes. `within`: both may be the same place."""
        self._touched += [(source, kit.Extent(0, size_bytes)), (target, kit.Extent(0, size_bytes))]
        arguments: dict[str, kit.Argument] = {
            "target": replace(target, element=_BYTE),
            "source": replace(source, element=_BYTE),
            "size_bytes": size_bytes,
        }
        function = "memmove" if within else "memcpy"
        self._calls.append(kit.Call(function, arguments, defined=False))

    def enter(
        self,
        body: Body,
        role: str,
        given: Sequence[kit.Input | kit.Output],
        results: Sequence[kit.Output] = (),
    ) -> Entered:
        """Add the calls of a nested graph, whose inputs are `given`, and whose outputs are
        `results` if they lie outside of it.
        """
        lowered, layout = laid_out(body, self._core)
        graph, arena = lowered.graph, layout.arena
        places: dict[str, Place] = dict(zip(graph.inputs, given, strict=True))
        if body.results_outside:
            places |= dict(zip(graph.outputs, results, strict=True))
        hollowed = hollow(body, graph)
        for name, tensor in graph.tensors.items():
            if tensor.constant is not None:
                key = f"{role}_constant{len(self._constants)}"
                self._constants.append(kit.constant(key, tensor.constant, name))
                places[name] = kit.Packed(key)
            elif name in arena.offsets:
                places[name] = kit.Scratch(arena.offsets[name], tensor.dtype.c_type)
        called, copied = [], []
        for number in layout.order:
            op, kernel = graph.ops[number], lowered.kernels[number]
            wanted = moves(op, hollowed, arena)
            if wanted is None:
                called.append(number)
                scratch = kit.Scratch(arena.scratch_offsets.get(op.name, 0))
                self._add(_Step(op, graph, kernel, places, scratch, f"{role}{number}"), role)
                continue
            for move in wanted:
                copied.append(move.size_bytes)
                self._move(move, graph, places)
        kernels = lowered.kernels
        self._nested.append(kit.Nested(graph, kernels, tuple(called), tuple(copied)))
        self._scratch_bytes = max(self._scratch_bytes, arena.size_bytes)
        self._keep_words(kernels, places)
        return Entered(graph, places)

    def kernel(
        self, overlaps: tuple[kit.SafeOverlap, ...] = (), *, one_of: bool = False
    ) -> kit.Kernel:
        """All of it. Constants that no call points to are left out."""
        touched = tuple(self._touched)
        used = {place.key for place, _ in touched if isinstance(place, kit.Packed)}
        return kit.Kernel(
            tuple(self._calls),
            lambda _: _extents(touched, self._largest),
            constants=tuple(one for one in self._constants if one.key in used),
            scratch_bytes=self._scratch_bytes,
            at_words=frozenset(self._at_words),
            find_overlaps=lambda: overlaps,
            nested=tuple(self._nested),
            one_of=one_of,
            label=f"{self._op.kind}",
        )

    def _add(self, step: _Step, role: str) -> None:
        kernel = step.kernel
        self._constants += [
            replace(constant, key=step.key(constant.key)) for constant in kernel.constants
        ]
        for number, call in enumerate(kernel.calls):
            note = call.note if number else f"{role}: {step.op.kind}"
            moved = {name: step.moved(value) for name, value in call.arguments.items()}
            self._calls.append(replace(call, arguments=moved, note=note))
        extents = step.extents()
        self._largest = max(self._largest, extents.largest)
        self._touched += [
            (step.place(step.op.inputs[index]), extent) for index, extent in extents.inputs.items()
        ]
        self._touched += [
            (step.place(step.op.outputs[index]), extent)
            for index, extent in extents.outputs.items()
        ]
        self._touched += [
            (kit.Packed(step.key(key)), kit.Extent(0, size))
            for key, size in extents.constants.items()
        ]
        self._touched.append((step.scratch, kit.Extent(0, extents.scratch)))

    def _move(self, move: Move, graph: kit.Graph, places: Mapping[str, Place]) -> None:
        source = _shifted(places[move.source], graph.tensors[move.source], move.source_offset)
        target = _shifted(places[move.target], graph.tensors[move.target], move.target_offset)
        self.copy(source, target, move.size_bytes, within=True)

    def _keep_words(self, kernels: Sequence[kit.Kernel], places: Mapping[str, Place]) -> None:
        for name in {name for kernel in kernels for name in kernel.at_words}:
            place = places.get(name)
            if isinstance(place, kit.Input):
                self._at_words.add(self._op.input(place.index).name)
            elif isinstance(place, kit.Output):
                self._at_words.add(self._op.output(place.index).name)


@dataclass(frozen=True)
class _Step:
    """One operator of a nested graph, whose scratch begins at `scratch`."""

    op: kit.Op
    graph: kit.Graph
    kernel: kit.Kernel
    places: Mapping[str, Place]
    scratch: kit.Scratch
    owner: str

    def key(self, own: str) -> str:
        """The name of one of its constants among those of the whole operator."""
        return f"{self.owner}_{own}"

    def place(self, name: str) -> Place:
        return self.places[name]

    def extents(self) -> kit.Extents:
        constants = {one.key: one.data for one in self.kernel.constants}
        inputs = tuple(self._pointer(name) if name else None for name in self.op.inputs)
        outputs = tuple(map(self._pointer, self.op.outputs))
        return self.kernel.extents(kit.Touched(self.kernel.calls, constants, inputs, outputs))

    def _pointer(self, name: str) -> kit.Pointer:
        return kit.Pointer(self.graph.tensors[name].dtype.size_bytes)

    def moved(self, value: kit.Argument) -> kit.Argument:
        """An argument of one of its calls as an argument of the whole operator's."""
        match value:
            case kit.Input() | kit.Output():
                return self._operand(value)
            case kit.Packed():
                return replace(value, key=self.key(value.key))
            case kit.Scratch():
                if not self.kernel.scratch_bytes:
                    return kit.NULL
                return replace(value, at_bytes=self.scratch.at_bytes + value.at_bytes)
            case kit.Struct():
                return replace(value, members={n: self.moved(v) for n, v in value.members.items()})
            case kit.Row() | kit.Items():
                return replace(value, values=tuple(map(self.moved, value.values)))
            case _:
                return value

    def _operand(self, value: kit.Input | kit.Output) -> Place | kit.Symbol:
        names = self.op.inputs if isinstance(value, kit.Input) else self.op.outputs
        name = names[value.index] if value.index < len(names) else ""
        if not name:
            return kit.NULL
        tensor, place = self.graph.tensors[name], self.places[name]
        element = value.element or tensor.dtype.c_type
        if isinstance(place, kit.Scratch):
            at = place.at_bytes + value.at * tensor.dtype.size_bytes
            return kit.Scratch(at, element, value.steps)
        return replace(place, at=place.at + value.at, steps=value.steps, element=element)


def _shifted(place: Place, tensor: kit.Tensor, offset_bytes: int) -> Place:
    """The place so many bytes behind a tensor's first."""
    if isinstance(place, kit.Scratch):
        return replace(place, at_bytes=place.at_bytes + offset_bytes)
    return replace(place, at=place.at + offset_bytes // tensor.dtype.size_bytes)


def _extents(touched: Sequence[tuple[Place, kit.Extent]], largest: int) -> kit.Extents:
    """The bytes that all calls touch. An output is written as a whole by the last copy to it."""
    inputs: dict[int, kit.Extent] = {}
    outputs: dict[int, kit.Extent] = {}
    constants: dict[str, int] = {}
    scratch = 0
    for place, extent in touched:
        match place:
            case kit.Input():
                old = inputs.get(place.index, extent)
                begin, end = min(old.begin, extent.begin), max(old.last, extent.last)
                inputs[place.index] = kit.Extent(begin, end)
            case kit.Output():
                end = max(extent.last, outputs.get(place.index, extent).last)
                outputs[place.index] = kit.Extent(0, end)
            case kit.Packed():
                constants[place.key] = max(constants.get(place.key, 0), extent.last)
            case kit.Scratch():
                scratch = max(scratch, place.at_bytes + extent.last)
    return kit.Extents(inputs, outputs, constants, scratch, largest)
