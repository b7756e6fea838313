"""Lower bounds on the peak of any order."""

from __future__ import annotations

from toolchain.ir import MemoryProblem
from toolchain.ir.memory import saving_bytes


def operator_bound_bytes(problem: MemoryProblem) -> int:
    """The largest footprint in bytes that a single operator forces.

    In every order, while an operator runs, the buffers that it touches and its scratch are live,
    minus at most what its overlaps save. At the end every graph output is live. Where the problem
    says which bytes the operator touches, only those are sure to be live.
    """
    needs = [
        touched + scratch - sum(max(saving_bytes(problem, o), 0) for o in problem.overlaps_of[op])
        for op, (touched, scratch) in enumerate(
            zip(_touched_bytes(problem), problem.scratch_bytes, strict=True)
        )
    ]
    outputs = sum(b.size_bytes for b in problem.buffers if b.to_end)
    inputs = sum(b.size_bytes for b in problem.buffers if b.from_start)
    return max([0, *needs, outputs, inputs])


def _touched_bytes(problem: MemoryProblem) -> list[int]:
    """Bytes of the buffers that are live because of an operator, for each."""
    if not problem.accesses:
        sizes = [buffer.size_bytes for buffer in problem.buffers]
        return [sum(sizes[b] for b in used) for used in problem.uses]
    result = []
    for accesses in problem.accesses:
        runs: dict[int, tuple[int, int]] = {}
        for access in accesses:
            begin, end = runs.get(access.buffer, (access.begin_bytes, access.end_bytes))
            runs[access.buffer] = min(begin, access.begin_bytes), max(end, access.end_bytes)
        result.append(sum(end - begin for begin, end in runs.values()))
    return result
