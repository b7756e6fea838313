"""Square roots and their reciprocals of int8 and int16.

TFLite SQRT (`SqrtEval`), rounded towards zero; RSQRT of int8 (`RsqrtEvalQuantizedInt8`, and
gemmlowp's Newton iteration in `GetInvSqrtQuantizedMultiplierExp`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import (
    ScaleError,
    check_reach,
    inverse_square_root,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.elementwise.common import Int64, sample_unary
from toolchain.ops.elementwise.kernels import sized_kernel
from toolchain.ops.elementwise.rows import Stored

_EXTRA_BITS = 20


def _checked(op: kit.AnyOperator) -> tuple[kit.Quantisation, kit.Quantisation]:
    """Quantisation of operand and result. Raises ScaleError where the largest root overruns."""
    x, y = op.x.q, op.y.q
    highest = int(np.iinfo(op.x.dtype.value).max)
    check_reach(math.sqrt((highest - x.zero_point) * x.scale) / y.scale, 1)
    return x, y


def _root(op: kit.AnyOperator, stored: Int64, most: float) -> Int64:
    """The root; of negative values, where LiteRT stops, that of 0. A quotient is `most` at most."""
    x, y = _checked(op)
    real = np.float32(x.scale) * np.maximum(stored - x.zero_point, 0).astype(np.float32)
    with np.errstate(over="ignore"):
        quotient = np.minimum(np.sqrt(real) / np.float32(y.scale), np.float32(most))
    whole: Int64 = np.trunc(quotient).astype(np.int64)
    return whole


def _sqrt(op: kit.AnyOperator, stored: Int64) -> Int64:
    clamped: Int64 = np.clip(_root(op, stored, 512) + op.y.q.zero_point, -128, 127)
    return clamped


def _sqrt_s16(op: kit.AnyOperator, stored: Int64) -> Int64:
    return _root(op, stored, 32767)


def _sqrt_kernel_s16(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    x, y = _checked(op)
    scales = {"input_scale": x.scale, "output_scale": y.scale}
    params = kit.Struct("thimble_sqrt_s16_params", scales)
    return sized_kernel(op, "thimble_sqrt_s16", {"params": params})


def _rsqrt(op: kit.AnyOperator, stored: Int64) -> Int64:
    """The reciprocal root; of a value that is not positive, the highest output."""
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


def sample(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    """Nothing negative: LiteRT stops there."""
    graph = sample_unary(rng, kind, attributes)
    x = graph.tensors["x"]
    lowest = replace(x, quantisation=kit.Quantisation((x.q.scale,), (-128,)))
    return replace(graph, tensors={**graph.tensors, "x": lowest})


SQRT, RSQRT = Stored(_sqrt), Stored(_rsqrt)
SQRT_S16 = Stored(_sqrt_s16, _sqrt_kernel_s16)
