"""The smallest arena by brute force."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from toolchain.ir import ArenaProblem, LiveRun


def smallest_arena_bytes(problem: ArenaProblem) -> int:
    """Every order of every two blocks at each step: each gives a longest path, or a cycle.

    A pair that may share at one exact distance has that as a third choice.
    """
    blocks = problem.blocks
    live = [i for i, b in enumerate(blocks) if b.start < b.end]
    leads = {(p.dying, p.born): p.lead_bytes for p in problem.shared if not p.exact}
    ties = {(p.dying, p.born): p.lead_bytes for p in problem.shared if p.exact}

    def run(i: int, step: int) -> LiveRun:
        return next(run for run in reversed(blocks[i].runs) if run.step <= step)

    meeting = {
        (i, j, run(i, step)[1:], run(j, step)[1:]): (i, j, step)
        for i, j in combinations(live, 2)
        for step in range(max(blocks[i].start, blocks[j].start), min(blocks[i].end, blocks[j].end))
        if run(i, step).size_bytes and run(j, step).size_bytes
    }

    def gap(low: int, high: int, step: int) -> int:
        needed = run(low, step).top_bytes - run(high, step).bottom_bytes
        return min(needed, leads.get((high, low), needed))

    def apart(at: dict[int, int], i: int, j: int, step: int) -> bool:
        if at[j] >= at[i] + gap(i, j, step) or at[i] >= at[j] + gap(j, i, step):
            return True
        return at[i] - at[j] == ties.get((i, j)) or at[j] - at[i] == ties.get((j, i))

    def settle(edges: list[tuple[int, int, int]], best: int) -> dict[int, int] | None:
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

    def sizes(edges: list[tuple[int, int, int]], left: list[tuple[int, int, int]]) -> Iterator[int]:
        nonlocal best
        at = settle(edges, best)
        if at is None:
            return
        crossing = next((pair for pair in left if not apart(at, *pair)), None)
        if crossing is None:
            best = max((at[i] + blocks[i].size_bytes for i in live), default=0)
            yield best
            return
        i, j, step = crossing
        rest = [pair for pair in left if pair != crossing]
        yield from sizes([*edges, (i, j, gap(i, j, step))], rest)
        yield from sizes([*edges, (j, i, gap(j, i, step))], rest)
        for dying, born in ((i, j), (j, i)):
            if (dying, born) in ties:
                tie = ties[dying, born]
                yield from sizes([*edges, (born, dying, tie), (dying, born, -tie)], rest)

    return min(sizes([], list(meeting.values())), default=0)
