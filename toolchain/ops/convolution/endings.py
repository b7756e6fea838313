"""How the sums of pairs of channels end: rounded once where that is proved to be the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.ops.arithmetic.fixed_point import quantize_multiplier
from toolchain.ops.arithmetic.high_word import (
    begins_in_float32,
    begins_in_tflite,
    high_word,
    within_float32,
)
from toolchain.ops.arithmetic.onnx_rounding import FLOAT_CODE
from toolchain.ops.convolution.packing import (
    LARGEST_FAST_SHIFT,
    Ending,
    Scaling,
)

_ONCE = 256
"""THIMBLE_SHIFT_ONCE."""
_INT8 = (-128, 127)


def pair_endings(
    scales: Scaling, offset: int, activation: tuple[int, int], weight_zero_point: int, groups: int
) -> Ending:
    """What follows the filters of each channel, in `thimble_convolve_s8`'s parameters.

    Both channels of a pair are rounded once, or neither.
    """
    code = scales.code.astype(np.int64)
    rounding = np.where(code >= 0, (2 * offset + 1) << np.maximum(code, 0), 0)
    plain = Ending(scales.bias, scales.multiplier, code.astype(np.int16), rounding.astype(np.int32))
    if activation != _INT8:
        return plain
    channels = len(code)
    wide = scales.filters.reshape(channels, -1).astype(np.int64) - weight_zero_point
    lowest = scales.bias + np.minimum(-128 * wide, 127 * wide).sum(axis=1)
    highest = scales.bias + np.maximum(-128 * wide, 127 * wide).sum(axis=1)
    values = np.arange(_INT8[0] + 1 - offset, _INT8[1] + 1 - offset, dtype=np.int64)
    if (code == FLOAT_CODE).all():
        factors = scales.multiplier.view(np.float32)
        pairs = [quantize_multiplier(float(factor)) for factor in factors]
        multiplier, shift = (
            np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True)
        )
        right = -shift
        begins, found = begins_in_float32(factors, values)
        found &= within_float32(lowest, highest) & (multiplier > 0)
    else:
        multiplier, right = scales.multiplier.astype(np.int64), code + 1
        found = code >= 0
        begins = begins_in_tflite(
            np.maximum(multiplier, 1), np.clip(right, 1, LARGEST_FAST_SHIFT + 1), values
        )
    found &= (right >= 2) & (right <= LARGEST_FAST_SHIFT + 1)
    right = np.where(found, right, 2)
    once = high_word(multiplier, right + 31, begins, values, (lowest, highest), offset)
    exact = _both(found & once.exact, groups)
    return Ending(
        np.where(exact, scales.bias + once.added, scales.bias).astype(np.int32),
        np.where(exact, multiplier, scales.multiplier).astype(np.int32),
        np.where(exact, _ONCE + right - 2, code).astype(np.int16),
        np.where(exact, once.rounding, rounding).astype(np.int32),
    )


def _both(exact: NDArray[np.bool_], groups: int) -> NDArray[np.bool_]:
    """Whether both channels of each channel's pair are; of the odd last one of a group, whether it
    is itself.
    """
    rows = exact.reshape(groups, -1)
    even = rows.shape[1] // 2 * 2
    pairs = rows[:, :even].reshape(groups, -1, 2).all(axis=2)
    return np.concatenate([np.repeat(pairs, 2, axis=1), rows[:, even:]], axis=1).reshape(-1)
