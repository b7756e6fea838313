"""Lower bounds on the size of any placement."""

from __future__ import annotations

import math

from toolchain.ir import ArenaProblem
from toolchain.ir.memory import together_bytes


def load_bound_bytes(problem: ArenaProblem) -> int:
    """The largest load of a step, counted in granules of the alignment that all blocks share.

    Blocks start at granules, so no two that are live together touch one granule, but for a pair
    that may share bytes: it takes at least the granules of max(born, lead + dying). Only the
    highest granule may end early. A load rises only where a block starts.
    """
    live = [i for i, b in enumerate(problem.blocks) if b.start < b.end and b.size_bytes]
    blocks = problem.blocks
    unit = math.gcd(*(blocks[i].alignment_bytes for i in live)) if live else 1
    bound = 0
    pairs = [
        (blocks[pair.dying], blocks[pair.born], pair)
        for pair in problem.shared
        if blocks[pair.dying].size_bytes and blocks[pair.born].size_bytes
    ]
    for step in {blocks[i].start for i in live}:
        alive = [b for b in (blocks[i] for i in live) if b.start <= step < b.end]
        granules = sum(-(-b.size_bytes // unit) for b in alive)
        for dying, born, pair in pairs:
            if max(dying.start, born.start) <= step < min(dying.end, born.end):
                together = together_bytes(
                    dying.size_bytes, born.size_bytes, pair.lead_bytes, pair.exact
                )
                apart = -(-dying.size_bytes // unit) - (-born.size_bytes // unit)
                granules -= max(apart + (-together // unit), 0)
        highest = min((b.size_bytes - 1) % unit + 1 for b in alive)
        bound = max(bound, (granules - 1) * unit + highest)
    return bound
