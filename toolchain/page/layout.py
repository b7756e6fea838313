"""Where the operators of a network stand in its picture: in layers, with few crossings.

The method is Sugiyama's, as igraph has it. It is computed once, here, so that the page only draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolchain.packages import REPORT, lazy

if TYPE_CHECKING:
    import igraph
else:
    igraph = lazy("igraph", REPORT)

Point = tuple[float, float]
_WIDTH, _HEIGHT = 190.0, 64.0
"""Between the centres of two operators side by side, and of two layers."""
_SWEEPS = 60


def layered(
    count: int, edges: Sequence[tuple[int, int]]
) -> tuple[list[Point], list[tuple[Point, ...]]]:
    """A place for each of `count` operators, and the corners of each edge, from source to target.

    Raises MissingToolError without igraph.
    """
    if not count:
        return [], []
    graph = igraph.Graph(n=count, edges=list(edges), directed=True)
    found = graph.layout_sugiyama(
        layers=_layers(count, edges), hgap=_WIDTH, vgap=_HEIGHT, maxiter=_SWEEPS
    )
    corners = [[tuple(point) for point in line] for line in found.edge_routing]
    xs = [point[0] for point in (*found.coords, *(p for line in corners for p in line))]
    left = min(xs)

    def moved(point: Sequence[float]) -> Point:
        return round(point[0] - left, 1), round(point[1], 1)

    places = [moved(point) for point in found.coords]
    lines = []
    for (source, target), line in zip(edges, corners, strict=True):
        start, end = places[source], places[target]
        between = sorted(map(moved, line), key=lambda point: point[1], reverse=start[1] > end[1])
        lines.append((start, *between, end))
    return places, lines


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Each operator as close below what it reads as its longest path allows.

    Operators are in the order in which they first run. Where they are split, one can read what a
    later one wrote for its last block; such an edge goes upwards.
    """
    readers: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        if source < target:
            readers[source].append(target)
    layers = [0] * count
    for source in range(count):
        for target in readers[source]:
            layers[target] = max(layers[target], layers[source] + 1)
    return layers
