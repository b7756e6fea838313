"""The smallest arena by brute force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

from toolchain.ir import ArenaProblem, LiveRun, SharedPair

_Edge = tuple[int, int, int]
"""Blocks low and high, and by how much the offset of the second must exceed the first's."""
_Choices = tuple[tuple[_Edge, ...], ...]
"""Ways for two blocks to lie: one of them must hold."""


def smallest_arena_bytes(problem: ArenaProblem) -> int:
    """Every order of every two blocks at each step: each gives a longest path, or a cycle.

    A pair that may share at one exact distance has that as a third choice. What the one reads
    later, and what of the other was there before, lie in either order.
    """
    blocks = problem.blocks
    live = [i for i, b in enumerate(blocks) if b.start < b.end]
    sharing = {(p.dying, p.born, p.step): p for p in problem.shared}

    def run(i: int, step: int) -> LiveRun:
        if not blocks[i].start <= step < blocks[i].end:
            return LiveRun(step, 0, 0)
        return next(run for run in reversed(blocks[i].runs) if run.step <= step)

    def choices(i: int, at_i: int, j: int, at_j: int) -> _Choices | None:
        """Either order of what two blocks need, each at a step; None where one needs nothing."""
        one, two = run(i, at_i), run(j, at_j)
        if not (one.size_bytes and two.size_bytes):
            return None
        above = two.top_bytes - one.bottom_bytes
        return (((j, i, above),), ((i, j, one.top_bytes - two.bottom_bytes),))

    def with_pair(pair: SharedPair) -> _Choices | None:
        """Nothing shared; or as the pair allows it, and nothing else shared."""
        a, b, step = pair.dying, pair.born, pair.step
        whole = choices(a, step, b, step)
        if whole is None:
            return None
        others = (choices(a, step + 1, b, step), choices(a, step, b, step - 1))
        lead = ((b, a, pair.lead_bytes), (a, b, -pair.lead_bytes))[: 1 + pair.exact]
        ways = product(*(other for other in others if other is not None))
        return (*whole, *((*lead, *(edge for way in each for edge in way)) for each in ways))

    def meetings() -> Iterator[_Choices | None]:
        for i, j in combinations(live, 2):
            begin, end = max(blocks[i].start, blocks[j].start), min(blocks[i].end, blocks[j].end)
            for step in range(begin, end):
                pair = sharing.get((i, j, step)) or sharing.get((j, i, step))
                if pair is None:
                    yield choices(i, step, j, step)
                else:
                    yield with_pair(pair)

    def obeyed(at: dict[int, int], edges: Sequence[_Edge]) -> bool:
        return all(at[high] >= at[low] + distance for low, high, distance in edges)

    def settle(edges: list[_Edge], best: int) -> dict[int, int] | None:
        """Lowest offsets that obey all edges; None where they pass `best` or turn in a circle."""
        at = dict.fromkeys(live, 0)
        changed = True
        while changed:
            changed = False
            for low, high, distance in edges:
                unit = blocks[high].alignment_bytes
                least = -(-max(at[low] + distance, 0) // unit) * unit
                if least > at[high]:
                    at[high], changed = least, True
                    if least + blocks[high].size_bytes >= best:
                        return None
        return at

    best = sum(b.size_bytes + b.alignment_bytes for b in blocks) + 1

    def sizes(edges: list[_Edge], left: list[_Choices]) -> Iterator[int]:
        nonlocal best
        at = settle(edges, best)
        if at is None:
            return
        crossing = next((c for c in left if not any(obeyed(at, way) for way in c)), None)
        if crossing is None:
            best = max((at[i] + blocks[i].size_bytes for i in live), default=0)
            yield best
            return
        rest = [c for c in left if c != crossing]
        for way in crossing:
            yield from sizes([*edges, *way], rest)

    return min(sizes([], list(dict.fromkeys(c for c in meetings() if c))), default=0)
