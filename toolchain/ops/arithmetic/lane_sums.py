"""Sums of floats in the order of LiteRT's vectors of four, which its build for x86 has too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
_LANES = 4


def lane_sum(terms: Float32, start: Float32 | None = None) -> Float32:
    """`start`, plus the sum of `terms` along the last axis: that of every fourth one in turn, of
    these four, then of what is left, one by one (`NeonMatrixBatchVectorMultiplyAccumulate`,
    `NeonVectorVectorDotProduct`, `NeonReductionSumVector`).
    """
    count = terms.shape[-1]
    vectors = count - count % _LANES
    lanes = np.zeros((*terms.shape[:-1], _LANES), np.float32)
    for place in range(0, vectors, _LANES):
        lanes = lanes + terms[..., place : place + _LANES]
    total = lanes[..., 0]
    for lane in range(1, _LANES):
        total = total + lanes[..., lane]
    if start is not None:
        total = start + total
    for place in range(vectors, count):
        total = total + terms[..., place]
    return np.asarray(total, np.float32)
