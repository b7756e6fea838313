"""Fully connected: output[n, o] = activation(sum_i input[n, i] * weights[o, i] + bias[o]).

TFLite FULLY_CONNECTED, int8, per-tensor weights with zero point 0. Arithmetic: TFLite
`reference_integer_ops::FullyConnected`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops._activation import Activation, clamp_range, read_activation
from toolchain.ops._fixed_point import multiply_by_quantized_multiplier, quantize_multiplier
from toolchain.ops.spec import (
    Array,
    Constant,
    Lowering,
    OpSpec,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

INPUT, WEIGHTS, BIAS = 0, 1, 2


@dataclass(frozen=True)
class FullyConnected(Attributes):
    """`keep_dims`: the output keeps the input's leading dimensions instead of being [n, o]."""

    activation: Activation = Activation.NONE
    keep_dims: bool = False


def _attributes(op: Op) -> FullyConnected:
    assert isinstance(op.attributes, FullyConnected)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    outputs, depth = weights.shape
    if x.elements % depth:
        raise ValueError(f"input of {x.elements} elements does not divide into rows of {depth}")
    if _attributes(op).keep_dims:
        return (TensorType((*x.shape[:-1], outputs), x.dtype),)
    return (TensorType((x.elements // depth, outputs), x.dtype),)


def _requantisation(op: Op, graph: Graph) -> tuple[int, int]:
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    return quantize_multiplier(x.q.scale * weights.q.scale / y.q.scale)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    depth = weights.shape[1]
    rows = inputs[INPUT].reshape(-1, depth).astype(np.int64) - x.q.zero_point
    total = rows @ inputs[WEIGHTS].astype(np.int64).T
    if len(op.inputs) > BIAS and op.inputs[BIAS]:
        total = total + inputs[BIAS].astype(np.int64)
    multiplier, shift = _requantisation(op, graph)
    scaled = multiply_by_quantized_multiplier(total, multiplier, shift) + y.q.zero_point
    low, high = clamp_range(_attributes(op).activation, y)
    return (np.clip(scaled, low, high).astype(np.int8).reshape(y.shape),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    outputs, depth = weights.shape
    multiplier, shift = _requantisation(op, graph)
    low, high = clamp_range(_attributes(op).activation, y)
    constants: tuple[Constant, ...] = ()
    if core.mve:
        assert weights.constant is not None
        sums = weights.constant.astype(np.int32).sum(axis=1, dtype=np.int32)
        constants = (Constant("kernel_sums", sums, "sum of each row of the weights"),)
    return Lowering(
        functions=("arm_fully_connected_s8",),
        constants=constants,
        fields={
            "batches": x.elements // depth,
            "depth": depth,
            "units": outputs,
            "input_offset": -x.q.zero_point,
            "output_offset": y.q.zero_point,
            "multiplier": multiplier,
            "shift": shift,
            "activation_min": low,
            "activation_max": high,
        },
    )


def _macs(op: Op, graph: Graph) -> int:
    return graph.output(op).elements * graph.input(op, WEIGHTS).shape[1]


def _read(node: TfliteNode) -> ReadOp:
    options = node.options
    weights = node.inputs[WEIGHTS]
    if options.weightsFormat != 0:
        raise node.unsupported("shuffled weights", "convert without the shuffled weights format")
    if weights is not None and weights.quantisation and any(weights.quantisation.zero_points):
        raise node.unsupported("weights with a zero point other than 0")
    attributes = FullyConnected(read_activation(node), bool(options.keepNumDims))
    present = tuple(i for i, tensor in enumerate(node.inputs) if tensor is not None)
    return ReadOp(attributes, present)


def _write(op: Op, graph: Graph) -> WrittenOp:
    attributes = _attributes(op)
    return WrittenOp(
        "FULLY_CONNECTED",
        "FullyConnectedOptions",
        {
            "fusedActivationFunction": attributes.activation,
            "keepNumDims": attributes.keep_dims,
        },
        version=4,
    )


def _sample(rng: np.random.Generator) -> Graph:
    rows, depth, outputs = (int(rng.integers(1, high)) for high in (4, 70, 20))
    scales = [float(np.float32(s)) for s in 2.0 ** rng.uniform(-8, -2, 3)]
    zeros = [int(z) for z in rng.integers(-128, 128, 2)]
    x = Tensor("x", (rows, depth), DType.INT8, Quantisation((scales[0],), (zeros[0],)))
    weights = Tensor(
        "weights",
        (outputs, depth),
        DType.INT8,
        Quantisation((scales[1],), (0,)),
        rng.integers(-127, 128, (outputs, depth)).astype(np.int8),
    )
    y_scale = float(np.float32(scales[0] * scales[1] * 60 * np.sqrt(depth)))
    y = Tensor("y", (rows, outputs), DType.INT8, Quantisation((y_scale,), (zeros[1],)))
    tensors, inputs = [x, weights, y], ["x", "weights"]
    if rng.random() < 0.8:
        bias_scale = float(np.float32(scales[0]) * np.float32(scales[1]))
        data = rng.integers(-20000, 20000, outputs).astype(np.int32)
        tensors.append(
            Tensor("bias", (outputs,), DType.INT32, Quantisation((bias_scale,), (0,)), data)
        )
        inputs.append("bias")
    activation = rng.choice(np.array(list(Activation), dtype=object))
    op = Op("fully_connected", "fc", tuple(inputs), ("y",), FullyConnected(activation))
    return Graph.build("sample", tensors, [op], ["x"], ["y"])


SPEC = OpSpec(
    kind="fully_connected",
    attributes=FullyConnected,
    infer=_infer,
    reference=_reference,
    lower=_lower,
    sample=_sample,
    macs=_macs,
    tflite=TfliteBinding(("FULLY_CONNECTED",), _read, _write),
    limits="int8, per-tensor weights",
)
