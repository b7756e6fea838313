"""A partition scheme, and the finer graph that it makes of a graph."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.block_concat import BlockConcat
from toolchain.ops.concat import Concat
from toolchain.ops.slice import Slice
from toolchain.ops.spec import Part
from toolchain.partition.blocks import Blocks, Mode, Run, blocks
from toolchain.partition.region import Region, region


@dataclass(frozen=True)
class Scheme:
    """MOTES's (S, A, V_I, V_O, n): `ops` (S) by name, split into `count` (n) blocks.

    The axes A, the slices V_I and the concats V_O follow from the axis connecting graph and
    `seed`: a tensor that the operators make or read, and the axis of it that is split. `slack`: how
    many blocks a sliding window drifts through its buffer before what it holds moves back to the
    front; the buffer has room for that many.
    """

    ops: tuple[str, ...]
    seed: tuple[str, int]
    count: int
    mode: Mode = Mode.SLIDING
    slack: int = 1


def blocks_of(graph: Graph, scheme: Scheme) -> Blocks:
    """Raises CannotSplitError where the scheme is invalid for this graph."""
    wanted = set(scheme.ops)
    chosen = [index for index, op in enumerate(graph.ops) if op.name in wanted]
    return blocks(region(graph, chosen, scheme.seed), scheme.count, scheme.mode)


def split(graph: Graph, scheme: Scheme) -> Graph:
    """The same function, its operators split into blocks; everything else keeps its name.

    Operators come in the order in which the blocks are meant to run. Raises CannotSplitError.
    """
    return _Splitter(blocks_of(graph, scheme), scheme.slack).graph()


def split_all(graph: Graph, schemes: Iterable[Scheme]) -> Graph:
    """`split` by each scheme in turn; their operators must not overlap."""
    for scheme in schemes:
        graph = split(graph, scheme)
    return graph


@dataclass(frozen=True)
class _Held:
    """A tensor of the finer graph that holds the run `run` of a tensor of the coarse one.

    `blocks`: how many have been appended to it since it was moved.
    """

    name: str
    run: Run
    blocks: int = 1


class _Splitter:
    """Builds the operators of one region, block by block."""

    def __init__(self, plan: Blocks, slack: int) -> None:
        self.plan = plan
        self.slack = slack
        self.region: Region = plan.region
        self.coarse = plan.region.graph
        self.ops: list[Op] = []
        self.tensors: dict[str, Tensor] = dict(self.coarse.tensors)
        self.held: dict[str, _Held] = {}
        self.slices: dict[str, str] = {}
        self.parts: dict[str, list[_Held]] = {name: [] for name in self.region.joined}
        self.sums: dict[str, str] = {}

    def graph(self) -> Graph:
        for k in range(self.plan.count):
            for op in self.region.ops:
                if op in self.plan.computed[k]:
                    if op in self.region.reductions:
                        self._sum(k, op)
                    else:
                        self._block(k, op)
                    for operand in dict.fromkeys(self.region.op(op).present_inputs()):
                        if self.plan.last_reader.get((k, operand)) == op:
                            self._shrink(k, operand)
        for name, parts in self.parts.items():
            axis = self.region.axis_of(name)
            names = tuple(part.name for part in parts)
            self._emit("concat", f"{name} (blocks)", names, name, Concat(axis), name)
        for index, reduction in self.region.reductions.items():
            whole = self.region.op(index)
            (name,), kind = whole.outputs, "requantise_sums"
            self._emit(kind, whole.name, (self.sums[name],), name, reduction.ending(), name)
        before, after = self._around()
        return self.coarse.with_ops([*before, *self.ops, *after], self.tensors.values())

    def _around(self) -> tuple[list[Op], list[Op]]:
        """The operators outside: those that depend on the region come after it."""
        inside = set(self.region.ops)
        last = max(inside)
        dependent: set[int] = set(inside)
        before, after = [], []
        for index, op in enumerate(self.coarse.ops):
            if index in inside:
                continue
            if any(p in dependent for p in self.coarse.predecessors[index]):
                dependent.add(index)
            if index in dependent or index > last:
                after.append(op)
            else:
                before.append(op)
        return before, after

    def _block(self, k: int, index: int) -> None:
        """Block k of one operator, and the window of its output that stays for later."""
        op, run = self.region.op(index), self.plan.computed[k][index]
        name, axis = op.outputs[0], self.region.axes[index]
        inputs = tuple(
            operand if reach is None or seen is None else self._operand(operand, seen, reach.axis)
            for operand, seen, reach in zip(
                op.inputs, self.plan.reads(k, index), axis.reaches, strict=True
            )
        )
        made = self._add(name, run, f"{name}@{k}")
        block = replace(
            op,
            name=f"{op.name}@{k}",
            inputs=inputs,
            outputs=(made,),
            attributes=axis.attributes(self._part(op, index, run)),
            part_of=op.part_of or op.name,
        )
        old, needed = self.held.get(name), self.plan.held[k][name][0]
        if old is None or old.run[0] >= run[0] or needed >= run[0]:
            self.ops.append(block)
            self.held[name] = _Held(made, run)
            if name in self.parts:
                self.parts[name].append(_Held(made, run))
        elif self._whole_in_place(name):
            self.ops.append(block)
            self._append(name, (*self.parts[name], _Held(made, run)), f"{name}@{k}.window")
            self.parts[name] = [self.held[name]]
        elif name in self.parts or not self._contiguous(name):
            self.ops.append(block)
            self._copy(name, (old, _Held(made, run)), needed, f"{name}@{k}.window")
            if name in self.parts:
                self.parts[name].append(_Held(made, run))
        else:
            if old.blocks >= self.slack:
                old = replace(self._copy(name, (old,), needed, f"{name}@{k}.before"), blocks=0)
            self.ops.append(block)
            self._append(name, (old, _Held(made, run)), f"{name}@{k}.window")

    def _sum(self, k: int, index: int) -> None:
        """Block k of an operator that sums over the split axis."""
        op, reduction = self.region.op(index), self.region.reductions[index]
        name, before = op.outputs[0], self.sums.get(op.outputs[0], "")
        runs = zip_longest(op.inputs, self.plan.reads(k, index), reduction.reaches, fillvalue=None)
        inputs = []
        for operand, run, reach in runs:
            if operand and reach is not None and run is not None:
                inputs.append(self._operand(operand, run, reach.axis))
            else:
                inputs.append("" if before or not operand else operand)
        made = f"{name}@{k}.sums"
        self.tensors[made] = Tensor(made, self.coarse.tensors[name].shape, DType.INT32)
        attributes = reduction.attributes
        self._emit(reduction.kind, f"{op.name}@{k}", (*inputs, before), made, attributes, name)
        self.sums[name] = made

    def _append(self, name: str, held: Sequence[_Held], window: str) -> None:
        """Hold runs of bytes that lie one behind the other, as views, in one tensor."""
        run = (held[0].run[0], held[-1].run[1])
        joined = self._add(name, run, window)
        names = tuple(h.name for h in held)
        axis = Concat(self.region.axis_of(name))
        self._emit("concat", joined, names, joined, axis, name)
        self.held[name] = _Held(joined, run, held[0].blocks + 1)

    def _whole_in_place(self, name: str) -> bool:
        """Whether blocks lie in a tensor that is there whole: a window is a run of its bytes."""
        return name in self.parts and self._contiguous(name)

    def _shrink(self, k: int, name: str) -> None:
        """Keep only what later blocks read, once the last operator of block k has read more."""
        old = self.held[name]
        begin = self.plan.kept_from(k, name, old.run[1])
        if begin >= old.run[1]:
            del self.held[name]
        elif self._whole_in_place(name) or (self._contiguous(name) and old.blocks < self.slack):
            return
        elif begin > old.run[0]:
            self._copy(name, (old,), begin, f"{name}@{k}.rest")

    def _copy(self, name: str, held: tuple[_Held, ...], begin: int, copy: str) -> _Held:
        """Copy what `held` holds in turn, from index `begin` on, and hold that instead."""
        axis = self.region.axis_of(name)
        parts = tuple((max(begin - h.run[0], 0), h.run[1] - h.run[0]) for h in held)
        run = (begin, held[-1].run[1])
        made = _Held(self._add(name, run, copy), run, self.slack)
        names = tuple(h.name for h in held)
        self._emit("block_concat", copy, names, made.name, BlockConcat(axis, parts), name)
        self.held[name] = made
        return made

    def _part(self, op: Op, index: int, run: Run) -> Part:
        for operand, reach in zip(op.inputs, self.region.axes[index].reaches, strict=True):
            if operand and reach is not None:
                return reach.part(*run, self.coarse.tensors[operand].shape[reach.axis])
        return Part(run[1] - run[0], begin=run[0])

    def _operand(self, name: str, run: Run, axis: int) -> str:
        """The tensor that holds exactly this run of an operand: a slice where nothing else does."""
        tensor = self.coarse.tensors[name]
        if tensor.is_constant:
            return self._constant(tensor, run, axis)
        held = self.held.get(name, _Held(name, (0, tensor.shape[axis])))
        if held.run == run:
            return held.name
        wanted = f"{held.name}[{run[0]}:{run[1]}]"
        part = self.slices.get(wanted, "")
        if not part:
            part = self.slices[wanted] = self._unused(wanted)
            self._add(name, run, part, axis)
            whole = self.tensors[held.name].shape
            begin = tuple(run[0] - held.run[0] if i == axis else 0 for i in range(len(whole)))
            sizes = self.tensors[part].shape
            ones = (1,) * len(whole)
            self._emit("slice", part, (held.name,), part, Slice(begin, sizes, ones, sizes), name)
        return part

    def _unused(self, name: str) -> str:
        """The name, or a longer one where another region sliced that tensor before."""
        while name in self.tensors:
            name += "'"
        return name

    def _constant(self, tensor: Tensor, run: Run, axis: int) -> str:
        if run == (0, tensor.shape[axis]):
            return tensor.name
        name = f"{tensor.name}[{axis}:{run[0]}:{run[1]}]"
        if name not in self.tensors:
            self.tensors[name] = constant_part(tensor, name, run, axis)
        return name

    def _add(self, like: str, run: Run, name: str, axis: int | None = None) -> str:
        tensor = self.coarse.tensors[like]
        along = self.region.axis_of(like) if axis is None else axis
        shape = tuple(run[1] - run[0] if i == along else d for i, d in enumerate(tensor.shape))
        self.tensors[name] = Tensor(name, shape, tensor.dtype, tensor.quantisation)
        return name

    def _emit(
        self,
        kind: str,
        name: str,
        inputs: Sequence[str],
        output: str,
        attributes: Attributes,
        tensor: str,
    ) -> None:
        """An operator on blocks of a tensor of the coarse graph."""
        producer = self.coarse.producers.get(tensor)
        maker = None if producer is None else self.coarse.ops[producer]
        part_of = tensor if maker is None else maker.part_of or maker.name
        self.ops.append(Op(kind, name, tuple(inputs), (output,), attributes, part_of))

    def _contiguous(self, name: str) -> bool:
        """Whether a run along the tensor's split axis is one run of bytes."""
        return math.prod(self.coarse.tensors[name].shape[: self.region.axis_of(name)]) == 1


def constant_part(tensor: Tensor, name: str, run: Run, axis: int) -> Tensor:
    """A run of a constant along an axis, as a tensor of its own."""
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
