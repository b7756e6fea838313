"""Fully connected: output[n, o] = activation(sum_i input[n, i] * weights[o, i] + bias[o]).

TFLite FULLY_CONNECTED. Int8 rows meet int8 weights, per channel with zero point 0, or per tensor
with any, constant or computed at run time; of int16 rows with constant int8 weights: LiteRT
`reference_integer_ops::FullyConnected` and `FullyConnectedPerChannel`, which since 2025 scale the
sum (int32, or int64 of int16 rows) in double precision and round once, halves away from zero (TFLM
and CMSIS-NN round twice). Float32 follows `reference_ops::FullyConnected`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.arithmetic.fixed_point import round_half_away
from toolchain.ops.convolution.common import check_operands, random_operands
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.kernels import thimble_convolve_f32
from toolchain.ops.convolution.reductions import run_of_rows
from toolchain.ops.hybrid.dense import hybrid_dense
from toolchain.ops.matmul.batch_matmul import read_batched
from toolchain.ops.matmul.kernels import (
    dense,
    thimble_fully_connected_computed_s8,
    thimble_fully_connected_joined_s8,
    thimble_fully_connected_lanes_s8,
    thimble_fully_connected_s8,
    thimble_fully_connected_s16,
)
from toolchain.ops.matmul.kernels.cmsis_nn import arm_fully_connected_s8, arm_fully_connected_s16
from toolchain.ops.matmul.partial_fully_connected import (
    PartialFullyConnected,
    layer_axes,
    leading_dimensions,
)
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.readers.float32 import float32_form, with_bias_and_activation
from toolchain.ops.readers.int16 import int16_form
from toolchain.ops.readers.onnx import StoredWeights, add_bias, onnx_bias, stored_weights
from toolchain.ops.reduction.requantise_sums import Law, RequantiseSums


@dataclass(frozen=True)
class FullyConnected(kit.Attributes):
    """`keep_dims`: the output keeps the input's leading dimensions instead of being [n, o]."""

    activation: kit.Activation = kit.Activation.NONE
    keep_dims: bool = False


def _infer(op: kit.Operator[FullyConnected]) -> kit.TensorTypes:
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    rows, units = leading_dimensions(x, weights, op.attributes.keep_dims), weights.shape[0]
    scales = 1 if weights.quantisation is None else len(weights.q.scales)
    if scales not in (1, units):
        raise ValueError(f"{scales} weight scales for {units} outputs")
    if op.given(kit.BIAS) is not None and op.input(kit.BIAS).elements != units:
        raise ValueError(f"bias {op.input(kit.BIAS)} for {units} outputs")
    return (kit.TensorType((*rows, units), x.dtype),)


def _reference(op: kit.Operator[FullyConnected], inputs: kit.Inputs) -> kit.Arrays:
    x, weights, y = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    depth = weights.shape[1]
    rows = inputs[kit.INPUT].reshape(-1, depth).astype(np.int64) - x.q.zero_point
    zero_point = 0 if weights.q.per_channel else weights.q.zero_point
    total = rows @ (inputs[kit.WEIGHTS].astype(np.int64) - zero_point).T
    if op.given(kit.BIAS) is not None:
        total = total + inputs[kit.BIAS].astype(np.int64)
    total = total if y.dtype is kit.DType.INT16 else kit.wrap_int32(total)
    scaled = round_half_away(total.astype(np.float64) * dense.sum_factors(op)) + y.q.zero_point
    low, high = kit.clamp_range(op.attributes.activation, y)
    return (np.clip(scaled, low, high).astype(y.dtype.numpy).reshape(y.shape),)


def _float_reference(op: kit.Operator[FullyConnected], inputs: kit.Inputs) -> kit.Arrays:
    units, depth = op.input(kit.WEIGHTS).shape
    x, filters = (inputs[i].astype(np.float32) for i in (kit.INPUT, kit.WEIGHTS))
    rows = x.reshape(-1, depth)
    sums = np.zeros((len(rows), units), np.float32)
    for index in range(depth):
        sums = sums + rows[:, index, None] * filters[:, index]
    y = op.y
    return (with_bias_and_activation(sums, op, inputs, op.attributes.activation).reshape(y.shape),)


def _ending(op: kit.Operator[FullyConnected]) -> RequantiseSums:
    scales = dense.dense_scaling(op)
    distinct = slice(1 if len(dense.sum_factors(op)) == 1 else None)
    return RequantiseSums(
        Law.ONCE,
        tuple(scales.multiplier[distinct].tolist()),
        tuple(scales.code[distinct].tolist()),
        tuple(scales.low[distinct].tolist()),
        offset=op.y.q.zero_point,
        activation=op.attributes.activation,
    )


