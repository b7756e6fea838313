"""Logarithm of the softmax over the last dimension in int8. TFLite LOG_SOFTMAX.

Arithmetic: `reference_integer_ops::LogSoftmax`, in Q5.26, with gemmlowp's logarithm
(`log_x_for_x_greater_than_or_equal_to_1_impl`). The output has scale 16/256 and zero point 127.
"""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import (
    one_over_one_plus_x,
    rounding_divide_by_pot,
    saturating_doubling_high_mul,
)
from toolchain.ops.elementwise import common as elementwise
from toolchain.ops.elementwise.common import Int64
from toolchain.ops.normalisation.rows import row_extents
from toolchain.ops.normalisation.softmax_s8 import (
    MOST_COLUMNS,
    Softmax,
    exponentials,
    softmax_scaling,
)

_OUTPUT_SCALE, _ZERO_POINT = 16 / 256, 127
_LOG_2, _FOURTH_ROOT_HALF, _ROOT_HALF = 1488522236, 1805811301, 1518500250
_ALPHA_N, _ALPHA_D, _ALPHA_I, _ALPHA_F = 117049297, 127690142, 1057819769, 638450708
_QUARTER = 1 << 23
_INT32_MIN = -(1 << 31)


def _one(value: int) -> Int64:
    return np.array([value], dtype=np.int64)


def _product(a: int, b: int) -> int:
    return int(saturating_doubling_high_mul(_one(a), b)[0])


def _saturated(value: int) -> int:
    return min(max(value, _INT32_MIN), (1 << 31) - 1)


def _logarithm(total: int) -> int:
    """ln of Q12.19 (at least 1), as Q5.26."""
    headroom = 32 - total.bit_length() - 1
    first = _saturated(2 * _product(_saturated(total << headroom), _ROOT_HALF))
    power = _saturated(_saturated((11 - headroom) << 25) + _QUARTER)
    scaled = _product(total, _ROOT_HALF)
    other = 32 - scaled.bit_length() - 1
    second = _saturated(total << other)
    power = max(power, _saturated(_saturated((12 - other) << 25) - _QUARTER))
    r = min(first, second)
    p = (r + _FOURTH_ROOT_HALF + 1) // 2
    q = 2 * (r - _FOURTH_ROOT_HALF)
    square = _product(q, q)
    numerator = _product(q, r) + _product(_product(q, square), _ALPHA_N)
    inner = _ALPHA_I + q + _product(_ALPHA_D, square)
    denominator = _product(p, inner) + _product(_ALPHA_F, q)
    inverse = int(one_over_one_plus_x(_one(denominator))[0])
    scaled_numerator = int(rounding_divide_by_pot(_one(numerator), 6)[0])
    return _saturated(2 * (_product(power, _LOG_2) + _product(scaled_numerator, inverse)))


def _reverse(op: kit.Operator[Softmax]) -> tuple[int, int]:
    """Multiplier and shift from Q5.26 back to input differences."""
    multiplier, shift, _ = softmax_scaling(op)
    return kit.quantize_multiplier((1 << (31 - shift)) / multiplier)


def _reference(op: kit.Operator[Softmax], inputs: kit.Inputs) -> kit.Arrays:
    shape = op.y.shape
    multiplier, shift, least = softmax_scaling(op)
    rows = inputs[0].reshape(-1, shape[-1]).astype(np.int64)
    diff = rows - rows.max(axis=1, keepdims=True)
    counts = diff >= least
    exps = exponentials(op, np.where(counts, -diff, 0))
    totals = np.where(counts, rounding_divide_by_pot(exps, 12), 0).sum(axis=1)
    logs = np.array([[_logarithm(int(total))] for total in totals], dtype=np.int64)
    reach = kit.multiply_by_quantized_multiplier(logs + _INT32_MIN, *_reverse(op))
    shown = diff > np.maximum(least - 1, reach)
    scaled = saturating_doubling_high_mul(np.where(shown, diff, 0) << shift, multiplier)
    value = rounding_divide_by_pot(scaled - logs, 22) + _ZERO_POINT
    output = np.where(shown, np.clip(value, -128, 127), -128)
    return (output.astype(np.int8).reshape(shape),)


def _select(op: kit.Operator[Softmax], core: kit.Core) -> kit.Kernel:
    elementwise.require_types(op, kit.DType.INT8)
    x, y = op.x, op.y
    columns = x.shape[-1] if x.shape else 0
    if not 0 < columns <= MOST_COLUMNS:
        raise op.refused(f"{columns} columns")
    if y.q.zero_point != _ZERO_POINT or y.q.scale != _OUTPUT_SCALE:
        raise op.refused(
            f"the output has scale {y.q.scale:g} and zero point "
            f"{y.q.zero_point}, not 1/16 and 127; convert with TFLite's int8 quantiser"
        )
    multiplier, shift, least = softmax_scaling(op)
    reverse = _reverse(op)
    entries = min(-least, 255) + 1
    table = exponentials(op, np.arange(256, dtype=np.int64)).astype(np.int32)
    params = kit.Struct(
        "thimble_log_softmax_params",
        {
            "exponentials": kit.Packed("exponentials"),
            "entries": entries,
            "multiplier": multiplier,
            "shift": shift,
            "reverse_multiplier": reverse[0],
            "reverse_shift": reverse[1],
            "least": least,
        },
    )
    call = kit.Call(
        "thimble_log_softmax_s8",
        {
            "input": kit.Input(0),
            "output": kit.Output(0),
            "rows": x.elements // columns,
            "columns": columns,
            "params": params,
        },
    )
    return kit.Kernel(
        (call,),
        row_extents("rows", "columns", lambda t: {"exponentials": 4 * t.call["params.entries"]}),
        constants=(
            kit.constant("exponentials", table[:entries], "exp(-i * scale), Q0.31", len(table)),
        ),
        find_overlaps=lambda: elementwise.overlaps_same_shape(op, core),
    )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    elementwise.check_node(node, kit.DType.INT8)
    return kit.ReadOp(Softmax(), (0,))


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = (*elementwise.sample_shape(rng, 3, 6)[1:], int(rng.integers(1, 60)))
    scale = kit.sample_scale(rng, -9, 1)
    x = kit.Tensor("x", shape, kit.DType.INT8, elementwise.sample_quantisation(rng, scale=scale))
    q = kit.Quantisation((_OUTPUT_SCALE,), (_ZERO_POINT,))
    return kit.sample("log_softmax", Softmax(), x, q=q)


LOG_SOFTMAX_S8 = kit.Form(
    kind="log_softmax",
    attributes=Softmax,
    infer=elementwise.infer_unary,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=kit.leading_axes,
    tflite=kit.TfliteBinding(
        ("LOG_SOFTMAX",),
        _read,
        lambda op: kit.WrittenOp("LOG_SOFTMAX", "LogSoftmaxOptions", version=2),
    ),
    dtype=kit.DType.INT8,
    limits="int8, last dimension, output scale 1/16",
)
