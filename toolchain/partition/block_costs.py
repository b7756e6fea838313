"""Costs of operators, of blocks of them, and of the copies and sums that splitting adds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest
from types import MappingProxyType

from toolchain.boards import Core
from toolchain.cost import CostModel
from toolchain.cost.alternatives import Alternative, alternatives
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ir.names import Names
from toolchain.ir.values import identity_of
from toolchain.ops.lowering import Lowered, lower
from toolchain.ops.movement.block_concat import BlockConcat
from toolchain.ops.preference import Preference
from toolchain.ops.spec import Axis, Part, Reduction
from toolchain.partition.region import Region
from toolchain.partition.scheme import constant_part

Lengths = tuple[tuple[str, int, int], ...]
"""Lengths of operands: name, axis, length along it."""
_Block = tuple[int, int | None, Part, tuple[tuple[int, int, int], ...]]
"""The first operator like this one, the axis of its output (None: it sums over blocks), the block;
lengths of operands by their places.
"""


FormNames = Mapping[str, frozenset[str]]
"""By the names of operators, the forms of their kernels that may be taken though their constants
take more flash, as `cost.alternatives.kernels_of` takes them."""
NO_NAMES: FormNames = MappingProxyType({})


class BlockCosts:
    """Costs of the operators of one graph and of blocks of them, by each kernel that may compute
    them; each is computed once. `names`: None where only the kernel that is chosen first may.
    """

    def __init__(
        self,
        graph: Graph,
        core: Core,
        costs: CostModel,
        preference: Preference = Preference.AUTO,
        names: FormNames | None = NO_NAMES,
    ) -> None:
        self.graph = graph
        self._core = core
        self._preference = preference
        self._names = names
        self._costs = costs.within(graph)
        self._blocks: dict[_Block, tuple[Alternative, ...]] = {}
        self._copies: dict[tuple[str, int], int] = {}

    def _lowered(self, graph: Graph) -> Lowered:
        return lower(graph, self._core, self._preference)

    def _alternatives(self, lowered: Lowered, index: int) -> tuple[Alternative, ...]:
        if self._names is None:
            return (Alternative(lowered.kernels[index], self._costs.cost(lowered, index).count),)
        op = lowered.graph.ops[index]
        names = self._names.get(op.part_of or op.name, frozenset())
        return alternatives(lowered, index, self._costs, names)

    @cached_property
    def lowered(self) -> Lowered:
        """The graph, unsplit."""
        return self._lowered(self.graph)

    @cached_property
    def unsplit(self) -> tuple[tuple[Alternative, ...], ...]:
        """The kernels of every operator, unsplit, and their costs."""
        return tuple(self._alternatives(self.lowered, i) for i in range(len(self.graph.ops)))

    @cached_property
    def least(self) -> tuple[int, ...]:
        """The cost of every operator, unsplit, by its quickest kernel."""
        return tuple(min(one.count for one in each) for each in self.unsplit)

    @cached_property
    def like(self) -> tuple[int, ...]:
        """For each operator the first one that has the same kernels, whole, and differs in the
        values of constants and in scales alone. Which kernels apply to a block follows from these
        as it does for the whole.
        """
        first: dict[Hashable, int] = {}
        return tuple(
            first.setdefault(self._outline(index), index) for index in range(len(self.graph.ops))
        )

    def _outline(self, index: int) -> Hashable:
        op, graph = self.graph.ops[index], self.graph
        names = (*op.inputs, *op.outputs)
        tensors = (graph.tensors.get(name) for name in names)
        operands = tuple(
            tensor and (tensor.shape, tensor.dtype, tensor.is_constant, _zero_points(tensor))
            for tensor in tensors
        )
        titles = tuple(kernel.title for kernel in self.lowered.kernels[index].forms())
        allowed = None if self._names is None else self._names.get(op.part_of or op.name)
        same = tuple(map(names.index, names))
        return op.kind, identity_of(op.attributes), operands, same, titles, allowed

    @property
    def known(self) -> int:
        """The number of shapes of blocks and copies that have been costed."""
        return len(self._blocks) + len(self._copies)

    def copy(self, name: str, size_bytes: int) -> int:
        """The cost of copying so many bytes of an activation."""
        key = (name, size_bytes)
        if key not in self._copies:
            tensor = self.graph.tensors[name]
            length = size_bytes // tensor.dtype.size_bytes
            x = replace(tensor, name="x", shape=(length,))
            y = replace(tensor, name="y", shape=(length,))
            op = Op("block_concat", "copy", ("x",), ("y",), BlockConcat(0, ((0, length),)))
            graph = Graph.build("copy", [x, y], [op], ["x"], ["y"])
            self._copies[key] = self._costs.cost(self._lowered(graph), 0).count
        return self._copies[key]

    def block(
        self, index: int, split: Axis | Reduction, part: Part, lengths: Lengths
    ) -> tuple[Alternative, ...]:
        """The kernels that may compute a block, and their costs.

        They are the same for all blocks of one operator of this graph, or of operators like it,
        that are cut along one axis, into operands of the same lengths, with the same padding,
        wherever they begin.
        """
        along, op = split.axis if isinstance(split, Axis) else None, self.graph.ops[index]
        places = (*op.inputs, *op.outputs)
        by_place = tuple((places.index(name), axis, length) for name, axis, length in lengths)
        key = (self.like[index], along, part, by_place)
        if key not in self._blocks:
            shapes = {name: (along, length) for name, along, length in lengths}
            if isinstance(split, Axis):
                block = replace(op, attributes=split.of_block(op, part))
                graph = _resized(self.graph, block, shapes)
            else:
                block, graph = _sum_block(self.graph, op, split, shapes)
            self._blocks[key] = self._alternatives(self._lowered(graph), 0)
        return self._blocks[key]

    def endings(self, region: Region) -> int:
        """The cost of requantising all int32 sums of a region."""
        count = 0
        for index, reduction in region.reductions.items():
            op = region.op(index)
            y = self.graph.output(op)
            sums = Tensor(f"{y.name}.sums", y.shape, DType.INT32)
            ending = Op("requantise_sums", op.name, (sums.name,), (y.name,), reduction.ending())
            graph = Graph.build("ending", [sums, y], [ending], [sums.name], [y.name])
            count += self._costs.cost(self._lowered(graph), 0).count
        return count


def _zero_points(tensor: Tensor) -> tuple[int, ...]:
    return tensor.quantisation.zero_points if tensor.quantisation else ()


def _resized(graph: Graph, op: Op, lengths: Mapping[str, tuple[int, int]]) -> Graph:
    """The operator alone, with other lengths along an axis of some operands."""
    tensors = []
    for name in dict.fromkeys((*op.present_inputs(), *op.outputs)):
        tensor = graph.tensors[name]
        if name in lengths and tensor.is_constant:
            axis, length = lengths[name]
            tensor = constant_part(tensor, name, (0, length), axis)
        elif name in lengths:
            axis, length = lengths[name]
            shape = tuple(length if i == axis else d for i, d in enumerate(tensor.shape))
            tensor = replace(tensor, shape=shape)
        tensors.append(tensor)
    given = [n for n in dict.fromkeys(op.present_inputs()) if not graph.tensors[n].is_constant]
    return Graph.build("block", tensors, [op], given, op.outputs)


def _sum_block(
    graph: Graph, op: Op, reduction: Reduction, lengths: Mapping[str, tuple[int, int]]
) -> tuple[Op, Graph]:
    """A block of an operator that sums over the split axis, and its graph: not the first block."""
    resized = _resized(graph, op, lengths)
    y = graph.output(op)
    names = Names(resized.tensors)
    before, after = (
        Tensor(names.fresh(f"{y.name}.{n}"), y.shape, DType.INT32) for n in ("before", "after")
    )
    operands = zip_longest(op.inputs, reduction.reaches, fillvalue=None)
    inputs = (*((name or "") if reach else "" for name, reach in operands), before.name)
    block = Op(reduction.kind, op.name, inputs, (after.name,), reduction.attributes)
    held = [t for t in resized.tensors.values() if t.name in inputs]
    given = [t.name for t in held if not t.is_constant]
    whole = Graph.build(
        "block", [*held, before, after], [block], [*given, before.name], [after.name]
    )
    return block, whole
