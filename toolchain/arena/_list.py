"""Allocators that are nothing but an order of blocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from toolchain.arena._bounds import load_bound_bytes
from toolchain.arena._fit import fit, size_bytes
from toolchain.ir import ArenaProblem, Placement


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
        """Quadratic in blocks; the time limit is never reached, the capacity changes nothing."""
        begin = time.perf_counter()
        offsets = fit(problem, self.order(problem))
        size = size_bytes(problem, offsets)
        return Placement(
            allocator=self.name,
            offsets=offsets,
            size_bytes=size,
            lower_bound_bytes=min(size, load_bound_bytes(problem)),
            seconds=time.perf_counter() - begin,
        )
