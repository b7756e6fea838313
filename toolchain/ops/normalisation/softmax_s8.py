"""Softmax over the last dimension. TFLite SOFTMAX, int8 to int8, output scale 1/256, zero -128; or
to int16, scale 1/65536, zero -32768.

Arithmetic: `reference_ops::Softmax` for integers (gemmlowp fixed point: exponentials with 5 integer
bits, sums with 12); parameters as in `PreprocessSoftmaxScaling` and `CalculateInputRadius`. Where
the sum of a row's exponentials reaches 512 LiteRT aborts; every quotient is below half a unit then,
and rounds to 0 here.

CMSIS-NN's `arm_softmax_s8` is exact too, but evaluates two exponential series an element (530
instructions on a Cortex-M4, 3.7 KB of code); a table of at most 1 KB takes their place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

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

_DIFF_INTEGER_BITS = 5
_SUM_INTEGER_BITS = 12
_Q31_MAX = 2**31 - 1
_OUTPUTS = {kit.DType.INT8: (1 / 256, -128), kit.DType.INT16: (1 / 65536, -32768)}
"""Scale and zero point of each output type."""
MOST_COLUMNS = 4095
"""The sum of more exponentials would overflow Q12.19."""


@dataclass(frozen=True)
class Softmax(kit.Attributes):
    """`beta`, an exact float32, multiplies the inputs. `to` is the output's type for
    int8 inputs.
    """

    beta: float = 1.0
    to: kit.DType = kit.DType.INT8


def _infer(op: kit.Operator[Softmax]) -> kit.TensorTypes:
    x = op.x
    return (kit.TensorType(x.shape, op.attributes.to if x.dtype is kit.DType.INT8 else x.dtype),)


def softmax_scaling(op: kit.Operator[Softmax]) -> tuple[int, int, int]:
    """Multiplier, left shift, and the least input difference whose exponential is not 0."""
    scale = op.x.q.scale
    real = op.attributes.beta * scale * (1 << (31 - _DIFF_INTEGER_BITS))
    if not real > 1:
        raise op.refused(
            f"beta {op.attributes.beta:g} times the input scale {scale:g} is "
            "below 2**-26; requantise the model with a representative data set"
        )
    multiplier, shift = kit.quantize_multiplier(min(real, _Q31_MAX / 2))
    span = ((1 << _DIFF_INTEGER_BITS) - 1) * (1 << (31 - _DIFF_INTEGER_BITS)) / (1 << shift)
    return multiplier, shift, -math.floor(span)


def _exp_on_negative_values(a: Int64) -> Int64:
    """gemmlowp `exp_on_negative_values`: Q5.26 in, Q0.31 out."""
    quarter = 1 << 24
    mod = (a & (quarter - 1)) - quarter
    x = (mod << 5) + (1 << 28)
    x2 = saturating_doubling_high_mul(x, x)
    x3 = saturating_doubling_high_mul(x2, x)
    x4 = saturating_doubling_high_mul(x2, x2)
    third = saturating_doubling_high_mul(rounding_divide_by_pot(x4, 2) + x3, 715827883)
    series = x + rounding_divide_by_pot(third + x2, 1)
    result = 1895147668 + saturating_doubling_high_mul(series, 1895147668)
    remainder = mod - a
    factors = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
    for bit, factor in enumerate(factors, start=24):
        scaled = saturating_doubling_high_mul(result, factor)
        result = np.where(remainder & (1 << bit), scaled, result)
    exact: Int64 = np.where(a == 0, _Q31_MAX, result)
    return exact


def exponentials(op: kit.Operator[Softmax], differences: Int64) -> Int64:
    """exp(-difference * scale * beta) in Q0.31, for all differences whose exponential is not 0."""
    multiplier, shift, least = softmax_scaling(op)
    counted = np.minimum(differences, -least)
    return _exp_on_negative_values(saturating_doubling_high_mul(-counted << shift, multiplier))


def _reference(op: kit.Operator[Softmax], inputs: kit.Inputs) -> kit.Arrays:
    least = softmax_scaling(op)[2]
    y = op.y
    shape, bits = y.shape, 8 * y.dtype.size_bytes
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    rows = inputs[0].reshape(-1, shape[-1]).astype(np.int64)
    diff = rows - rows.max(axis=1, keepdims=True)
    counts = diff >= least
    exps = exponentials(op, np.where(counts, -diff, 0))
    to_sum = rounding_divide_by_pot(exps, _SUM_INTEGER_BITS)
    total = np.where(counts, to_sum, 0).sum(axis=1, keepdims=True)
    headroom = np.array([[32 - int(value).bit_length()] for value in total[:, 0]], dtype=np.int64)
    exponent = _SUM_INTEGER_BITS - headroom + 31 - bits
    total, headroom = np.where(exponent < 32, total, 1 << 19), np.where(exponent < 32, headroom, 12)
    reciprocal = one_over_one_plus_x((total << headroom) - (1 << 31))
    result = rounding_divide_by_pot(saturating_doubling_high_mul(exps, reciprocal), exponent)
    output = np.where(counts & (exponent < 32), np.clip(result + low, low, high), low)
    return (output.astype(y.dtype.numpy).reshape(shape),)


def _check_output(op: kit.AnyOperator) -> None:
    elementwise.require_types(op, *_OUTPUTS)
    x, y = op.x, op.y
    scale, zero = _OUTPUTS[y.dtype]
    if not x.shape:
        raise op.refused("the input is a scalar")
    off = y.q.zero_point != zero or abs(y.q.scale / scale - 1) > 1e-3
    if off and y.dtype is kit.DType.INT8:  # LiteRT looks at neither where the output is int16
        raise op.refused(
            f"the output has scale {y.q.scale:g} and zero point "
            f"{y.q.zero_point}, not {scale:g} and {zero}; convert with TFLite's int8 quantiser"
        )
    if y.dtype is kit.DType.INT16 and x.shape[-1] > MOST_COLUMNS:
        raise op.refused(
            f"{x.shape[-1]} columns to int16 are more than {MOST_COLUMNS}, "
            "whose sum the fixed point of its kernel holds; convert it with an int8 output"
        )


def _select(op: kit.Operator[Softmax], core: kit.Core) -> kit.Kernel:
    _check_output(op)
    x, y = op.x, op.y
    columns = x.shape[-1]
    table = exponentials(op, np.arange(256, dtype=np.int64)).astype(np.int32)
    entries = min(-softmax_scaling(op)[2], 255) + 1
    narrow, rows = y.dtype is kit.DType.INT8, x.elements // columns
    call = kit.Call(
        "thimble_softmax_s8" if narrow else "thimble_softmax_s8_s16",
        {
            "input": kit.Input(0),
            "output": kit.Output(0),
            "rows": rows,
            "columns": columns,
            "exponentials": kit.Packed("exponentials"),
            "entries": entries,
        },
    )
    return kit.Kernel(
        (call,),
        row_extents("rows", "columns", lambda t: {"exponentials": 4 * t.call["entries"]}),
        constants=(
            kit.constant(
                "exponentials", table[:entries], "exp(-i * scale * beta), Q0.31", len(table)
            ),
        ),
        find_overlaps=lambda: elementwise.overlaps_same_shape(op, core),
        find_terms=lambda: _terms(rows, columns, entries),
    )


def _cmsis_nn(op: kit.Operator[Softmax], core: kit.Core) -> kit.Kernel:
    """`arm_softmax_s8` and `arm_softmax_s8_s16`.

    Elements far below the row's largest have no exponential. How many those are depends on the
    data; the terms count them as if all bytes were equally frequent.
    """
    _check_output(op)
    x, y = op.x, op.y
    multiplier, shift, least = softmax_scaling(op)
    columns = x.shape[-1]
    rows = x.elements // columns
    call = kit.Call(
        "arm_softmax_s8" if y.dtype is kit.DType.INT8 else "arm_softmax_s8_s16",
        {
            "input": kit.Input(0),
            "num_rows": rows,
            "row_size": columns,
            "mult": multiplier,
            "shift": shift,
            "diff_min": least,
            "output": kit.Output(0),
        },
    )
    return kit.Kernel(
        (call,),
        row_extents("num_rows", "row_size"),
        find_terms=lambda: {
            "call": 1.0,
            "row": rows,
            "element": rows * columns,
            "exponential": rows * columns * min(1 - least, 256) / 256,
        },
    )


def _terms(rows: int, columns: int, entries: int) -> kit.Terms:
    """`thimble_softmax_s8` reads each row three times. Elements count that are less than `entries`
    below their row's largest: here those of evenly spread ones.
    """
    near = min(entries * (columns + 1) / (256 * columns), 1.0)
    return {
        "call": 1.0,
        "row": rows,
        "near element": rows * columns * near,
        "element": rows * columns,
        "sixteen": rows * (columns // 16),
        "rest": rows * (columns % 16),
    }


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    elementwise.check_node(node, *_OUTPUTS)
    return kit.ReadOp(Softmax(float(node.options.beta), node.outputs[0].dtype), (0,))


def _write(op: kit.Operator[Softmax]) -> kit.WrittenOp:
    return kit.WrittenOp("SOFTMAX", "SoftmaxOptions", {"beta": op.attributes.beta}, version=2)


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = (*elementwise.sample_shape(rng, 3, 6), int(rng.integers(1, 40)))
    q = kit.Quantisation((kit.sample_scale(rng, -10, 2),), (int(rng.integers(-128, 128)),))
    x = kit.Tensor("x", shape, kit.DType.INT8, q)
    to = kit.DType.INT8 if rng.random() < 0.7 else kit.DType.INT16
    scale, zero = _OUTPUTS[to]
    beta = 1.0 if rng.random() < 0.6 else kit.sample_scale(rng, -2, 3)
    return kit.sample("softmax", Softmax(beta, to), x, q=kit.Quantisation((scale,), (zero,)))


SOFTMAX_S8 = kit.Form(
    quantised=kit.Quantised(wide_zero=None),
    kind="softmax",
    attributes=Softmax,
    infer=_infer,
    reference=_reference,
    select=kit.Choice(_select, _cmsis_nn),
    sample=_sample,
    axes=kit.leading_axes,
    tflite=kit.TfliteBinding(("SOFTMAX",), _read, _write),
    types=frozenset(_OUTPUTS),
    dtype=kit.DType.INT8,
    limits="int8, last dimension, output int8 of scale 1/256 or int16 of scale 1/65536",
)
