"""Lower bounds on the peak of any order."""

from __future__ import annotations

from toolchain.ir import MemoryProblem
from toolchain.ir.memory import saving_bytes


def operator_bound_bytes(problem: MemoryProblem) -> int:
    """The largest footprint that one operator forces by itself.

    Whatever the order, while an operator runs the buffers it touches and its scratch are live,
    less at most what its overlaps save; and at the end every graph output is.
    """
    sizes = [buffer.size_bytes for buffer in problem.buffers]
    needs = [
        sum(sizes[b] for b in used)
        + scratch
        - sum(max(saving_bytes(problem, o), 0) for o in problem.overlaps_of[op])
        for op, (used, scratch) in enumerate(zip(problem.uses, problem.scratch_bytes, strict=True))
    ]
    outputs = sum(b.size_bytes for b in problem.buffers if b.to_end)
    inputs = sum(b.size_bytes for b in problem.buffers if b.from_start)
    return max([0, *needs, outputs, inputs])
