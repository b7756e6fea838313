"""Sums of int8 as tflite-micro scales them, ADD_N and CUMSUM: in 2**-19 of the input's scale.

A sum begins not at 0 but at what a stored 0 stands for: it holds the input's zero point once more.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit

_STEP_BITS = 19


def _scaling(op: kit.AnyOperator) -> tuple[int, int]:
    """Raises UnsupportedError for scales with which tflite-micro aborts."""
    factor = 2 * op.x.q.scale / (2 ** (_STEP_BITS + 1) * op.y.q.scale)
    if not 0 < factor < 1:
        raise op.refused(
            f"its output scale {op.y.q.scale:g} is too fine for "
            f"an input scale of {op.x.q.scale:g}; requantise the model with a "
            "representative data set"
        )
    return kit.quantize_multiplier(factor)


def settled(op: kit.AnyOperator, sums: NDArray[np.int64]) -> NDArray[np.int8]:
    """The output, from sums of stored values without their zero points."""
    x, y = op.x.q, op.y.q
    fine = kit.wrap_int32((sums - x.zero_point) << _STEP_BITS)
    scaled = kit.multiply_by_quantized_multiplier(fine, *_scaling(op)) + y.zero_point
    held: NDArray[np.int8] = np.clip(scaled, -128, 127).astype(np.int8)
    return held


def parameters(op: kit.AnyOperator) -> Mapping[str, int]:
    """The members of a `thimble_fine_sum`."""
    multiplier, shift = _scaling(op)
    return {
        "zero_point": op.x.q.zero_point,
        "multiplier": multiplier,
        "shift": shift,
        "output_offset": op.y.q.zero_point,
    }
