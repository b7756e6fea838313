"""Product of two int16 tensors, broadcasting. TFLite MUL, `reference_integer_ops::Mul`.

The factor s1 * s2 / s_out is taken in float32, as for int8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import clamp_range, read_activation
from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.elementwise.common import (
    check_node,
    ratio_float32,
    reach,
    require_types,
)
from toolchain.ops.elementwise.kernels import broadcast_kernel, same_shape_kernel
from toolchain.ops.elementwise.multiplication import MUL, Mul
from toolchain.ops.readers.int16 import int16_sample


def _scaling(op: kit.AnyOperator) -> tuple[int, int]:
    one, two, y = op.x, op.input(1), op.y
    factor = ratio_float32(one.q.scale, two.q.scale, divisor=y.q.scale)
    return quantize_multiplier(factor, reach(one) * reach(two))


def _reference(op: kit.Operator[Mul], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    a, b = (values.astype(np.int64) for values in inputs)
    scaled = multiply_by_quantized_multiplier(a * b, *_scaling(op))
    low, high = clamp_range(op.attributes.activation, op.y)
    return (np.clip(scaled, low, high).astype(np.int16),)


def _select(op: kit.Operator[Mul], core: kit.Core) -> kit.Kernel:
    require_types(op, kit.DType.INT16)
    multiplier, shift = _scaling(op)
    low, high = clamp_range(op.attributes.activation, op.y)
    struct = kit.Struct(
        "thimble_mul_s16_params",
        {"multiplier": multiplier, "shift": shift, "min": low, "max": high},
    )
    return broadcast_kernel(op, core, "thimble_mul_s16", struct)


def _cmsis_nn(op: kit.Operator[Mul], core: kit.Core) -> kit.Kernel:
    """`arm_elementwise_mul_s16`. Raises NoKernelError for operands that broadcast."""
    require_types(op, kit.DType.INT16)
    multiplier, shift = _scaling(op)
    if shift > 0:
        raise kit.NoKernelError("its products, shifted left, may wrap, which it leaves undefined")
    low, high = clamp_range(op.attributes.activation, op.y)
    offsets: dict[str, kit.Argument] = {"input_1_offset": 0, "input_2_offset": 0}
    ending: dict[str, kit.Argument] = {
        "out_offset": 0,
        "out_mult": multiplier,
        "out_shift": shift,
        "out_activation_min": low,
        "out_activation_max": high,
    }
    return same_shape_kernel(op, core, "arm_elementwise_mul_s16", offsets, ending)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    check_node(node, kit.DType.INT16)
    return kit.ReadOp(Mul(read_activation(node)), (0, 1))


def _write(op: kit.Operator[Mul]) -> kit.WrittenOp:
    fields = {"fusedActivationFunction": op.attributes.activation}
    return kit.WrittenOp("MUL", "MulOptions", fields, version=4)


WIDE_MUL = replace(
    MUL,
    reference=_reference,
    select=kit.Choice(_select, _cmsis_nn),
    sample=int16_sample(MUL.sample, finer=2**14),
    tflite=kit.TfliteBinding(("MUL",), _read, _write),
    onnx=None,
    dtype=kit.DType.INT16,
    limits="int16, any broadcast, fused activation",
)
