"""Lower bounds on the size of any placement."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

from toolchain.ir import ArenaProblem, Block
from toolchain.ir.memory import together_bytes


def load_bound_bytes(problem: ArenaProblem) -> int:
    """The largest load of a step, counted in granules of the alignment that all blocks share.

    Blocks start at granules, so no two that are live together touch one granule, but for a pair
    that may share bytes: it takes at least the granules of max(born, lead + dying). Only the
    highest granule may end early. A load rises only where a block starts.
    """
    live = sorted(
        (b for b in problem.blocks if b.start < b.end and b.size_bytes), key=lambda b: b.start
    )
    unit = math.gcd(*(b.alignment_bytes for b in live)) if live else 1
    pairs = sorted(_saved_granules(problem, unit))
    alive: list[Block] = []
    saving: list[tuple[int, int, int]] = []
    bound = 0
    for step, born in groupby(live, key=lambda b: b.start):
        alive = [*(b for b in alive if b.end > step), *born]
        while pairs and pairs[0][0] <= step:
            saving.append(pairs.pop(0))
        saving = [pair for pair in saving if pair[1] > step]
        granules = sum(-(-b.size_bytes // unit) for b in alive)
        granules -= sum(saved for _, _, saved in saving)
        highest = min((b.size_bytes - 1) % unit + 1 for b in alive)
        bound = max(bound, (granules - 1) * unit + highest)
    return bound


def _saved_granules(problem: ArenaProblem, unit: int) -> Iterator[tuple[int, int, int]]:
    """For each pair that may share bytes: when both live, [start, end), and what that saves."""
    for pair in problem.shared:
        dying, born = problem.blocks[pair.dying], problem.blocks[pair.born]
        start, end = max(dying.start, born.start), min(dying.end, born.end)
        if start < end and dying.size_bytes and born.size_bytes:
            sizes = dying.size_bytes, born.size_bytes
            together = together_bytes(*sizes, pair.lead_bytes, pair.exact)
            apart = -(-dying.size_bytes // unit) - (-born.size_bytes // unit)
            yield start, end, max(apart + (-together // unit), 0)
