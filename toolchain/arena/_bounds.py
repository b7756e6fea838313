"""Lower bounds on the size of any placement."""

from __future__ import annotations

from toolchain.ir import ArenaProblem
from toolchain.ir.memory import together_bytes


def load_bound_bytes(problem: ArenaProblem) -> int:
    """The largest load of a step: sizes of the live blocks, less what sharing pairs can save.

    A pair that may share saves at most the smaller of its two blocks, and only in a step where
    both live.
    """
    steps = max((block.end for block in problem.blocks), default=0)
    load = [0] * steps
    for block in problem.blocks:
        for step in range(block.start, block.end):
            load[step] += block.size_bytes
    for pair in problem.shared:
        dying, born = problem.blocks[pair.dying], problem.blocks[pair.born]
        together = together_bytes(dying.size_bytes, born.size_bytes, pair.lead_bytes, pair.exact)
        saved = max(dying.size_bytes + born.size_bytes - together, 0)
        for step in range(max(dying.start, born.start), min(dying.end, born.end)):
            load[step] -= saved
    return max(load, default=0)
