"""A product of float rows and an int8 matrix, as ONNX quantises dynamically.

DynamicQuantizeLinear, MatMulInteger, Cast and Mul: all rows are quantised together, as uint8, and
an int32 sum is multiplied by the product of both scales. Rows that are integers already (of a table
that a Gather reads) have a zero point; their scale is part of the weights' scales.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.convolution.window_f32 import window_f32
from toolchain.ops.hybrid import dynamic
from toolchain.ops.hybrid.dense import HybridDense, hybrid_dense
from toolchain.ops.hybrid.kernels import rows_kernel
from toolchain.ops.hybrid.sums import in_float32, real_weights, with_bias
from toolchain.ops.matmul.fully_connected import INT8
from toolchain.ops.readers.onnx import onnx_bias


def _read_onnx(node: kit.OnnxNode) -> None:
    """MatMulInteger by a constant matrix, and the bias that is added."""
    if not node.in_float and not node.attribute(dynamic.ROWS_ARE_STORED, 0):
        raise node.left_in_float("it computes on floats")
    if node.is_constant(kit.INPUT):
        raise node.unsupported("its first factor is constant", "swap the factors")
    matrix = node.shape(kit.WEIGHTS)
    if len(matrix) < 2 or math.prod(matrix[:-2]) != 1:
        raise node.unsupported(f"a second factor of shape {list(matrix)}", "one matrix can be")
    weights = dynamic.dynamic_weights(node, len(matrix) - 1)
    x, places = node.row_operand(kit.INPUT)
    filters = weights.data.reshape(matrix[-2:]).T[:, places]
    shape = node.output_shape()
    units = len(filters)
    bias = onnx_bias(node, dynamic.OPERANDS, units, axis=len(shape) - 1)
    activation = kit.Activation(node.fused_activation()) if node.in_float else kit.Activation.NONE
    inputs = [x, node.add_constant("weights", filters, weights.quantisation(0))]
    if bias is not None:
        inputs.append(node.add_constant("bias", bias.astype(np.float32), None))
    node.emit(
        "dynamic_fully_connected",
        HybridDense(activation, range=Range.ONNX),
        inputs,
        kit.Quantisation((1.0,), (0,)),
        tuple(range(len(shape))),
        (math.prod(shape[:-1]), units),
        kit.DType.FLOAT32,
    )


def _stored_reference(op: kit.Operator[HybridDense], inputs: kit.Inputs) -> kit.Arrays:
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    rows = inputs[kit.INPUT].reshape(-1, weights.shape[1]).astype(np.int64) - x.q.zero_point
    sums = in_float32(rows @ real_weights(op, inputs[kit.WEIGHTS]).T)
    scaled = sums * np.array(weights.q.scales, np.float32)
    return (with_bias(scaled, op, inputs, op.attributes.activation).reshape(op.y.shape),)


def _stored_select(op: kit.Operator[HybridDense], core: kit.Core) -> kit.Kernel:
    units, depth = op.input(kit.WEIGHTS).shape
    rows = op.input(kit.INPUT).elements // depth
    shapes = (1, 1, rows, depth), (1, 1, rows, units)
    return rows_kernel(op, core, window_f32(*shapes, kit.Window((1, 1)), op.attributes.activation))


def _stored_sample(rng: np.random.Generator) -> kit.Graph:
    graph = _FLOAT32.sample(rng)
    q = kit.Quantisation((1.0,), (int(rng.integers(-128, 128)),))
    x = replace(graph.tensors["x"], dtype=kit.DType.INT8, quantisation=q)
    return kit.with_tensors(graph, lambda tensor: x if tensor.name == "x" else tensor)


def _attributes(op: kit.Op, rng: np.random.Generator) -> kit.Attributes:
    return HybridDense(getattr(op.attributes, "activation", kit.Activation.NONE), range=Range.ONNX)


_FLOAT32 = dynamic.dynamic_form(
    hybrid_dense(INT8),
    kind="dynamic_fully_connected",
    sample=dynamic.dynamic_sample(INT8, "dynamic_fully_connected", 0, _attributes),
    onnx=kit.OnnxBinding(("MatMulInteger",), _read_onnx),
    limits=dynamic.LIMITS,
)
_STORED = replace(
    _FLOAT32,
    reference=_stored_reference,
    select=_stored_select,
    sample=_stored_sample,
    dtype=kit.DType.INT8,
    limits="int8 rows of a table, to float32",
)
SPEC = kit.OpSpec((_FLOAT32, _STORED))
