"""Product of two int16 tensors, broadcasting. TFLite MUL, `reference_integer_ops::Mul`.

The factor s1 * s2 / s_out is taken in float32, as for int8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op
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
from toolchain.ops.forms import Choice
from toolchain.ops.kernel import Argument, Kernel, Struct
from toolchain.ops.preference import NoKernelError
from toolchain.ops.readers.int16 import int16_sample
from toolchain.ops.spec import Array, ReadOp, TfliteBinding, TfliteNode, WrittenOp


def _scaling(op: Op, graph: Graph) -> tuple[int, int]:
    one, two, y = graph.input(op, 0), graph.input(op, 1), graph.output(op)
    factor = ratio_float32(one.q.scale, two.q.scale, divisor=y.q.scale)
    return quantize_multiplier(factor, reach(one) * reach(two))


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    assert isinstance(op.attributes, Mul)
    a, b = (values.astype(np.int64) for values in inputs)
    scaled = multiply_by_quantized_multiplier(a * b, *_scaling(op, graph))
    low, high = clamp_range(op.attributes.activation, graph.output(op))
    return (np.clip(scaled, low, high).astype(np.int16),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    assert isinstance(op.attributes, Mul)
    require_types(op, graph, DType.INT16)
    multiplier, shift = _scaling(op, graph)
    low, high = clamp_range(op.attributes.activation, graph.output(op))
    struct = Struct(
        "thimble_mul_s16_params",
        {"multiplier": multiplier, "shift": shift, "min": low, "max": high},
    )
    return broadcast_kernel(op, graph, core, "thimble_mul_s16", struct)


def _cmsis_nn(op: Op, graph: Graph, core: Core) -> Kernel:
    """`arm_elementwise_mul_s16`. Raises NoKernelError for operands that broadcast."""
    assert isinstance(op.attributes, Mul)
    require_types(op, graph, DType.INT16)
    multiplier, shift = _scaling(op, graph)
    if shift > 0:
        raise NoKernelError("its products, shifted left, may wrap, which it leaves undefined")
    low, high = clamp_range(op.attributes.activation, graph.output(op))
    offsets: dict[str, Argument] = {"input_1_offset": 0, "input_2_offset": 0}
    ending: dict[str, Argument] = {
        "out_offset": 0,
        "out_mult": multiplier,
        "out_shift": shift,
        "out_activation_min": low,
        "out_activation_max": high,
    }
    return same_shape_kernel(op, graph, core, "arm_elementwise_mul_s16", offsets, ending)


def _read(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT16)
    return ReadOp(Mul(read_activation(node)), (0, 1))


def _write(op: Op, graph: Graph) -> WrittenOp:
    assert isinstance(op.attributes, Mul)
    fields = {"fusedActivationFunction": op.attributes.activation}
    return WrittenOp("MUL", "MulOptions", fields, version=4)


WIDE_MUL = replace(
    MUL,
    reference=_reference,
    select=Choice(_select, _cmsis_nn),
    sample=int16_sample(MUL.sample, finer=2**14),
    tflite=TfliteBinding(("MUL",), _read, _write),
    onnx=None,
    dtype=DType.INT16,
    limits="int16, any broadcast, fused activation",
)
