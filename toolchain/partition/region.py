"""The axis connecting graph: which operators can be split together, and along which axes.

MOTES, section 4.3. A vertex is an axis of an activation; an operator's axis map connects an axis of
its output with those of its inputs that a block of it reads in part. A region is a set of operators
whose outputs' axes are all connected; splitting one splits the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from toolchain.ir import Graph, Op
from toolchain.ops import spec_of
from toolchain.ops.spec import Axis


class CannotSplitError(ValueError):
    """The scheme is invalid; the message says why.

    `blocker`: index of an operator without which, and without what it depends on, the others might
    be split.
    """

    def __init__(self, message: str, blocker: int | None = None) -> None:
        super().__init__(message)
        self.blocker = blocker


@dataclass(frozen=True)
class Region:
    """Operators of `graph` by index, ascending, and the axis along which each one is split.

    `sliced` (V_I): activations from outside that blocks read in part, with their axis. `joined`
    (V_O): activations that somebody outside reads, or that the graph gives.
    """

    graph: Graph
    ops: tuple[int, ...]
    axes: Mapping[int, Axis]
    sliced: Mapping[str, int]
    joined: tuple[str, ...]

    def op(self, index: int) -> Op:
        return self.graph.ops[index]

    def axis_of(self, tensor: str) -> int:
        """The axis along which a tensor that the region makes is split."""
        return self.axes[self.graph.producers[tensor]].axis


def axes_of(op: Op, graph: Graph) -> Mapping[int, Axis]:
    """The axis map of an operator by output axis; empty where it cannot be split."""
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

    `axes_by_index`: the axis map of each operator, for who asks for many regions.

    Raises CannotSplitError where an operator has no such axis, where a tensor would be split along
    two, where an operator is not connected, or where a path leaves the region and comes back.
    """
    chosen = tuple(sorted(set(ops)))
    maps = axes_by_index or (lambda index: axes_of(graph.ops[index], graph))
    axes = _connected(graph, frozenset(chosen), seed, maps)
    for index in chosen:
        if index not in axes:
            name = graph.ops[index].name
            raise CannotSplitError(f"{name!r} is not connected to {seed[0]!r}", index)
    _check_convex(graph, frozenset(chosen))
    made = {graph.ops[index].outputs[0] for index in chosen}
    sliced: dict[str, int] = {}
    for index in chosen:
        op = graph.ops[index]
        for name, reach in zip(op.inputs, axes[index].reaches, strict=True):
            if name in made and reach is None:
                raise CannotSplitError(f"{op.name!r} reads {name!r} whole", graph.producers[name])
            if name and name not in made and reach is not None:
                tensor = graph.tensors[name]
                if not tensor.is_constant and sliced.setdefault(name, reach.axis) != reach.axis:
                    raise CannotSplitError(f"{name!r} would be split along two axes")
    inside = set(chosen)
    joined = tuple(
        name
        for name in (graph.ops[index].outputs[0] for index in chosen)
        if name in graph.outputs or not inside.issuperset(graph.consumers[name])
    )
    return Region(graph, chosen, MappingProxyType(axes), MappingProxyType(sliced), joined)


def _connected(
    graph: Graph,
    ops: frozenset[int],
    seed: tuple[str, int],
    maps: Callable[[int], Mapping[int, Axis]],
) -> dict[int, Axis]:
    """Breadth first over the axis connecting graph, from one axis of one tensor."""
    found: dict[str, int] = {}
    axes: dict[int, Axis] = {}
    waiting = deque([seed])
    while waiting:
        tensor, axis = waiting.popleft()
        if tensor in found:
            if found[tensor] != axis:
                blocker = graph.producers.get(tensor)
                raise CannotSplitError(f"{tensor!r} would be split along two axes", blocker)
            continue
        found[tensor] = axis
        producer = graph.producers.get(tensor)
        if producer is not None and producer in ops:
            own = maps(producer).get(axis)
            if own is None:
                name = graph.ops[producer].name
                raise CannotSplitError(f"{name!r} cannot be split along axis {axis}", producer)
            axes[producer] = own
            waiting += _activation_axes(graph, producer, own)
        for consumer in graph.consumers[tensor]:
            if consumer in ops and consumer not in axes:
                waiting += _outputs_along(graph, consumer, tensor, axis, maps(consumer))
    return axes


def _activation_axes(graph: Graph, op: int, axis: Axis) -> list[tuple[str, int]]:
    return [
        (name, reach.axis)
        for name, reach in zip(graph.ops[op].inputs, axis.reaches, strict=True)
        if name and reach is not None and not graph.tensors[name].is_constant
    ]


def _outputs_along(
    graph: Graph, op: int, tensor: str, axis: int, own_axes: Mapping[int, Axis]
) -> list[tuple[str, int]]:
    """The output axis of `op` that a split of `tensor` along `axis` leads to."""
    for own in own_axes.values():
        for name, reach in zip(graph.ops[op].inputs, own.reaches, strict=True):
            if name == tensor and reach is not None and reach.axis == axis:
                return [(graph.ops[op].outputs[0], own.axis)]
    return []


def _check_convex(graph: Graph, ops: frozenset[int]) -> None:
    """No path may leave the region and come back: its blocks would wait for their own end."""
    after: set[int] = set()  # operators outside that depend on the region
    for index in _topological(graph):
        before = graph.predecessors[index]
        if index in ops:
            if any(p in after for p in before):
                raise CannotSplitError(
                    f"{graph.ops[index].name!r} depends on the region by a way outside it"
                )
        elif any(p in after or p in ops for p in before):
            after.add(index)


def _topological(graph: Graph) -> range:
    """Graphs hold their operators in a topological order."""
    return range(len(graph.ops))
