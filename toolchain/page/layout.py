"""Where the boxes of a network stand in its picture, and the lines between them.

Layers from top to bottom, after Sugiyama, Tagawa and Toda, "Methods for visual understanding of
hierarchical system structures" (1981). A line that passes a layer has a lane of its own there, so
that it runs behind no box; lines of one source share their lanes. Places within a layer are those
nearest to the boxes' neighbours (isotonic regression, pool adjacent violators). It is computed
once, here, so that the page only draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

Point = tuple[float, float]
BOX_WIDTH, BOX_HEIGHT = 170.0, 40.0
_LANE = 14.0
_APART = 22.0
"""Between two boxes of a layer."""
_BELOW = 46.0
"""Between the lower edge of a layer and the upper edge of the next: room for a shape."""
_PITCH = BOX_HEIGHT + _BELOW
_ORDERINGS = 10
_PLACINGS = 12
_STRAIGHT = 6.0
"""Weight of a neighbour that is a lane: long lines are straight first, then boxes are central."""


@dataclass(frozen=True)
class Layout:
    """Centres of boxes, the corners of each line from its source to its target, and the size.

    `cuts`: heights at which a single line passes from one layer to the next, with its x, so that
    the picture can go on in another column there.
    """

    places: tuple[Point, ...]
    lines: tuple[tuple[Point, ...], ...]
    cuts: tuple[Point, ...]
    width: float
    height: float


@dataclass(frozen=True)
class _Slots:
    """Boxes, by their numbers, and lanes behind them: the layer of each, and its neighbours.

    `chains`: for each line, its slots from the upper box to the lower one.
    """

    layers: Sequence[int]
    above: Sequence[Sequence[int]]
    below: Sequence[Sequence[int]]
    chains: Sequence[Sequence[int]]
    boxes: int

    def width(self, slot: int) -> float:
        return BOX_WIDTH if slot < self.boxes else _LANE


def layered(count: int, edges: Sequence[tuple[int, int]]) -> Layout:
    """A layout of `count` boxes, which are numbered in the order of work.

    An edge that closes a loop goes upwards: blocks of a split operator may read what a later one
    wrote for the block before.
    """
    if not count:
        return Layout((), (), (), 0.0, 0.0)
    rank = _ranks(count, edges)
    edges = [(rank[source], rank[target]) for source, target in edges]
    slots = _slots(count, edges)
    rows = _ordered(slots)
    xs = _placed(slots, rows)
    left = min(x - slots.width(slot) / 2 for slot, x in enumerate(xs))
    xs = [round(x - left, 1) for x in xs]
    width = max(x + slots.width(slot) / 2 for slot, x in enumerate(xs))
    places = tuple((xs[box], slots.layers[box] * _PITCH + BOX_HEIGHT / 2) for box in rank)
    lines = []
    for (source, target), chain in zip(edges, slots.chains, strict=True):
        corners = [corner for slot in chain for corner in _ends(slots, slot, xs[slot])]
        line = corners[1:-1]  # from the lower edge of a box to the upper edge of another
        if source > target:
            first, *between, last = line
            line = [_aside(last), *reversed(between), _aside(first)]
        lines.append(tuple(line))
    cuts = tuple(_cuts(slots, rows, xs))
    height = len(rows) * _PITCH - _BELOW
    return Layout(places, tuple(lines), cuts, round(width, 1), round(height, 1))


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The place of each box in an order in which it follows what it reads; where none can be next,
    the first in the order of work is."""
    readers: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for source, target in edges:
        readers[source].append(target)
        waits[target] += 1
    ranks = [-1] * count
    ready = [box for box in range(count) if not waits[box]]
    first = 0
    for rank in range(count):
        while ready and ranks[ready[0]] >= 0:
            heappop(ready)
        while ranks[first] >= 0:
            first += 1
        box = heappop(ready) if ready else first
        ranks[box] = rank
        for reader in readers[box]:
            waits[reader] -= 1
            if not waits[reader]:
                heappush(ready, reader)
    return ranks


def _ends(slots: _Slots, slot: int, x: float) -> tuple[Point, Point]:
    """Where a line enters and leaves a layer."""
    top = slots.layers[slot] * _PITCH
    return (x, top), (x, top + BOX_HEIGHT)


def _aside(corner: Point) -> Point:
    """Beside the middle of a box, where lines downwards end."""
    return corner[0] + BOX_WIDTH / 4, corner[1]


