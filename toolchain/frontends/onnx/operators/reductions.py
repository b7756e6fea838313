"""Reductions, softmaxes and norms."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.onnx.operators.chain import Chain
from toolchain.frontends.onnx.operators.older import given, without
from toolchain.frontends.onnx.operators.row import Older, Operator
from toolchain.frontends.onnx.quantisation import UNIT
from toolchain.frontends.onnx.writing import Writer
from toolchain.ir import Attributes
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.elementwise.kinds import FloatFunction
from toolchain.ops.readers.onnx import resolve_axes
from toolchain.ops.spec import OnnxNode

_ONE_AXIS = 13
"""The first opset whose softmaxes are over one dimension."""
_SMALLEST = float(np.finfo(np.float32).tiny)


def _keeps(writer: Writer) -> bool:
    return bool(writer.node.attributes.get("keepdims", 1))


def _sum_of_magnitudes(writer: Writer) -> None:
    writer.answer_sum(writer.op("Abs", [writer.node.inputs[0]]))


def _sum_of_squares(writer: Writer) -> None:
    x = writer.node.inputs[0]
    writer.answer_sum(writer.op("Mul", [x, x]))


def _root_of_squares(writer: Writer) -> None:
    x = writer.node.inputs[0]
    squares = writer.op("Mul", [x, x])
    writer.answer("Sqrt", [writer.sum(squares, writer.axes(), keep=_keeps(writer))])


def _log_of_sum(writer: Writer) -> None:
    x = writer.node.inputs[0]
    writer.answer("Log", [writer.sum(x, writer.axes(), keep=_keeps(writer))])


def _log_of_powers(writer: Writer) -> None:
    """The logarithm of summed powers, less the largest, so that nothing overflows."""
    x, axes, keep = writer.node.inputs[0], writer.axes(), _keeps(writer)
    most = writer.largest(x, axes, keep=True)
    powers = writer.op("Exp", [writer.op("Sub", [x, most])])
    logarithm = writer.op("Log", [writer.sum(powers, axes, keep=keep)])
    if not keep:
        most = writer.largest(x, axes, keep=False)
    writer.answer("Add", [logarithm, most])


def _lp_normalization(writer: Writer) -> None:
    x, attributes = writer.node.inputs[0], writer.node.attributes
    axes = [int(attributes.get("axis", -1))]
    if attributes.get("p", 2) == 1:
        norm = writer.sum(writer.op("Abs", [x]), axes, keep=True)
    else:
        norm = writer.op("Sqrt", [writer.sum(writer.op("Mul", [x, x]), axes, keep=True)])
    writer.answer("Div", [x, writer.op("Max", [norm, writer.constant(_SMALLEST)])])


def _softmax(writer: Writer) -> None:
    """Softmax; below opset 13 over all dimensions from `axis` on, which are joined to one."""
    node, shape = writer.node, writer.shapes[writer.node.inputs[0]]
    axis = int(node.attributes.get("axis", 1)) % max(len(shape), 1)
    whole = math.prod(shape[axis:])
    if writer.opset >= _ONE_AXIS or whole == shape[-1]:
        return
    flat = writer.reshaped(node.inputs[0], [math.prod(shape[:axis]), whole])
    result = writer.op(node.operator, [flat], axis=1)
    writer.answer("Reshape", [result, writer.integers(shape)])


def _older_batch_norm(writer: Writer) -> None:
    node = writer.node
    if not node.attributes.get("spatial", 1):
        raise InputError(f"{node} normalises each pixel by itself (spatial=0); export it anew")
    writer.put(without(replace(node, outputs=node.outputs[:1])))


def _float_batch_norm(node: OnnxNode) -> None:
    scale, bias, mean, variance = (node.constant(i).real.reshape(-1) for i in range(1, 5))
    gain = scale / np.sqrt(variance + float(node.attribute("epsilon", 1e-5)))
    rank = len(node.shape(0))
    chain = Chain(node, (0, *range(2, rank), 1) if rank > 1 else (0,))
    chain.binary("mul", gain)
    chain.binary("add", bias - mean * gain)
    chain.answer()


def _float_layer_norm(node: OnnxNode) -> None:
    """(x - mean) / sqrt(mean of its square + epsilon) * gain + offset, over the last dimensions."""
    rank = len(node.shape(0))
    if node.outputs > 1:
        raise node.unsupported("its mean or deviation is an output", "export it for inference")
    (axis,) = resolve_axes(node, (int(node.attribute("axis", -1)),), rank)
    axes = tuple(range(axis, rank))
    chain = Chain(node, tuple(range(rank)))
    _normalise(node, chain, axes)
    for index, function in ((1, "mul"), (2, "add")):
        if node.has(index):
            chain.binary(function, node.constant(index).real)
    chain.answer()


def _float_instance_norm(node: OnnxNode) -> None:
    """(x - mean) / sqrt(mean of its square + epsilon) * gain + offset, in each channel of each
    image.
    """
    shape = node.shape(0)
    rank = len(shape)
    order = (0, *range(2, rank), 1)
    chain = Chain(node, order)
    _normalise(node, chain, tuple(range(1, rank - 1)))
    chain.binary("mul", node.constant(1).real.reshape(-1))
    chain.binary("add", node.constant(2).real.reshape(-1))
    chain.answer()


def _normalise(node: OnnxNode, chain: Chain, axes: tuple[int, ...]) -> None:
    """Centre along `axes` of the tensor, and divide by the deviation."""
    shape = chain.shape
    chain.binary("sub", chain.mean(chain.tensor, axes))
    centred = chain.tensor
    square = node.intermediate("float_function", FloatFunction("square"), [centred], shape, UNIT)
    variance = chain.mean(square, axes)
    row = tuple(1 if place in axes else d for place, d in enumerate(shape))
    epsilon = np.asarray(node.attribute("epsilon", 1e-5), np.float32)
    added = [variance, node.add_constant("epsilon", epsilon, None)]
    total = node.intermediate("add", Sum(), added, row, UNIT)
    root = node.intermediate("rsqrt", Attributes(), [total], row, UNIT)
    chain.binary("mul", root)


ROWS = (
    Operator(
        "BatchNormalization",
        older=Older(13, _older_batch_norm),
        float32=_float_batch_norm,
    ),
    Operator("InstanceNormalization", float32=_float_instance_norm),
    Operator("LayerNormalization", float32=_float_layer_norm),
    Operator("LogSoftmax", composed=_softmax),
    Operator("LpNormalization", composed=_lp_normalization),
    Operator("ReduceL1", composed=_sum_of_magnitudes),
    Operator("ReduceL2", composed=_root_of_squares),
    Operator("ReduceLogSum", composed=_log_of_sum),
    Operator("ReduceLogSumExp", composed=_log_of_powers),
    Operator("ReduceSum", older=Older(13, given(("axes", np.int64)))),
    Operator("ReduceSumSquare", composed=_sum_of_squares),
    Operator("Softmax", composed=_softmax),
)
