"""Which points of a front to build and place. A predicted peak is only a bound; arenas decide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Protocol

from toolchain.partition.front import Front, Point

_GOOD = 1.01
"""An arena so near to its peak that no other point is placed for a smaller one."""
_APART = 1.01
"""Least ratio of the peaks of two points of one list that are placed for the smallest arena."""


class Choice(Protocol):
    """Chooses the point to place next, `most` of them at most, and learns the resulting arenas."""

    most: int

    def next(self) -> Point | None:
        """The next point to place; None if no more can improve the result."""

    def learn(self, point: Point, arena_bytes: int) -> None:
        """Record the arena of a point that was placed."""


class SmallestArena:
    """Points to place for the smallest arena that costs no more than a fraction `most`.

    It takes points from the front and from each list of others in turn, the lowest peaks first.
    """

    most = 5  # one of each list, where the first say nothing

    def __init__(self, front: Front, most: float | None = None) -> None:
        lists = [self._apart(front, points, most) for points in (front.points, *front.others)]
        in_turn = (point for points in zip_longest(*lists) for point in points)
        self._waiting = [p for p in dict.fromkeys(in_turn) if p is not None and p.schemes][::-1]
        self._left = self.most
        self._best_bytes = math.inf

    @staticmethod
    def _apart(front: Front, points: Sequence[Point], most: float | None) -> list[Point]:
        kept: list[Point] = []
        for point in sorted(points, key=lambda p: (p.peak_bytes, p.extra)):
            allowed = most is None or front.slowdown(point) <= most
            if allowed and (not kept or point.peak_bytes > _APART * kept[-1].peak_bytes):
                kept.append(point)
        return kept

    def next(self) -> Point | None:
        """The next point to place; None if no more can improve the result."""
        while self._waiting and self._left:
            point = self._waiting.pop()
            if point.peak_bytes < self._best_bytes:
                self._left -= 1
                return point
        return None

    def learn(self, point: Point, arena_bytes: int) -> None:
        """Record the arena of a point that was placed."""
        self._best_bytes = min(self._best_bytes, arena_bytes)
        if arena_bytes <= _GOOD * point.peak_bytes:
            self._waiting = [p for p in self._waiting if p.peak_bytes < point.peak_bytes]


class LeastSlowdown:
    """Points to place for the least slowdown whose arena fits.

    The cheapest point whose peak fits comes first. If its arena is larger than its peak, the other
    points must leave that much more room. Once a point fits, cheaper ones between it and those that
    did not fit are tried.
    """

    most = 6

    def __init__(self, front: Front, allowed_bytes: int, most: float | None = None) -> None:
        lists = (front.points, *front.others)
        points = (p for points in lists for p in points if p.schemes)
        within = (p for p in points if most is None or front.slowdown(p) <= most)
        self._waiting = sorted(dict.fromkeys(within), key=lambda p: (p.extra, p.peak_bytes))
        self._allowed_bytes = allowed_bytes
        self._left = self.most
        self._ratio = 1.0
        self._fits = False

    def next(self) -> Point | None:
        """The next point to place; None if no more can improve the result."""
        if not self._left or not self._waiting:
            return None
        self._left -= 1
        room = self._allowed_bytes / self._ratio
        likely = [p for p in self._waiting if p.peak_bytes <= room]
        if self._fits:
            chosen = self._waiting[len(self._waiting) // 2]
        elif likely and self._left:
            chosen = likely[0]
        else:
            chosen = min(self._waiting, key=lambda p: p.peak_bytes)
        self._waiting.remove(chosen)
        return chosen

    def learn(self, point: Point, arena_bytes: int) -> None:
        """Record the arena of a point that was placed."""
        if arena_bytes <= self._allowed_bytes:
            self._fits = True
            cheaper = [p for p in self._waiting if p.extra < point.extra]
            self._waiting = [p for p in cheaper if p.peak_bytes <= self._allowed_bytes]
        else:
            self._ratio = max(self._ratio, arena_bytes / point.peak_bytes)
            if self._fits:
                self._waiting = [p for p in self._waiting if p.extra > point.extra]
