"""Costs of operators, of blocks of them, and of the copies and sums that splitting adds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
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
from toolchain.ops.lowering import Kernels, Lowered, lower
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


class BlockKernels:
    """The kernels of the operators of one graph, of blocks of them, and of copies, on one core:
    each chosen once, whatever it costs on a board with that core.

    Two graphs have one only if they are one object, and two cores only if they agree in every field
    (`Core`). Blocks of one operator, or of operators that are alike (`outlines`), have the same
    kernels where they are cut along one axis, into operands of the same lengths, with the same
    padding, wherever they begin.
    """

    def __init__(
        self,
        graph: Graph,
        core: Core,
        preference: Preference = Preference.AUTO,
        known: Kernels | None = None,
    ) -> None:
        """`known`: from which the unsplit operators have their kernels; of this core and
        preference.
        """
        self._known = known
        self.graph = graph
        self.core = core
        self.preference = preference
        self._blocks: dict[_Block, Lowered] = {}
        self._copies: dict[tuple[str, int], Lowered] = {}

    def _lowered(self, graph: Graph) -> Lowered:
        return lower(graph, self.core, self.preference)

    @cached_property
    def lowered(self) -> Lowered:
        """The graph, unsplit."""
        return lower(self.graph, self.core, self.preference, known=self._known)

    @cached_property
    def outlines(self) -> tuple[Hashable, ...]:
        """For each operator what it has in common with those that have the same kernels, whole, and
        differ in the values of constants and in scales alone. Which kernels apply to a block
        follows from these as it does for the whole.
        """
        return tuple(self._outline(index) for index in range(len(self.graph.ops)))

    def _outline(self, index: int) -> Hashable:
        op, graph = self.graph.ops[index], self.graph
        names = (*op.inputs, *op.outputs)
        tensors = (graph.tensors.get(name) for name in names)
        operands = tuple(
            tensor and (tensor.shape, tensor.dtype, tensor.is_constant, _zero_points(tensor))
            for tensor in tensors
        )
        titles = tuple(kernel.title for kernel in self.lowered.kernels[index].forms())
        same = tuple(map(names.index, names))
        return op.kind, identity_of(op.attributes), operands, same, titles

    @cached_property
    def like(self) -> tuple[int, ...]:
        """For each operator the first one that has its outline."""
        return first_like(self.outlines)

    def copy(self, name: str, size_bytes: int) -> Lowered:
        """The copy of so many bytes of an activation, alone in a graph."""
        key = (name, size_bytes)
        if key not in self._copies:
            tensor = self.graph.tensors[name]
            length = size_bytes // tensor.dtype.size_bytes
            x = replace(tensor, name="x", shape=(length,))
            y = replace(tensor, name="y", shape=(length,))
            op = Op("block_concat", "copy", ("x",), ("y",), BlockConcat(0, ((0, length),)))
            graph = Graph.build("copy", [x, y], [op], ["x"], ["y"])
            self._copies[key] = self._lowered(graph)
        return self._copies[key]

    def block(self, index: int, split: Axis | Reduction, part: Part, lengths: Lengths) -> Lowered:
        """A block, alone in a graph."""
        along, op = split.axis if isinstance(split, Axis) else None, self.graph.ops[index]
        key = self.like[index], along, part, by_place(op, lengths)
        if key not in self._blocks:
            shapes = {name: (along, length) for name, along, length in lengths}
            if isinstance(split, Axis):
                block = replace(op, attributes=split.of_block(op, part))
                graph = _resized(self.graph, block, shapes)
            else:
                block, graph = _sum_block(self.graph, op, split, shapes)
            self._blocks[key] = self._lowered(graph)
        return self._blocks[key]

    def ending(self, op: Op, reduction: Reduction) -> Lowered:
        """The requantisation of an operator's int32 sums, alone in a graph."""
        y = self.graph.output(op)
        sums = Tensor(f"{y.name}.sums", y.shape, DType.INT32)
        ending = Op("requantise_sums", op.name, (sums.name,), (y.name,), reduction.ending())
        return self._lowered(Graph.build("ending", [sums, y], [ending], [sums.name], [y.name]))


