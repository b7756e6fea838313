"""A partition scheme, and the finer graph that it makes of a graph."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Serial, Tensor
from toolchain.ir.names import GraphNames
from toolchain.ops.movement.block_concat import BlockConcat
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.slice import Slice
from toolchain.ops.spec import Part
from toolchain.partition.program import (
    BlockProgram,
    Heights,
    Home,
    Mode,
    Step,
    Window,
    block_program,
)
from toolchain.partition.region import Region, region

Run = tuple[int, int]
"""Half-open [begin, end) along a tensor's split axis."""
_WINDOW = "window"


@dataclass(frozen=True)
class Scheme:
    """MOTES's (S, A, V_I, V_O, n): `ops` (S) by name, split into `count` (n) blocks.

    The axes A, the slices V_I and the concats V_O follow from the axis connecting graph and from
    `seed`: a tensor that the operators make or read, and its axis to split. `slack`: how many
    blocks a sliding window advances in its buffer before its contents move back to the front; the
    buffer has room for that many. `grains`: of `Mode.LINES`, of the indices of each operator, in
    the order of `ops`. Example: `Scheme(("conv1", "conv2"), ("y", 1), 4)` splits both
    operators into four bands of rows of `y`.
    """

    ops: tuple[str, ...]
    seed: tuple[str, int]
    count: int
    mode: Mode = Mode.SLIDING
    slack: int = 1
    grains: tuple[int, ...] = ()
    heights: Heights = ()


def _program(graph: Graph, scheme: Scheme, ops: Sequence[int]) -> BlockProgram:
    """The program of a scheme. `ops`: its operators. Raises CannotSplitError if it is invalid for
    this graph.
    """
    whole = region(graph, ops, scheme.seed)
    grains = dict(zip(scheme.ops, scheme.grains, strict=False))
    each = [grains.get(whole.op(op).name, 1) for op in whole.ops]
    return block_program(whole, scheme.count, scheme.mode, scheme.slack, each, scheme.heights)


def split(graph: Graph, scheme: Scheme) -> Graph:
    """The graph, computing the same function, with the scheme's operators split into blocks;
    everything else keeps its name.

    Operators come in the order in which the blocks are meant to run. Raises CannotSplitError.
    """
    return split_all(graph, [scheme])


def split_all(graph: Graph, schemes: Iterable[Scheme]) -> Graph:
    """Apply `split` for each scheme in turn; their operators must not overlap."""
    known, waiting = _Known(GraphNames.of(graph)), list(schemes)
    while waiting:
        each = list(_together(graph, waiting))
        graph = _applied(graph, list(zip(waiting, each, strict=False)), known)
        waiting = waiting[len(each) :]
    return graph


def _together(graph: Graph, schemes: Sequence[Scheme]) -> Iterator[list[int]]:
    """The operators of the first of some schemes, by index, as long as each scheme splits operators
    of this graph, and none of another one's lies between its first and its last.

    Applied in turn, they give the graph that they give at once: each puts its blocks in the place
    of its own run of operators, and what it reads of the rest of the graph none of the others
    changes: whether an operator outside reads or writes a tensor, and what that is part of.
    """
    place = {op.name: index for index, op in enumerate(graph.ops)}
    runs: list[Run] = []
    for scheme in schemes:
        ops = sorted(place[name] for name in scheme.ops if name in place)
        begin, end = (ops[0], ops[-1] + 1) if ops else (0, len(graph.ops))
        at = bisect_left(runs, (begin, end))
        apart = (not at or runs[at - 1][1] <= begin) and (at == len(runs) or end <= runs[at][0])
        if runs and not (apart and len(ops) == len(scheme.ops)):
            return
        runs.insert(at, (begin, end))
        yield ops


