"""Sum and difference of two int16 tensors. TFLite ADD and SUB with scales of any value.

Arithmetic: `reference_ops::Add` with left shift 15; a difference is a sum whose second
factor is negative. Where all three scales are powers of two and
the file asks for it, TFLite shifts instead (`AddLSTM`), which is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import clamp_range, read_activation
from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.elementwise.addition import TOO_FAR_APART, Sum, cmsis_sum, sum_spec
from toolchain.ops.elementwise.common import check_node, require_types
from toolchain.ops.elementwise.kernels import broadcast_kernel, same_shape_kernel
from toolchain.ops.readers.int16 import int16_sample, power_of_two

_LEFT_SHIFT = 15


def _multipliers(op: kit.AnyOperator, sign: int) -> tuple[tuple[int, int], ...]:
    """Of operand 1, operand 2 and the output. Raises UnsupportedError where TFLite would abort."""
    one, two, out = (t.q.scale for t in (op.x, op.input(1), op.y))
    twice = 2 * max(one, two)
    reals = (one / twice, two / twice, twice / (out * 2**_LEFT_SHIFT))
    if not 0 < reals[2] < 1 or min(reals) <= 0:
        raise op.refused(
            f"scales {one:g}, {two:g} and {out:g} lie {TOO_FAR_APART}; "
            "requantise the model with a representative data set"
        )
    first, second, output = (quantize_multiplier(real) for real in reals)
    return first, (sign * second[0], second[1]), output


def int16_sum_spec(kind: str, sign: int) -> kit.Form[Any]:
    """The int16 spec of `add` (sign 1) or `sub` (sign -1)."""
    base = sum_spec(kind, sign)

    def reference(op: kit.Operator[Sum], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
        first, second, out = _multipliers(op, sign)
        a, b = (values.astype(np.int64) << _LEFT_SHIFT for values in inputs)
        total = multiply_by_quantized_multiplier(a, *first)
        total = total + multiply_by_quantized_multiplier(b, *second)
        low, high = clamp_range(op.attributes.activation, op.y)
        scaled = multiply_by_quantized_multiplier(total, *out)
        return (np.clip(scaled, low, high).astype(np.int16),)

    def select(op: kit.Operator[Sum], core: kit.Core) -> kit.Kernel:
        require_types(op, kit.DType.INT16)
        first, second, out = _multipliers(op, sign)
        low, high = clamp_range(op.attributes.activation, op.y)
        params = {
            "left_shift": _LEFT_SHIFT,
            "multiplier_1": first[0],
            "shift_1": first[1],
            "multiplier_2": second[0],
            "shift_2": second[1],
            "output_multiplier": out[0],
            "output_shift": out[1],
            "min": low,
            "max": high,
        }
        struct = kit.Struct("thimble_add_s16_params", params)
        return broadcast_kernel(op, core, "thimble_add_s16", struct)

    def cmsis_nn(op: kit.Operator[Sum], core: kit.Core) -> kit.Kernel:
        """`arm_elementwise_add_s16`. Raises NoKernelError for operands that broadcast."""
        require_types(op, kit.DType.INT16)
        low, high = clamp_range(op.attributes.activation, op.y)
        scaling = cmsis_sum(_multipliers(op, sign), (0, 0, 0), _LEFT_SHIFT, low, high)
        return same_shape_kernel(op, core, "arm_elementwise_add_s16", *scaling)

    return replace(
        base,
        reference=reference,
        select=kit.Choice(select, cmsis_nn) if sign == 1 else select,
        sample=int16_sample(base.sample),
        tflite=kit.TfliteBinding((kind.upper(),), _read, _write),
        onnx=None,
        dtype=kit.DType.INT16,
        limits="int16, any broadcast, fused activation; scales not all powers of two",
    )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    check_node(node, kit.DType.INT16)
    scales = [t.q.scale for t in (*node.inputs, *node.outputs) if t is not None]
    if node.options.potScaleInt16 and None not in map(power_of_two, scales):
        raise node.unsupported(
            "int16 with power-of-two scales, which are added by shifts",
            "convert with the 16x8 scheme, which calibrates scales",
        )
    return kit.ReadOp(Sum(read_activation(node)), (0, 1))


def _write(op: kit.Operator[Sum]) -> kit.WrittenOp:
    fields = {"fusedActivationFunction": op.attributes.activation, "potScaleInt16": False}
    return kit.WrittenOp(op.kind.upper(), f"{op.kind.capitalize()}Options", fields, version=3)
