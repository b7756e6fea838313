"""Lower bounds on the size of any placement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate

from toolchain.ir import ArenaProblem, Block


def load_bound_bytes(problem: ArenaProblem) -> int:
    """The largest load of a step in bytes, counted in granules of the common alignment.

    A granule is a run of bytes of the alignment that all blocks share. Blocks start at granules, so
    two blocks that are live together never share one. A pair that may share bytes takes at least
    the granules of the bytes that it cannot share. Only the highest granule may be used in part.
    Where some block is live only in part, bytes are counted instead.
    """
    live = [b for b in problem.blocks if b.start < b.end and b.size_bytes]
    if not live:
        return 0
    unit = 1 if any(b.profile for b in live) else math.gcd(*(b.alignment_bytes for b in live))
    changes: dict[int, int] = {}
    for step, granules in _changes(problem, live, unit):
        changes[step] = changes.get(step, 0) + granules
    steps = sorted(changes)
    loads = accumulate(changes[step] for step in steps)
    if unit == 1:
        return max(loads)
    ends = _highest_ends(live, unit, steps)
    return max((load - 1) * unit + end for load, end in zip(loads, ends, strict=True))


def _changes(problem: ArenaProblem, live: Sequence[Block], unit: int) -> Iterator[tuple[int, int]]:
    """Steps, and by how many granules the load changes there."""
    for block in live:
        before = 0
        for run in block.runs:
            granules = -(-run.size_bytes // unit)
            yield run.step, granules - before
            before = granules
        yield block.end, -before
    for pair in problem.shared:
        takeover = problem.takeover(pair)
        sizes = takeover.dying[0].size_bytes, takeover.born[1].size_bytes
        if min(sizes) > 0:
            together = sum(sizes) - takeover.shared_bytes()
            saved = sum(-(-size // unit) for size in sizes) + (-together // unit)
            yield pair.step, -max(saved, 0)
            yield pair.step + 1, max(saved, 0)


def _highest_ends(live: Sequence[Block], unit: int, steps: Sequence[int]) -> Iterator[int]:
    """The least bytes that a live block has in its last granule, for each step."""
    born = sorted(live, key=lambda b: b.start, reverse=True)
    alive: list[Block] = []
    for step in steps:
        alive = [b for b in alive if b.end > step]
        while born and born[-1].start <= step:
            alive.append(born.pop())
        yield min(((b.size_bytes - 1) % unit + 1 for b in alive), default=unit)
