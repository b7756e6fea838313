"""Which points of a front are placed: against an arena that every point is given."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import pairwise

import pytest

from toolchain.partition import (
    Choice,
    Front,
    LeastSlowdown,
    Point,
    Scheme,
    SmallestArena,
)


def point(peak_bytes: int, extra: int) -> Point:
    return Point(peak_bytes, extra, (Scheme((f"conv{extra}",), ("x", 1), 2),))


def placed(choice: Choice, arenas: Mapping[Point, int]) -> list[Point]:
    chosen = []
    while (found := choice.next()) is not None:
        chosen.append(found)
        choice.learn(found, arenas[found])
    assert len(chosen) == len(set(chosen)) <= choice.most
    return chosen


def front(*peaks: int) -> Front:
    points = tuple(point(peak, extra) for extra, peak in enumerate(peaks[1:], 1))
    return Front((Point(peaks[0], 0, ()), *points), 1000, 0.0)


def test_an_arena_at_the_lowest_peak_ends_the_choice() -> None:
    ways = front(1000, 800, 600, 400)
    assert placed(SmallestArena(ways), {p: p.peak_bytes for p in ways.points}) == [ways.points[-1]]


def test_no_point_above_the_best_arena_is_placed() -> None:
    ways = front(1000, 800, 600, 400)
    chosen = placed(SmallestArena(ways), {p: p.peak_bytes + 150 for p in ways.points})
    assert chosen == [ways.points[3]]
    chosen = placed(SmallestArena(ways), {p: p.peak_bytes + 250 for p in ways.points})
    assert chosen == [ways.points[3], ways.points[2]]


def test_a_way_that_costs_nothing_is_placed() -> None:
    free = point(500, 0)
    assert placed(SmallestArena(Front((free,), 1000, 0.0), 0.0), {free: 510}) == [free]


def test_what_costs_too_much_is_not_placed() -> None:
    ways = front(1000, 800, 600, 400)
    assert placed(SmallestArena(ways, 0.002), dict.fromkeys(ways.points, 700))[0] == ways.points[2]
    assert not placed(SmallestArena(ways, 0.0), {})


def test_other_points_have_their_turn() -> None:
    ways = front(1000, 400)
    other = point(410, 7)
    ways = Front(ways.points, ways.total, 0.0, others=((other,),))
    assert placed(SmallestArena(ways), {ways.points[1]: 500, other: 420}) == [ways.points[1], other]


def test_the_cheapest_that_fits_is_found_when_arenas_are_peaks() -> None:
    ways = front(1000, 800, 600, 400)
    chosen = placed(LeastSlowdown(ways, 650), {p: p.peak_bytes for p in ways.points})
    assert chosen[0] == ways.points[2]


def test_room_is_left_for_arenas_above_their_peaks() -> None:
    ways = front(*range(1000, 100, -10))
    arenas = {p: int(1.2 * p.peak_bytes) for p in ways.points}
    chosen = placed(LeastSlowdown(ways, 600), arenas)
    fitting = [p for p in chosen if arenas[p] <= 600]
    assert min(p.extra for p in fitting) == min(p.extra for p in ways.points if arenas[p] <= 600)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_the_arenas_are_the_last_to_fit_costs_least(seed: int) -> None:
    rng = random.Random(seed)
    ways = front(*sorted((rng.randint(100, 1000) for _ in range(40)), reverse=True))
    arenas = {p: int(rng.uniform(1, 1.3) * p.peak_bytes) for p in ways.points}
    allowed = rng.randint(100, 1000)
    chosen = placed(LeastSlowdown(ways, allowed, 0.03), arenas)
    fitting = [p for p in chosen if arenas[p] <= allowed]
    assert all(a.extra >= b.extra for a, b in pairwise(fitting))
    assert all(p.extra <= 30 for p in chosen)
    if not fitting:  # then the smallest peak was among them
        assert ways.points[30] in chosen