def _applied(graph: Graph, schemes: Sequence[tuple[Scheme, list[int]]], known: _Known) -> Graph:
    """The graph, split by schemes that go together; each with its operators."""
    tensors = dict(graph.tensors)
    runs = []
    for scheme, ops in schemes:
        splitter = _Splitter(_program(graph, scheme, ops), known, tensors)
        runs.append((ops[0], ops[-1] + 1, splitter.run()))
    made, end = [], 0
    for begin, stop, run in sorted(runs, key=lambda run: run[0]):
        made += [*graph.ops[end:begin], *run]
        end = stop
    return graph.with_ops([*made, *graph.ops[end:]], tensors.values())


@dataclass(frozen=True)
class _Known:
    """Names that the splits of one graph share, so that they agree.

    parts   of constants: the tensor, the axis and the run of each, and its name.
    owners  of tensors that no operator writes: what their blocks are `part_of`, which is the name
            of no operator.
    """

    names: GraphNames
    parts: dict[tuple[str, int, Run], str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)

    def part(self, tensor: str, axis: int, run: Run) -> str:
        """The name of this part of a constant."""
        key = tensor, axis, run
        if key not in self.parts:
            wished = f"{tensor}[{axis}:{run[0]}:{run[1]}]"
            self.parts[key] = self.names.tensors.fresh(wished)
        return self.parts[key]

    def owner(self, tensor: str) -> str:
        """The name for `part_of` in blocks of a tensor that no operator writes."""
        if tensor not in self.owners:
            self.owners[tensor] = self.names.ops.fresh(tensor)
        return self.owners[tensor]


@dataclass(frozen=True)
class _Held:
    """A tensor of the finer graph that holds the run `run` of a tensor of the coarse one."""

    name: str
    run: Run