def _slots(count: int, edges: Sequence[tuple[int, int]]) -> _Slots:
    layers = _layers(count, edges)
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    lanes: dict[tuple[int, bool, int], int] = {}
    chains = []

    def join(upper: int, lower: int) -> None:
        if lower not in below[upper]:
            below[upper].append(lower)
            above[lower].append(upper)

    for source, target in edges:
        upper, lower = min(source, target), max(source, target)
        chain = [upper]
        for layer in range(layers[upper] + 1, layers[lower]):
            key = (source, source < target, layer)
            if key not in lanes:
                lanes[key] = len(layers)
                layers.append(layer)
                above.append([])
                below.append([])
            join(chain[-1], lanes[key])
            chain.append(lanes[key])
        join(chain[-1], lower)
        chains.append((*chain, lower))
    return _Slots(layers, above, below, chains, count)


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Each box as close below its upper neighbours as its longest path allows; one without any is
    just above the first that it leads to."""
    lower: list[list[int]] = [[] for _ in range(count)]
    has_upper = [False] * count
    for edge in edges:
        lower[min(edge)].append(max(edge))
        has_upper[max(edge)] = True
    layers = [0] * count
    for box in range(count):
        for other in lower[box]:
            layers[other] = max(layers[other], layers[box] + 1)
    for box in range(count):
        if not has_upper[box] and lower[box]:
            layers[box] = min(layers[other] for other in lower[box]) - 1
    return layers


def _ordered(slots: _Slots) -> list[list[int]]:
    """The slots of each layer from left to right: by the mean place of their neighbours, down and
    up again, the order with the fewest crossings."""
    rows: list[list[int]] = [[] for _ in range(max(slots.layers) + 1)]
    for slot in _walk(slots):
        rows[slots.layers[slot]].append(slot)
    best, fewest = [list(row) for row in rows], _crossings(slots, rows)
    for turn in range(_ORDERINGS):
        if not fewest:
            break
        down = turn % 2 == 0
        neighbours = slots.above if down else slots.below
        place = {slot: at / len(row) for row in rows for at, slot in enumerate(row)}
        for row in rows if down else reversed(rows):
            means = {
                slot: sum(place[other] for other in near) / len(near) if near else place[slot]
                for slot in row
                for near in (neighbours[slot],)
            }
            row.sort(key=means.__getitem__)
            place.update((slot, at / len(row)) for at, slot in enumerate(row))
        crossings = _crossings(slots, rows)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _walk(slots: _Slots) -> list[int]:
    """All slots, depth first from the upper boxes: neighbours in the graph are near in the list."""
    seen: dict[int, None] = {}
    for start in range(slots.boxes):
        stack = [] if slots.above[start] else [start]
        while stack:
            slot = stack.pop()
            if slot not in seen:
                seen[slot] = None
                stack += reversed(slots.below[slot])
    return [*seen]


def _crossings(slots: _Slots, rows: Sequence[Sequence[int]]) -> int:
    """Pairs of lines between neighbouring layers that cross: inversions, by a Fenwick tree."""
    total = 0
    for row, following in pairwise(rows):
        place = {slot: at for at, slot in enumerate(following)}
        tree = [0] * (len(following) + 1)
        passed = 0
        for slot in row:
            ends = [place[other] for other in slots.below[slot]]
            for end in ends:
                total += passed - _sum_to(tree, end + 1)
            for end in ends:
                passed += 1
                at = end + 1
                while at < len(tree):
                    tree[at] += 1
                    at += at & -at
    return total


def _sum_to(tree: Sequence[int], at: int) -> int:
    total = 0
    while at:
        total += tree[at]
        at -= at & -at
    return total


def _placed(slots: _Slots, rows: Sequence[Sequence[int]]) -> list[float]:
    """The x of each slot: near its neighbours, in the order of its layer, not upon another."""
    xs = [0.0] * len(slots.layers)
    for row in rows:
        x = 0.0
        for before, slot in pairwise(row):
            x += _apart(slots, before, slot)
            xs[slot] = x
        for slot in row:
            xs[slot] -= x / 2
    both = [[*up, *down] for up, down in zip(slots.above, slots.below, strict=True)]
    for turn in range(_PLACINGS):
        near: Sequence[Sequence[int]] = (slots.above, slots.below, both)[turn % 3]
        for row in rows if turn % 3 == 0 else reversed(rows):
            _settle(slots, row, near, xs)
    return xs


def _apart(slots: _Slots, left: int, right: int) -> float:
    gap = _APART if max(left, right) < slots.boxes else _LANE
    return (slots.width(left) + slots.width(right)) / 2 + gap


def _settle(
    slots: _Slots, row: Sequence[int], near: Sequence[Sequence[int]], xs: list[float]
) -> None:
    """The places of one layer with the least sum of weighted squares of the distances to where its
    neighbours draw each slot. Groups that would overlap move as one."""
    groups: list[tuple[float, float, int]] = []  # weighted sum of places, weight, slots
    offsets = [0.0]
    for before, slot in pairwise(row):
        offsets.append(offsets[-1] + _apart(slots, before, slot))
    for slot, offset in zip(row, offsets, strict=True):
        wanted, weight = _drawn(slots, slot, near[slot], xs)
        group = ((wanted - offset) * weight, weight, 1)
        while groups and groups[-1][0] * group[1] > group[0] * groups[-1][1]:
            last = groups.pop()
            group = (last[0] + group[0], last[1] + group[1], last[2] + group[2])
        groups.append(group)
    at = 0
    for total, weight, size in groups:
        for slot, offset in zip(row[at : at + size], offsets[at : at + size], strict=True):
            xs[slot] = total / weight + offset
        at += size


def _drawn(
    slots: _Slots, slot: int, near: Sequence[int], xs: Sequence[float]
) -> tuple[float, float]:
    """The place to which neighbours draw a slot, and how strongly."""
    if not near:
        return xs[slot], 0.1
    weights = [_STRAIGHT if max(slot, other) >= slots.boxes else 1.0 for other in near]
    weight = sum(weights)
    return sum(w * xs[other] for w, other in zip(weights, near, strict=True)) / weight, weight


def _cuts(slots: _Slots, rows: Sequence[Sequence[int]], xs: Sequence[float]) -> Iterator[Point]:
    """The gaps between layers that lines of one slot alone cross."""
    for layer, row in enumerate(rows[:-1]):
        crossing = [slot for slot in row if slots.below[slot]]
        if len(crossing) == 1:
            yield xs[crossing[0]], (layer + 1) * _PITCH - _BELOW / 2