def _reductions(op: kit.Operator[FullyConnected]) -> tuple[kit.Reduction, ...]:
    """The inputs, in runs of whole indices of one axis."""
    x = op.input(kit.INPUT)
    run = run_of_rows(x.shape, op.input(kit.WEIGHTS).shape[1])
    if (
        run is None
        or any(op.input(kit.WEIGHTS).q.zero_points)
        or not all(tensor.is_constant for tensor in op.present[1:])
    ):
        return ()
    axis, read = run
    return (
        kit.Reduction(
            x.shape[axis],
            (kit.Reach(axis), read, None),
            "partial_fully_connected",
            PartialFullyConnected(op.attributes.keep_dims),
            lambda: _ending(op),
        ),
    )


def _select(op: kit.Operator[FullyConnected], core: kit.Core) -> kit.Kernel:
    """Thimble's kernel on every core. Units are joined where an instruction has two products.

    Raises UnsupportedError if no integers scale the sums as LiteRT does.
    """
    weights = op.input(kit.WEIGHTS)
    filters = dense.known_filters(weights)
    if filters is None:
        return thimble_fully_connected_computed_s8.kernel(op)
    bits = 4 if weights.shape[1] > 4 and packing.fit_nibbles(filters) else 8
    if core.mve:
        return thimble_fully_connected_lanes_s8.kernel(op, bits)
    joined = bits == 8 and not core.multiplies_alone
    if joined and thimble_fully_connected_joined_s8.takes(op):
        return thimble_fully_connected_joined_s8.kernel(op)
    return thimble_fully_connected_s8.kernel(op, bits)


def _macs(op: kit.AnyOperator) -> int:
    return op.y.elements * op.input(kit.WEIGHTS).shape[1]


def _check_bias_scale(node: kit.TfliteNode) -> None:
    """LiteRT takes no other scale than the product's (`GetQuantizedConvolutionMultipler`). Where
    weights have a scale for each channel it does not look at the bias's.
    """
    x, weights, y = node.inputs[kit.INPUT], node.inputs[kit.WEIGHTS], node.outputs[0]
    bias = node.inputs[kit.BIAS] if len(node.inputs) > kit.BIAS else None
    if x is None or weights is None or bias is None or bias.quantisation is None:
        return
    if weights.q.per_channel:
        return
    product = float(np.float32(x.q.scale) * np.float32(weights.q.scales[0]))
    if abs(product - bias.q.scales[0]) > 0.02 * y.q.scale:
        raise node.unsupported(
            f"its bias has the scale {bias.q.scales[0]:g}, not {product:g}, input times weights",
            "quantise the bias by the scale of the input times that of the weights",
        )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    options = node.options
    if options.weightsFormat != "DEFAULT":
        raise node.unsupported("shuffled weights", "convert without the shuffled weights format")
    narrow = node.outputs[0].dtype in (kit.DType.INT8, kit.DType.FLOAT32)
    check_operands(node, 2, computed=narrow)
    _check_bias_scale(node)
    attributes = FullyConnected(kit.read_activation(node), bool(options.keepNumDims))
    return kit.ReadOp(attributes, kit.present_inputs(node))


def _write(op: kit.Operator[FullyConnected]) -> kit.WrittenOp:
    attributes = op.attributes
    return kit.WrittenOp(
        "FULLY_CONNECTED",
        "FullyConnectedOptions",
        {
            "fusedActivationFunction": attributes.activation,
            "keepNumDims": attributes.keep_dims,
        },
        version=4,
    )


def _sample(rng: np.random.Generator) -> kit.Graph:
    rows, depth, outputs = (int(rng.integers(1, high)) for high in (4, 70, 20))
    operands, y_q = random_operands(rng, (rows, depth), (outputs, depth), depth, biased=0.8)
    attributes = FullyConnected(kit.sample_activation(rng))
    return kit.sample("fully_connected", attributes, *operands, q=y_q, name="fc")


def _sample_any(rng: np.random.Generator) -> kit.Graph:
    """Some with weights that are computed, or have a zero point."""
    graph = _sample(rng)
    if rng.random() < 0.6:
        return graph
    weights, computed = graph.tensors["weights"], rng.random() < 0.7
    zero_point = int(rng.choice([0, -128, 127, int(rng.integers(-128, 128))]))
    constant = rng.integers(-128, 128, weights.shape).astype(np.int8)
    if rng.random() < 0.3:  # within int8 also without the zero point
        zero_point = int(rng.integers(-60, 61))
        constant = (rng.integers(-60, 61, weights.shape) + zero_point).astype(np.int8)
    other = replace(
        weights,
        quantisation=kit.Quantisation((max(weights.q.scales),), (zero_point,)),
        constant=None if computed else constant,
    )
    tensors = {**graph.tensors, "weights": other}
    if "bias" in tensors:
        scale = float(np.float32(tensors["x"].q.scale) * np.float32(other.q.scale))
        tensors["bias"] = replace(tensors["bias"], quantisation=kit.Quantisation((scale,), (0,)))
    given = ["x", "weights"] if computed else ["x"]
    return kit.Graph.build("sample", tensors.values(), graph.ops, given, ["y"])


