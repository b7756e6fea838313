"""Allocators that are fully described by an order of blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from toolchain.arena._bounds import load_bound_bytes
from toolchain.arena._fit import fit, size_bytes
from toolchain.arena._many import compare, heap_offsets, load_bound, orders, plain, too_many
from toolchain.ir import ArenaProblem, Placement
from toolchain.search import Stopwatch, Work


@dataclass(frozen=True)
class ListAllocator:
    """Places blocks in `order`, each at the lowest offset where it fits."""

    name: str
    order: Callable[[ArenaProblem], Iterable[int]]

    def place(
        self,
        problem: ArenaProblem,
        time_limit_seconds: float | None = None,
        capacity_bytes: int | None = None,
    ) -> Placement:
        """Place the blocks; the work is linear in pairs of blocks that are live together.

        The capacity changes nothing. If the pairs would take more work than the limit allows, a
        heap's placement is returned instead.
        """
        watch, bound = Stopwatch(), load_bound_bytes
        limit = math.inf if time_limit_seconds is None else time_limit_seconds
        work = Work(limit)
        if plain(problem) and too_many(problem, limit):
            offsets, bound = heap_offsets(problem, next(orders(problem)), work), load_bound
        else:
            compare(problem, work)
            offsets = fit(problem, self.order(problem))
        size = size_bytes(problem, offsets)
        return Placement(
            allocator=self.name,
            offsets=offsets,
            size_bytes=size,
            lower_bound_bytes=min(size, bound(problem)),
            seconds=watch.seconds,
            work_seconds=work.spent_seconds,
        )
