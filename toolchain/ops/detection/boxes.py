"""Boxes and the order of scores in NumPy, operation by operation as the kernels compute them; and
the struct by which these read stored numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
_SERIES = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))
_LOG2_HIGH, _LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_ROUND = 6755399441055744.0
_LEAST, _MOST = -708.0, 709.0


def exp(x: Float64) -> Float64:
    """`thimble_exp_f64`."""
    inside = np.clip(x, _LEAST, _MOST)
    rounded = (inside * 1.4426950408889634 + _ROUND) - _ROUND
    n = np.nan_to_num(rounded).astype(np.int64)
    r = (inside - rounded * _LOG2_HIGH) - rounded * _LOG2_LOW
    p = np.full_like(r, _SERIES[0])
    for coefficient in _SERIES[1:]:
        p = p * r + coefficient
    half = n >> 1
    value = p * _power_of_two(half) * _power_of_two(n - half)
    value = np.where(x < _LEAST, 0.0, value)
    return np.where(x > _MOST, np.inf, value)


def _power_of_two(n: NDArray[np.int64]) -> Float64:
    return ((n + 1023).astype(np.uint64) << np.uint64(52)).view(np.float64)


def decode(encodings: Float32, anchors: Float32, scales: Sequence[float]) -> Float32:
    """ymin, xmin, ymax, xmax of each box, in double up to centre and half size.

    Encodings are [n][4 or more], anchors [n][4]: centre y, x, height, width.
    """
    shift, stretch = (encodings[:, part].astype(np.float64) for part in (slice(2), slice(2, 4)))
    origin, size = (anchors[:, part].astype(np.float64) for part in (slice(2), slice(2, 4)))
    by = np.array(scales, np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        centre = (shift / by[:2] * size + origin).astype(np.float32)
        half = (0.5 * exp(stretch / by[2:]) * size).astype(np.float32)
        return np.concatenate([centre - half, centre + half], axis=1)


def overlap(boxes: Float32, other: Float32) -> Float32:
    """The area that each of `boxes` [n][4] shares with `other` [4], over what both cover."""
    with np.errstate(all="ignore"):
        area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        other_area = (other[2] - other[0]) * (other[3] - other[1])
        length = np.minimum(boxes[:, 2:], other[2:]) - np.maximum(boxes[:, :2], other[:2])
        length = np.where(length < 0, np.float32(0), length)
        both = length[:, 0] * length[:, 1]
        share = both / (area + other_area - both)
    nothing = (area <= 0) | (other_area <= 0)
    return np.where(nothing, np.float32(0), share).astype(np.float32)


def suppressed(
    boxes: Float32, scores: Float32, least_score: float, most_overlap: float, most: int
) -> list[int]:
    """The anchors that are kept, best first. The lower anchor is better among equal scores."""
    wanted = np.flatnonzero(scores >= np.float32(least_score))
    kept: list[int] = []
    for place in wanted[np.argsort(-scores[wanted], kind="stable")]:
        if len(kept) == most:
            break
        if not (overlap(boxes[kept], boxes[place]) > np.float32(most_overlap)).any():
            kept.append(int(place))
    return kept


def best_of(scores: Sequence[float], wanted: int) -> list[int]:
    """The indices of the `wanted` best, best first.

    Equal ones stand as the `std::partial_sort` of GNU's C++ library leaves them: a heap of the
    wanted, the worst on top. If one is wanted, it is the first of the best.
    """
    if wanted == 1:
        return [max(range(len(scores)), key=lambda i: scores[i])]
    heap = list(range(len(scores)))

    def put(count: int, hole: int, one: int) -> None:
        top, child = hole, 2 * hole + 2
        while child <= count:
            if child == count or scores[heap[child]] > scores[heap[child - 1]]:
                child -= 1
            heap[hole], hole = heap[child], child
            child = 2 * hole + 2
        while hole > top and scores[heap[(hole - 1) // 2]] > scores[one]:
            heap[hole], hole = heap[(hole - 1) // 2], (hole - 1) // 2
        heap[hole] = one

    for parent in range(wanted // 2 - 1, -1, -1):
        put(wanted, parent, heap[parent])
    for i in range(wanted, len(scores)):
        if wanted and scores[heap[i]] > scores[heap[0]]:
            one, heap[i] = heap[i], heap[0]
            put(wanted, 0, one)
    for last in range(wanted - 1, 0, -1):
        one, heap[last] = heap[last], heap[0]
        put(last, 0, one)
    return heap[:wanted]


def stored_numbers(tensor: kit.Tensor) -> kit.Struct:
    """How a kernel reads the int8 or float32 numbers of a tensor."""
    stored = tensor.dtype is kit.DType.INT8
    return kit.Struct(
        "thimble_numbers",
        {
            "bytes": tensor.dtype.size_bytes,
            "zero_point": tensor.q.zero_point if stored else 0,
            "scale": np.float32(tensor.q.scale).item() if stored else 1.0,
        },
    )
