"""One over the square root; of what is not positive, the highest output. TFLite RSQRT.

Source of int8: `RsqrtEvalQuantizedInt8`, and gemmlowp's Newton iteration in
`GetInvSqrtQuantizedMultiplierExp`. int16 is a table of the function in float32.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import (
    ScaleError,
    inverse_square_root,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.elementwise.common import Int64, sample_unary
from toolchain.ops.unary.float_table import Float32, table_spec
from toolchain.ops.unary.float_table_s16 import float_table_s16_spec
from toolchain.ops.unary.unary_f32 import float_form

_EXTRA_BITS = 20


def _apply(op: kit.AnyOperator, stored: Int64) -> Int64:
    x, y = op.x.q, op.y.q
    factor = 1.0 / (math.sqrt(np.float32(x.scale)) * np.float32(y.scale))
    whole = float(np.float32(factor))
    multiplier, shift = quantize_multiplier(whole / 2**_EXTRA_BITS)
    if not multiplier and quantize_multiplier(whole) != (0, 0):
        raise ScaleError(
            f"its scales make a factor of {factor:.4g}, which LiteRT shifts right by more than 31 "
            "bits: C leaves that undefined, and processors differ; requantise the model with a "
            "representative data set"
        )
    result = np.full_like(stored, 127)
    for index in np.flatnonzero(stored > x.zero_point):
        root, root_shift = inverse_square_root(int(stored.flat[index]) - x.zero_point)
        one = np.ones(1, np.int64)
        fine = multiply_by_quantized_multiplier(one, root, root_shift + _EXTRA_BITS)
        (value,) = multiply_by_quantized_multiplier(fine, multiplier, shift)
        result.flat[index] = np.clip(value + y.zero_point, -128, 127)
    return result


def _sample(rng: np.random.Generator, op: kit.Op) -> kit.Graph:
    """Nothing negative: LiteRT stops there."""
    graph = sample_unary(rng, op)
    tensors = dict(graph.tensors)
    tensors["x"] = replace(
        tensors["x"], quantisation=kit.Quantisation((tensors["x"].q.scale,), (-128,))
    )
    return replace(graph, tensors=tensors)


_INT8 = table_spec("rsqrt", _apply, _sample)


def _root_s16(op: kit.AnyOperator, x: Float32) -> Float32:
    highest = np.float32(32767) * np.float32(op.y.q.scale)
    roots = np.float32(1) / np.sqrt(np.where(x > 0, x, np.float32(1)))
    return np.where(x > 0, roots, highest).astype(np.float32)


SPEC = kit.OpSpec((_INT8, float_table_s16_spec(_INT8, _root_s16), float_form(_INT8)))
