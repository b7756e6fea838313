"""The axis connecting graph: which operators can be split together, and along which axes.

MOTES, section 4.3. A vertex is an axis of an activation. An operator's axis map connects an axis of
its output with the axes of its inputs that a block of it reads in part. A region is a set of
operators whose outputs' axes are all connected: splitting one splits the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from toolchain.ir import DType, Graph, Op
from toolchain.ops import spec_of
from toolchain.ops.spec import Axis, Reach, Reduction


class CannotSplitError(ValueError):
    """The scheme is invalid; the message gives the reason.

    `blocker`: index of an operator; without it, and without what it depends on, the others might be
    split.
    """

    def __init__(self, message: str, blocker: int | None = None) -> None:
        super().__init__(message)
        self.blocker = blocker


@dataclass(frozen=True)
class Region:
    """Operators of `graph` by index, ascending, and the axis along which each one is split.

    reductions  operators that sum over the split axis instead. Nothing inside reads their outputs.
    sliced      (V_I) activations from outside that blocks read in part, with their axis.
    joined      (spatial V_O) activations split by blocks that something outside reads, or that are
                graph outputs.
    reduced     (reduced V_O) outputs made from int32 sums that all blocks add to.
    seed        the tensor and axis from which the axes follow.
    """

    graph: Graph
    ops: tuple[int, ...]
    seed: tuple[str, int]
    axes: Mapping[int, Axis]
    reductions: Mapping[int, Reduction]
    sliced: Mapping[str, int]
    joined: tuple[str, ...]

    def op(self, index: int) -> Op:
        return self.graph.ops[index]

    @property
    def reduced(self) -> tuple[str, ...]:
        return tuple(self.op(index).outputs[0] for index in self.reductions)

    def sums_bytes(self, tensor: str) -> int:
        """Bytes of the int32 sums of a reduced output."""
        return DType.INT32.size_bytes * self.graph.tensors[tensor].elements

    def split_of(self, op: int) -> Axis | Reduction:
        """The axis of its output along which an operator is split, or the reduction it sums
        over.
        """
        return self.axes.get(op) or self.reductions[op]

    def reaches(self, op: int) -> tuple[Reach | None, ...]:
        """How a block of an operator reads each operand in part; None for the whole operand."""
        return self.split_of(op).reaches[: len(self.op(op).inputs)]

    def length(self, op: int) -> int:
        """How many indices the blocks of an operator divide among them: of its output, or of its
        sums.
        """
        if op in self.axes:
            return self.graph.output(self.op(op)).shape[self.axes[op].axis]
        return self.reductions[op].size

    def axis_of(self, tensor: str) -> int:
        """The axis along which a tensor that the region makes is split."""
        return self.axes[self.graph.producers[tensor]].axis


def axes_of(op: Op, graph: Graph) -> Mapping[int, Axis]:
    """The axis map of an operator by output axis; empty if it cannot be split."""
    if len(op.outputs) != 1:
        return {}
    return {axis.axis: axis for axis in spec_of(op.kind).axes(op, graph)}


def region(
    graph: Graph,
    ops: Iterable[int],
    seed: tuple[str, int],
    axes_by_index: Callable[[int], Mapping[int, Axis]] | None = None,
) -> Region:
    """The region of these operators that splits axis `seed[1]` of tensor `seed[0]`.

    `axes_by_index`: the axis map of each operator, for callers that ask for many regions.

    Raises CannotSplitError if an operator has no such axis and does not sum over it, if a tensor
    would be split along two axes, if an operator is not connected, if one reads whole what another
    makes, or if a path leaves the region and comes back.
    """
    chosen = tuple(sorted(set(ops)))
    maps = axes_by_index or (lambda index: axes_of(graph.ops[index], graph))
    axes, reductions = _connected(graph, frozenset(chosen), seed, maps)
    for index in chosen:
        if index not in axes and index not in reductions:
            name = graph.ops[index].name
            raise CannotSplitError(f"{name!r} is not connected to {seed[0]!r}", index)
    _check_convex(graph, frozenset(chosen))
    made = {graph.ops[index].outputs[0] for index in chosen}
    summed = {graph.ops[index].outputs[0] for index in reductions}
    sliced: dict[str, int] = {}
    for index in chosen:
        op, split = graph.ops[index], axes.get(index) or reductions[index]
        for name, reach in zip(op.inputs, split.reaches, strict=False):
            if name in summed:
                raise CannotSplitError(
                    f"{op.name!r} reads the sums {name!r}", graph.producers[name]
                )
            if name in made and reach is None:
                raise CannotSplitError(f"{op.name!r} reads {name!r} whole", graph.producers[name])
            if name and name not in made and reach is not None:
                tensor = graph.tensors[name]
                if not tensor.is_constant and sliced.setdefault(name, reach.axis) != reach.axis:
                    raise CannotSplitError(f"{name!r} would be split along two axes")
    inside = set(chosen)
    joined = tuple(
        name
        for name in (graph.ops[index].outputs[0] for index in chosen if index in axes)
        if name in graph.outputs or not inside.issuperset(graph.consumers[name])
    )
    return Region(
        graph,
        chosen,
        seed,
        MappingProxyType(axes),
        MappingProxyType(dict(sorted(reductions.items()))),
        MappingProxyType(sliced),
        joined,
    )


def _connected(
    graph: Graph,
    ops: frozenset[int],
    seed: tuple[str, int],
    maps: Callable[[int], Mapping[int, Axis]],
) -> tuple[dict[int, Axis], dict[int, Reduction]]:
    """The axes and reductions that a breadth-first walk over the axis connecting graph reaches,
    from one axis of one tensor."""
    axis_of: dict[str, int] = {}
    axes: dict[int, Axis] = {}
    reductions: dict[int, Reduction] = {}
    waiting = deque([seed])
    while waiting:
        tensor, axis = waiting.popleft()
        if tensor in axis_of:
            if axis_of[tensor] != axis:
                blocker = graph.producers.get(tensor)
                raise CannotSplitError(f"{tensor!r} would be split along two axes", blocker)
            continue
        axis_of[tensor] = axis
        producer = graph.producers.get(tensor)
        if producer is not None and producer in ops:
            mapped = maps(producer).get(axis)
            if mapped is None:
                name = graph.ops[producer].name
                raise CannotSplitError(f"{name!r} cannot be split along axis {axis}", producer)
            axes[producer] = mapped
            waiting += _activation_axes(graph, producer, mapped)
        for consumer in graph.consumers[tensor]:
            if consumer not in ops or consumer in axes or consumer in reductions:
                continue
            outputs = _outputs_along(graph, consumer, tensor, axis, maps(consumer))
            summed = None
            if not outputs or not _goes_on(graph, ops, outputs[0]):
                summed = _reduction_along(graph, consumer, tensor, axis)
            if summed is None:
                waiting += outputs
            else:
                reductions[consumer] = summed
                waiting += _activation_axes(graph, consumer, summed)
    return axes, reductions


def _goes_on(graph: Graph, ops: frozenset[int], output: tuple[str, int]) -> bool:
    """Whether a split of this axis has more than one index, or a reader inside."""
    name, axis = output
    return graph.tensors[name].shape[axis] > 1 or not ops.isdisjoint(graph.consumers[name])


def _activation_axes(graph: Graph, op: int, split: Axis | Reduction) -> list[tuple[str, int]]:
    return [
        (name, reach.axis)
        for name, reach in zip(graph.ops[op].inputs, split.reaches, strict=False)
        if name and reach is not None and not graph.tensors[name].is_constant
    ]


def _reduction_along(graph: Graph, op: int, tensor: str, axis: int) -> Reduction | None:
    """The reduced axis of `op` that a split of `tensor` along `axis` leads to."""
    if len(graph.ops[op].outputs) != 1:
        return None
    for reduction in spec_of(graph.ops[op].kind).reductions(graph.ops[op], graph):
        for name, reach in zip(graph.ops[op].inputs, reduction.reaches, strict=False):
            if name == tensor and reach is not None and reach.axis == axis:
                return reduction
    return None


def _outputs_along(
    graph: Graph, op: int, tensor: str, axis: int, op_axes: Mapping[int, Axis]
) -> list[tuple[str, int]]:
    """The output axis of `op` that a split of `tensor` along `axis` leads to."""
    for mapped in op_axes.values():
        for name, reach in zip(graph.ops[op].inputs, mapped.reaches, strict=True):
            if name == tensor and reach is not None and reach.axis == axis:
                return [(graph.ops[op].outputs[0], mapped.axis)]
    return []


def _check_convex(graph: Graph, ops: frozenset[int]) -> None:
    """Check that no path leaves the region and comes back: its blocks would wait for their own
    end."""
    after: set[int] = set()  # operators outside that depend on the region
    for index in range(min(ops), max(ops) + 1):  # in topological order, as the graph's operators
        before = graph.predecessors[index]
        if index in ops:
            if any(p in after for p in before):
                raise CannotSplitError(
                    f"{graph.ops[index].name!r} depends on the region by a way outside it"
                )
        elif any(p in after or p in ops for p in before):
            after.add(index)