class _Splitter:
    """Builds the operators of one region, block by block, as its program says."""

    def __init__(self, program: BlockProgram, known: _Known, tensors: dict[str, Tensor]) -> None:
        """`tensors`: of the coarse graph, to which those of the blocks are added."""
        self.program = program
        self.known = known
        self.region: Region = program.region
        self.coarse = program.region.graph
        self.ops: list[Op] = []
        self.tensors = tensors
        self.held: dict[str, _Held] = {}
        self.slices: dict[tuple[str, int, Run], str] = {}
        self.parts: dict[str, list[_Held]] = {name: [] for name in self.region.joined}
        self.sums: dict[str, str] = {}

    def run(self) -> list[Op]:
        """The operators that take the place of those from the region's first to its last."""
        program = self.program
        for k in range(int(program.counts[0])):
            for at, (step, window) in enumerate(zip(program.steps, program.windows, strict=True)):
                if not step.computed[k]:
                    continue
                if step.op in self.region.reductions:
                    self._sum(k, step)
                else:
                    self._block(k, step, window)
                for name in dict.fromkeys(self.region.op(step.op).present_inputs()):
                    read = program.place.get(name)
                    if read is not None and program.windows[read].reader[k] == at:
                        self._shrink(k, program.steps[read], program.windows[read])
        for name, parts in self.parts.items():
            axis = self.region.axis_of(name)
            names = tuple(part.name for part in parts)
            self._emit("concat", f"{name} (blocks)", names, name, Concat(axis), name)
        for index, reduction in self.region.reductions.items():
            whole = self.region.op(index)
            (name,), kind = whole.outputs, "requantise_sums"
            ending, owner = reduction.ending(), self._owner(name)
            self.ops.append(Op(kind, whole.name, (self.sums[name],), (name,), ending, owner))
        before, after = self._around()
        return [*before, *self.ops, *after]

    def _around(self) -> tuple[list[Op], list[Op]]:
        """The operators outside, between its first and its last: those that depend on the region
        come after it.
        """
        dependent = set(self.region.ops)
        before: list[Op] = []
        after: list[Op] = []
        for index in range(self.region.ops[0], self.region.ops[-1] + 1):
            if index in self.region.axes or index in self.region.reductions:
                continue
            depends = any(p in dependent for p in self.coarse.predecessors[index])
            (after if depends else before).append(self.coarse.ops[index])
            if depends:
                dependent.add(index)
        return before, after

    def _block(self, k: int, step: Step, window: Window) -> None:
        """Block k of one operator, and the window of its output that stays for later."""
        op, run = self.region.op(step.op), (int(step.begin[k]), int(step.end[k]))
        name, (before, after) = op.outputs[0], step.beyond
        part = Part(run[1] - run[0], int(before[k]), int(after[k]), run[0])
        made = _Held(self._add_numbered(name, run, k), run)
        block = replace(
            op,
            name=self.known.names.ops.fresh(f"{op.name}@{k}"),
            inputs=self._operands(k, step),
            outputs=(made.name,),
            attributes=self.region.axes[step.op].of_block(op, part),
            part_of=op.part_of or op.name,
        )
        parts, begin = self.parts.get(name), int(window.begin[k])
        if begin >= run[0]:
            self.ops.append(block)
            self.held[name] = made
        elif window.home is Home.RUN:
            if window.shift[k]:
                self._copy(name, (self.held[name],), begin, k, "before")
            self.ops.append(block)
            self._append(name, (self.held[name], made), k)
        elif window.home is Home.WHOLE:
            self.ops.append(block)
            self._append(name, (*self.parts[name], made), k)
            self.parts[name] = [self.held[name]]
            return
        else:
            self.ops.append(block)
            self._copy(name, (self.held[name], made), begin, k, _WINDOW)
        if parts is not None:
            parts.append(made)

    def _sum(self, k: int, step: Step) -> None:
        """Block k of an operator that sums over the split axis."""
        op, reduction = self.region.op(step.op), self.region.reductions[step.op]
        name, before = op.outputs[0], self.sums.get(op.outputs[0], "")
        operands = zip_longest(self._operands(k, step), reduction.reaches, fillvalue=None)
        inputs = ["" if before and reach is None else name or "" for name, reach in operands]
        whole = self.coarse.tensors[name]
        made, serial = self._numbered(whole, k, "sums")
        self.tensors[made] = Tensor(made, whole.shape, DType.INT32, serial=serial)
        attributes = reduction.attributes
        self._emit(reduction.kind, f"{op.name}@{k}", (*inputs, before), made, attributes, name)
        self.sums[name] = made

    def _operands(self, k: int, step: Step) -> tuple[str, ...]:
        """The tensors that block k reads in the place of each operand."""
        return tuple(
            name
            if reads is None
            else self._operand(name, (int(reads.begin[k]), int(reads.end[k])), reads.axis)
            for name, reads in zip(self.region.op(step.op).inputs, step.reads, strict=True)
        )

    def _append(self, name: str, held: Sequence[_Held], k: int) -> None:
        """Hold runs of bytes that lie one behind the other, as views, in one tensor."""
        run = (held[0].run[0], held[-1].run[1])
        joined = self._add_numbered(name, run, k, _WINDOW)
        names = tuple(h.name for h in held)
        axis = Concat(self.region.axis_of(name))
        self._emit("concat", joined, names, joined, axis, name)
        self.held[name] = _Held(joined, run)

    def _shrink(self, k: int, step: Step, window: Window) -> None:
        """Keep only what later blocks read, once the last operator of block k has read more."""
        name, kept = step.output, int(window.kept[k])
        if kept >= step.end[k]:
            del self.held[name]
        elif window.rest[k]:
            self._copy(name, (self.held[name],), kept, k, "rest")

    def _copy(self, name: str, held: tuple[_Held, ...], begin: int, k: int, use: str) -> None:
        """Copy what `held` holds in turn, from index `begin` on, and hold that instead."""
        axis = self.region.axis_of(name)
        parts = tuple((max(begin - h.run[0], 0), h.run[1] - h.run[0]) for h in held)
        run = (begin, held[-1].run[1])
        copy = self._add_numbered(name, run, k, use)
        names = tuple(h.name for h in held)
        self._emit("block_concat", copy, names, copy, BlockConcat(axis, parts), name)
        self.held[name] = _Held(copy, run)

    def _operand(self, name: str, run: Run, axis: int) -> str:
        """The tensor that holds exactly this run of an operand: a slice where nothing else does."""
        tensor = self.coarse.tensors[name]
        if tensor.is_constant:
            return self._constant(tensor, run, axis)
        held = self.held.get(name, _Held(name, (0, tensor.shape[axis])))
        if held.run == run:
            return held.name
        key = held.name, axis, run
        part = self.slices.get(key, "")
        if not part:
            indices = f"[{run[0]}:{run[1]}]"
            part = self.slices[key] = self.known.names.tensors.fresh(f"{held.name}{indices}")
            serial = self.tensors[held.name].serial
            self._add(name, run, part, axis, serial.part(indices) if serial else None)
            whole = self.tensors[held.name].shape
            begin = tuple(run[0] - held.run[0] if i == axis else 0 for i in range(len(whole)))
            sizes = self.tensors[part].shape
            ones = (1,) * len(whole)
            self._emit("slice", part, (held.name,), part, Slice(begin, sizes, ones, sizes), name)
        return part

    def _constant(self, tensor: Tensor, run: Run, axis: int) -> str:
        if run == (0, tensor.shape[axis]):
            return tensor.name
        name = self.known.part(tensor.name, axis, run)
        if name not in self.tensors:
            self.tensors[name] = constant_part(tensor, name, run, axis)
        return name

    def _add_numbered(self, like: str, run: Run, k: int, use: str = "") -> str:
        """A tensor of block k that holds a run of a tensor of the coarse graph; its name."""
        name, serial = self._numbered(self.coarse.tensors[like], k, use)
        self._add(like, run, name, self.region.axis_of(like), serial)
        return name

    def _add(self, like: str, run: Run, name: str, axis: int, serial: Serial | None) -> None:
        tensor = self.coarse.tensors[like]
        shape = tuple(run[1] - run[0] if i == axis else d for i, d in enumerate(tensor.shape))
        q = tensor.quantisation
        self.tensors[name] = Tensor(name, shape, tensor.dtype, q, serial=serial)

    def _emit(
        self,
        kind: str,
        name: str,
        inputs: Sequence[str],
        output: str,
        attributes: Attributes,
        tensor: str,
    ) -> None:
        """An operator on blocks of a tensor of the coarse graph. `name`: as it shall be called."""
        fresh = self.known.names.ops.fresh(name)
        self.ops.append(Op(kind, fresh, tuple(inputs), (output,), attributes, self._owner(tensor)))

    def _owner(self, tensor: str) -> str:
        """The name for `part_of` in operators on blocks of a tensor of the coarse graph."""
        producer = self.coarse.producers.get(tensor)
        maker = None if producer is None else self.coarse.ops[producer]
        return self.known.owner(tensor) if maker is None else maker.part_of or maker.name

    def _numbered(self, tensor: Tensor, k: int, use: str) -> tuple[str, Serial]:
        """Name and serial of a run of a tensor of the coarse graph that block k holds.

        `use`: what it is held for, as `window`; '' for the block's own output. A run of a tensor
        that an earlier split has made keeps the number of that.
        """
        suffix = f".{use}" if use else ""
        name = self.known.names.tensors.fresh(f"{tensor.name}@{k}{suffix}")
        if tensor.serial is None:
            return name, Serial((tensor.name, use), k)
        return name, tensor.serial.part(f"@{k}{suffix}")


def constant_part(tensor: Tensor, name: str, run: Run, axis: int) -> Tensor:
    """A part of a constant along an axis, as a tensor of its own."""
    assert tensor.constant is not None
    data = tensor.constant.reshape(tensor.shape).take(range(*run), axis)
    return Tensor(name, data.shape, tensor.dtype, _quantisation_of(tensor, run, axis), data)


def _quantisation_of(tensor: Tensor, run: Run, axis: int) -> Quantisation | None:
    q = tensor.quantisation
    if q is None or not q.per_channel:
        return q
    along = q.axis
    if along is None:  # a bias: one scale per element
        along = 0 if tensor.dtype is DType.INT32 else axis
    if along % len(tensor.shape) != axis:
        return q
    return replace(q, scales=q.scales[slice(*run)], zero_points=q.zero_points[slice(*run)])