class BlockCosts:
    """Costs of the operators of one graph and of blocks of them, by each kernel that may compute
    them; each is computed once. `names`: None where only the kernel that is chosen first may.
    """

    def __init__(
        self, kernels: BlockKernels, costs: CostModel, names: FormNames | None = NO_NAMES
    ) -> None:
        self._kernels = kernels
        self._names = names
        self._costs = costs.within(kernels.graph)
        self._blocks: dict[_Block, tuple[Alternative, ...]] = {}
        self._copies: dict[tuple[str, int], int] = {}

    def _allowed(self, index: int) -> frozenset[str] | None:
        op = self._kernels.graph.ops[index]
        return None if self._names is None else self._names.get(op.part_of or op.name, frozenset())

    def _alternatives(
        self, lowered: Lowered, index: int, names: frozenset[str] | None
    ) -> tuple[Alternative, ...]:
        if names is None:
            return (Alternative(lowered.kernels[index], self._costs.cost(lowered, index).count),)
        return alternatives(lowered, index, self._costs, names)

    @property
    def lowered(self) -> Lowered:
        """The graph, unsplit."""
        return self._kernels.lowered

    @cached_property
    def unsplit(self) -> tuple[tuple[Alternative, ...], ...]:
        """The kernels of every operator, unsplit, and their costs."""
        return tuple(
            self._alternatives(self.lowered, i, self._allowed(i))
            for i in range(len(self.lowered.graph.ops))
        )

    @cached_property
    def least(self) -> tuple[int, ...]:
        """The cost of every operator, unsplit, by its quickest kernel."""
        return tuple(min(one.count for one in each) for each in self.unsplit)

    @cached_property
    def like(self) -> tuple[int, ...]:
        """For each operator the first one that is alike (`BlockKernels.outlines`), and may have the
        same kernels.
        """
        outlines = self._kernels.outlines
        return first_like((each, self._allowed(index)) for index, each in enumerate(outlines))

    @property
    def known(self) -> int:
        """The number of shapes of blocks and copies that have been costed."""
        return len(self._blocks) + len(self._copies)

    def copy(self, name: str, size_bytes: int) -> int:
        """The cost of copying so many bytes of an activation."""
        key = (name, size_bytes)
        if key not in self._copies:
            self._copies[key] = self._costs.cost(self._kernels.copy(name, size_bytes), 0).count
        return self._copies[key]

    def block(
        self, index: int, split: Axis | Reduction, part: Part, lengths: Lengths
    ) -> tuple[Alternative, ...]:
        """The kernels that may compute a block, and their costs: the same for all blocks that have
        the same kernels (`BlockKernels`).
        """
        along, op = split.axis if isinstance(split, Axis) else None, self._kernels.graph.ops[index]
        key = (self.like[index], along, part, by_place(op, lengths))
        if key not in self._blocks:
            block = self._kernels.block(index, split, part, lengths)
            self._blocks[key] = self._alternatives(block, 0, self._allowed(index))
        return self._blocks[key]

    def endings(self, region: Region) -> int:
        """The cost of requantising all int32 sums of a region."""
        made = (self._kernels.ending(region.op(i), each) for i, each in region.reductions.items())
        return sum(self._costs.cost(ending, 0).count for ending in made)


def first_like(outlines: Iterable[Hashable]) -> tuple[int, ...]:
    """For each value the place of the first one that equals it."""
    first: dict[Hashable, int] = {}
    return tuple(first.setdefault(each, index) for index, each in enumerate(outlines))


def by_place(op: Op, lengths: Lengths) -> tuple[tuple[int, int, int], ...]:
    """Lengths with the operand's place, and not its name."""
    places = (*op.inputs, *op.outputs)
    return tuple((places.index(name), axis, length) for name, axis, length in lengths)


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
