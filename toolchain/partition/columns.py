"""Wide tensors in columns: networks whose expansions are cut into columns before they are split.

A few rows of an expansion (the hidden tensor of an inverted bottleneck) can be most of what a split
network needs. Cut into columns, from its narrow operand to its narrow result, only a part of these
rows is there at a time; columns that neighbours need, too, are computed again. Blocks of rows of
the columns, with `Mode.NARROW`, are then rectangles. MCUNetV2's patches are such rectangles, of a
whole stage at once (Lin et al., 2021).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from toolchain.ir import Graph
from toolchain.memory.problem import memory_problem
from toolchain.ops.lowering import lower
from toolchain.partition.front import Front, Point, Task, Watch
from toolchain.partition.program import Mode
from toolchain.partition.region import CannotSplitError
from toolchain.partition.scheme import Scheme, split, split_all
from toolchain.partition.search import pareto_front

_SHARES = 0.3, 0.2, 0.13
"""Shares of the lowest peak so far that the rows of a wide tensor that are there at a time may
take."""
_ROWS, _COLUMNS = 1, 2
_WINDOW = 3
"""Rows that most readers of a wide tensor look at together."""
_LEAST_COLUMNS = 4
"""The least columns of a block: narrower ones compute most again, and small images are split by
channels."""
_LONGEST = 4
"""Operators from a narrow tensor to the next."""


def with_columns(task: Task, whole: Front, watch: Watch) -> Front:
    """The front, with the points of networks whose wide tensors are cut into columns first."""
    fronts = [whole]
    tried: set[tuple[Scheme, ...]] = {()}
    for share in _SHARES:
        lowest = min(point.peak_bytes for front in map(_even, fronts) for point in front.points)
        schemes = tuple(column_schemes(task.graph, int(share * lowest)))
        if schemes in tried or watch.over():
            continue
        tried.add(schemes)
        graph = split_all(task.graph, schemes)
        lowered = lower(graph, task.core, task.preference)
        cut = replace(
            task,
            graph=graph,
            problem=memory_problem(lowered),
            order=tuple(range(len(graph.ops))),
            walks=None,
        )
        fronts.append(_after(schemes, pareto_front(cut, watch), whole.total))
    joined = _joined(fronts, watch)
    if not any(front.even for front in fronts):
        return joined
    return replace(joined, even=_joined(list(map(_even, fronts)), watch))


def _even(front: Front) -> Front:
    """The front without blocks of different heights."""
    return front.even or front


def _joined(fronts: list[Front], watch: Watch) -> Front:
    """The best points of all, and all others."""
    others = [points for front in fronts for points in front.others]
    others += [front.points for front in fronts]
    return Front(
        _best([point for front in fronts for point in front.points]),
        fronts[0].total,
        watch.seconds,
        watch.stopped,
        tuple(others),
    )


def column_schemes(graph: Graph, most_bytes: int) -> Iterator[Scheme]:
    """Schemes for wide tensors whose rows take more than `most_bytes`: the operators from the
    narrow tensor before to the one behind, in so many columns that they take less.
    """
    for index, op in enumerate(graph.ops):
        chain = _chain(graph, index)
        if not chain:
            continue
        wide = graph.output(op)
        row_bytes = wide.size_bytes // wide.shape[_ROWS]
        count = -(-min(_WINDOW, wide.shape[_ROWS]) * row_bytes // max(most_bytes, 1))
        seed = graph.ops[chain[-1]].outputs[0], _COLUMNS
        names = tuple(graph.ops[i].name for i in chain)
        scheme = Scheme(names, seed, count, Mode.TILES)
        if 1 < count <= wide.shape[_COLUMNS] // _LEAST_COLUMNS and _possible(graph, scheme):
            yield scheme


def _chain(graph: Graph, first: int) -> list[int]:
    """The operators from one that widens an image to the next that makes it no larger than before,
    each the only reader of the one before; empty where there is none.
    """
    op = graph.ops[first]
    if len(op.outputs) != 1 or not op.inputs or not op.inputs[0]:
        return []
    narrow, wide = graph.input(op, 0), graph.output(op)
    images = len(narrow.shape) == len(wide.shape) == 4 and narrow.shape[:3] == wide.shape[:3]
    if not images or wide.size_bytes <= narrow.size_bytes:
        return []
    chain = [first]
    while len(chain) < _LONGEST:
        output = graph.ops[chain[-1]].outputs[0]
        readers = graph.consumers[output]
        if len(readers) != 1 or output in graph.outputs or len(graph.ops[readers[0]].outputs) != 1:
            return []
        chain.append(readers[0])
        made = graph.output(graph.ops[readers[0]])
        if len(made.shape) != 4 or made.shape[3] < wide.shape[3]:
            return chain if len(made.shape) == 4 else []
    return []


def _possible(graph: Graph, scheme: Scheme) -> bool:
    try:
        split(graph, scheme)
    except CannotSplitError:
        return False
    return True


def _after(schemes: tuple[Scheme, ...], front: Front, total: int) -> Front:
    """The front of a network that other schemes made, as one of the network before these."""

    def whole(points: tuple[Point, ...]) -> tuple[Point, ...]:
        return tuple(
            Point(p.peak_bytes, p.extra + front.total - total, (*schemes, *p.schemes), p.titles)
            for p in points
        )

    others = tuple(whole(points) for points in front.others)
    even = _after(schemes, front.even, total) if front.even else None
    return replace(front, points=whole(front.points), total=total, others=others, even=even)


def _best(points: list[Point]) -> tuple[Point, ...]:
    """The points than which none is both smaller and cheaper, by decreasing peak."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: (p.extra, p.peak_bytes)):
        if not kept or point.peak_bytes < kept[-1].peak_bytes:
            kept.append(point)
    return tuple(kept)