def _read_gemm(node: kit.OnnxNode) -> None:
    """Gemm: alpha * A * B + beta * C with constant B and C."""
    column = 0 if node.attribute("transB", 0) else 1
    weights = stored_weights(node, kit.WEIGHTS, axis=column)
    alpha, beta = (float(node.attribute(name, 1.0)) for name in ("alpha", "beta"))
    if node.attribute("transA", 0):
        x, places = node.operand(kit.INPUT, (1, 0)), np.arange(node.shape(0)[0])
    else:
        x, places = node.row_operand(kit.INPUT)
    if alpha <= 0:
        raise node.unsupported(
            f"alpha is {alpha:g}; it must be positive", "put it into the weights, with alpha 1"
        )
    filters = (weights.data if column == 0 else weights.data.T)[:, places]
    if node.in_float:
        filters = (filters * alpha).astype(filters.dtype)
    bias = node.constant(kit.BIAS).real * beta if node.has(kit.BIAS) else None
    if bias is not None and bias.size not in (1, len(filters)):
        raise node.unsupported(
            f"C has the shape {list(bias.shape)}; one value per column can be",
            "leave it out, and add it by an Add behind the Gemm",
        )
    following = node.following_bias(axis=1)
    if following is not None:
        bias = following if bias is None else bias.reshape(-1) + following
    scales = weights.scales * np.float32(alpha)
    _emit_onnx(node, x, StoredWeights(filters, scales, weights.zero_point), bias)


def _read_matmul(node: kit.OnnxNode) -> None:
    """MatMul by a constant matrix, and the bias that is added to it; any other is batched."""
    matrix = (
        node.is_constant(kit.WEIGHTS)
        and sum(size != 1 for size in node.shape(kit.WEIGHTS)[:-2]) == 0
    )
    if not matrix or node.is_constant(kit.INPUT) or len(node.shape(kit.WEIGHTS)) < 2:
        read_batched(node)
        return
    weights = stored_weights(node, kit.WEIGHTS, axis=len(node.shape(kit.WEIGHTS)) - 1)
    x, places = node.row_operand(kit.INPUT)
    filters = weights.data.reshape(weights.data.shape[-2:]).T[:, places]
    bias = onnx_bias(node, 2, len(filters), axis=len(node.output_shape()) - 1)
    _emit_onnx(node, x, replace(weights, data=filters), bias)


def _emit_onnx(
    node: kit.OnnxNode, x: str, weights: StoredWeights, bias: NDArray[np.float64] | None
) -> None:
    """Weights with a zero point: a convolution of pixels, whose kernel knows such."""
    q, shape = node.output_quantisation(), node.output_shape()
    units, depth = weights.data.shape
    rows = math.prod(shape[:-1])
    activation = kit.Activation(node.fused_activation())
    filters, quantisation = weights.data, weights.quantisation(0)
    kind, stored = "fully_connected", tuple[int, ...]((rows, units))
    attributes: kit.Attributes = FullyConnected(activation)
    if weights.zero_point:
        pixels = (1, rows, 1, depth)
        x = node.intermediate("reshape", Reshape(pixels), [x], pixels, node.quantisation(kit.INPUT))
        filters, kind, stored = filters.reshape(units, 1, 1, depth), "conv2d", (1, rows, 1, units)
        attributes = Conv2D(activation=activation, rounding=kit.Rounding.ONNX)
    inputs = [x, node.add_constant("weights", filters, quantisation)]
    if bias is not None:
        whole = np.broadcast_to(bias.reshape(-1), (units,))
        inputs.append(add_bias(node, whole, node.quantisation(kit.INPUT).scale, weights))
    node.emit(kind, attributes, inputs, q, tuple(range(len(shape))), stored)


def _read_onnx(node: kit.OnnxNode) -> None:
    (_read_gemm if node.operator == "Gemm" else _read_matmul)(node)


INT8 = kit.Form(
    quantised=kit.WEIGHTED,
    kind="fully_connected",
    attributes=FullyConnected,
    infer=_infer,
    reference=_reference,
    select=kit.Choice(_select, arm_fully_connected_s8.kernel),
    sample=_sample_any,
    macs=_macs,
    axes=layer_axes,
    reductions=_reductions,
    tflite=kit.TfliteBinding(("FULLY_CONNECTED",), _read, _write),
    onnx=kit.OnnxBinding(("Gemm", "MatMul"), _read_onnx),
    dtype=kit.DType.INT8,
    limits="int8 or legacy uint8; constant weights, int4 too, per channel or per tensor; int8 "
    "weights with a zero point, or computed",
)
_INT16 = int16_form(
    replace(INT8, sample=_sample),
    "int16 with constant int8 weights and int64 bias",
    kit.Choice(thimble_fully_connected_s16.kernel, arm_fully_connected_s16.kernel),
)
_FLOAT32 = float32_form(
    INT8, "float32, constant or computed weights", _float_reference, thimble_convolve_f32.layer
)
SPEC = kit.OpSpec((INT8, _INT16, _FLOAT32, hybrid_dense(_FLOAT32)))
