"""Where the output of an operator that moves bytes may lie over its input."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from toolchain.ops import kit, walks
from toolchain.ops.movement.copies import StridedCopy

_MOST_RUNS = 1 << 22
_WORD = 4


def copy_overlaps(
    op: kit.AnyOperator, copies: Sequence[StridedCopy]
) -> tuple[kit.SafeOverlap, ...]:
    """Safe overlaps while `thimble_copy_nd` makes `copies` one after the other.

    None if every copy is one run, because such an operator is a view or a plain copy. None either
    if there are so many runs that following them would take seconds.
    """
    runs = sum(math.prod(loop.count for loop in copy.loops) for copy in copies)
    if runs == len(copies) or runs > _MOST_RUNS:
        return ()
    return tuple(
        kit.SafeOverlap(source, target, _lead_bytes(copies, source, target))
        for source, x in enumerate(op.present)
        for target in range(len(op.outputs))
        if op.inputs.count(x) == 1 and not x.is_constant
    )


def _begins(counts: Sequence[int], strides: Sequence[int]) -> walks.Int64:
    """Offsets of the runs of a nest of loops, in its order."""
    begins = np.zeros(1, np.int64)
    for count, stride in zip(counts, strides, strict=True):
        begins = (begins[:, None] + np.arange(count) * stride).reshape(-1)
    return begins


def _lead_bytes(copies: Sequence[StridedCopy], source: int, target: int) -> int:
    """A run goes word by word: where it has several, each write comes before the next read."""
    read, begun, ended, early = [], [], [], []
    for copy in copies:
        counts = [loop.count for loop in copy.loops]
        reads = _begins(counts, [loop.source_stride for loop in copy.loops]) + copy.source_offset
        writes = _begins(counts, [loop.target_stride for loop in copy.loops]) + copy.target_offset
        read.append(reads if copy.source == source else np.full_like(reads, walks.NEVER))
        begun.append(writes if copy.target == target else np.zeros_like(writes))
        ended.append(begun[-1] + (copy.run_bytes if copy.target == target else 0))
        early.append(np.full(len(reads), copy.run_bytes not in (1, _WORD)))
    lowest, written = np.concatenate(read), np.maximum.accumulate(np.concatenate(ended))
    several = np.concatenate(early)
    return max(
        walks.lead_bytes(written, walks.read_after(lowest, np.arange(1, len(lowest) + 1))),
        walks.lead_bytes(np.append(0, written[:-1]), lowest),
        walks.lead_bytes(np.concatenate(begun)[several], lowest[several]),
    )
