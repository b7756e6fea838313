"""QuantizeLinear, DequantizeLinear, and operators that compute on integers.

QLinearConv and QLinearMatMul are standard; the other QLinear operators are ONNX Runtime's (domain
com.microsoft). They are written as DequantizeLinear, operator, QuantizeLinear, so that one reader
an operator serves both forms in which onnxruntime quantises. Operators of dynamic quantisation
become those that ONNX Runtime's optimiser made them of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.onnx import quantisation
from toolchain.frontends.onnx.model import Node
from toolchain.frontends.onnx.operators.row import Operator, Rewrite, Trait
from toolchain.frontends.onnx.operators.tensors import Tensors
from toolchain.frontends.onnx.quantisation import DEQUANTIZE, DYNAMIC, QUANTIZE
from toolchain.frontends.onnx.stored import Stored
from toolchain.frontends.onnx.writing import Writer
from toolchain.frontends.unread import Unread

_CONTRIB = "com.microsoft."
CONV_INTEGER = "ConvInteger"
_FLOAT32 = 1
"""ONNX's number of the element type."""
_ONE_AXIS = 13
"""The first opset whose Softmax is over one dimension."""
_INT32 = np.iinfo(np.int32)
"""In which the kernel of QLinearSoftmax keeps its own opset (`qlinear_softmax.cc`)."""


def of_reals(operator: str) -> str:
    """The operator on real values that a QLinear operator stands for: Conv for QLinearConv, Gemm
    for QGemm."""
    return re.sub("^QLinear|^Q(?=Gemm$)", "", operator.removeprefix(_CONTRIB))


def _renamed(writer: Writer) -> None:
    """ONNX Runtime's QuantizeLinear and DequantizeLinear as the standard ones, which they equal."""
    node = writer.node
    writer.put(replace(node, operator=node.operator.removeprefix(_CONTRIB)))


def _dequantised(writer: Writer, first: int, axis: int = 0) -> str:
    """DequantizeLinear of the three inputs from `first` on: data, scale, zero point."""
    inputs = [writer.node.inputs[first + i] for i in range(3)]
    return writer.named(f"input{first}", DEQUANTIZE, inputs, axis=axis)


def _answer(
    writer: Writer,
    inputs: list[str],
    scale: str,
    zero_point: str,
    attributes: Mapping[str, Any] | None = None,
) -> None:
    """The operator on real values, and the QuantizeLinear of its result if there is a scale."""
    attributes = writer.node.attributes if attributes is None else attributes
    operator = of_reals(writer.node.operator)
    if not scale:
        writer.answer(operator, inputs, **attributes)
        return
    real = writer.named("real", operator, inputs, **attributes)
    writer.answer(QUANTIZE, (real, scale, zero_point))


def _bias(writer: Writer, name: str, alpha: float | None = None) -> str:
    """DequantizeLinear of an int32 bias, whose scale is the product of those of input and
    weights.
    """
    scales = input_scale, _ = writer.node.inputs[1], writer.node.inputs[4]
    for scale in scales:
        if scale not in writer.constants:
            raise InputError(f"the scale {scale!r} of {writer.node} is not constant")
        value = writer.constants[scale]
        if value.size != 1 and (scale == input_scale or value.ndim != 1):
            shape = list(value.shape)
            raise InputError(f"the scale {scale!r} of {writer.node} has the shape {shape}")
    first, second = (writer.constants[scale].astype(np.float32) for scale in scales)
    product = np.asarray(first * second)
    product = product.reshape(() if product.size == 1 else -1)
    if alpha is not None:
        product = np.asarray(product.astype(np.float32) * np.float32(alpha))
    scale = writer.constant(product, product.dtype.type, "bias_scale")
    return writer.named("bias", DEQUANTIZE, (name, scale), axis=0)


def _convolution(writer: Writer) -> None:
    inputs = writer.node.inputs
    operands = [_dequantised(writer, 0), _dequantised(writer, 3)]
    if writer.input(8):
        operands.append(_bias(writer, inputs[8]))
    _answer(writer, operands, inputs[6], inputs[7])


def _matmul(writer: Writer) -> None:
    operands = [_dequantised(writer, 0), _dequantised(writer, 3, axis=-1)]
    _answer(writer, operands, writer.node.inputs[6], writer.node.inputs[7])


def _gemm(writer: Writer) -> None:
    """Y = alpha * A * B + C, where C has the scale alpha * scale of A * scale of B."""
    inputs, attributes = writer.node.inputs, writer.node.attributes
    columns = 0 if int(attributes.get("transB", 0)) else 1
    operands = [_dequantised(writer, 0), _dequantised(writer, 3, axis=columns)]
    if writer.input(6):
        alpha = attributes.get("alpha", 1.0)
        operands.append(_bias(writer, inputs[6], alpha))
    _answer(writer, operands, writer.input(7), writer.input(8))


def _binary(writer: Writer) -> None:
    operands = [_dequantised(writer, 0), _dequantised(writer, 3)]
    _answer(writer, operands, writer.node.inputs[6], writer.input(7))


def _unary(writer: Writer, left_out: tuple[str, ...] = ("opset", "channels_last")) -> None:
    """`left_out`: attributes that the operator on reals does not have."""
    x, attributes = _dequantised(writer, 0), writer.node.attributes
    if attributes.get("channels_last"):
        raise InputError(f"{writer.node} has channels_last set; export the model in NCHW")
    kept = {name: value for name, value in attributes.items() if name not in left_out}
    _answer(writer, [x], writer.node.inputs[3], writer.input(4), kept)


def _softmax(writer: Writer) -> None:
    """QLinearSoftmax. Its opset gives the meaning of its axis: from 13 on one dimension, before
    that it and all that follow.

    The attribute stays, and tells the reader of Softmax which kernel of ONNX Runtime it stands for.
    """
    opset = writer.node.attributes.get("opset", writer.opset)
    if not _INT32.min <= opset <= _INT32.max:
        raise InputError(
            f"{writer.node} is of opset {opset}, of which ONNX Runtime keeps 32 bits: another opset"
        )
    if (opset < _ONE_AXIS) != (writer.opset < _ONE_AXIS):
        raise InputError(
            f"{writer.node} is of opset {opset} in a file of opset {writer.opset}, whose softmax "
            "differs"
        )
    _unary(writer, ("channels_last",))


def _concat(writer: Writer) -> None:
    inputs = writer.node.inputs
    operands = [_dequantised(writer, first) for first in range(2, len(inputs), 3)]
    _answer(writer, operands, inputs[0], inputs[1])


def _dynamic_matmul(writer: Writer) -> None:
    """DynamicQuantizeMatMul: of floats A, integers B, their scale and zero point, a bias."""
    stored, scale, zero_point = (writer.fresh(name) for name in ("stored", "scale", "zero_point"))
    inputs = writer.node.inputs
    writer.write(DYNAMIC, inputs[:1], (stored, scale, zero_point))
    _, weights, weights_scale = inputs[:3]
    factors = (stored, weights, zero_point, writer.input(3))
    _scaled(writer, factors, (scale, weights_scale), writer.input(4))


def _matmul_to_float(writer: Writer) -> None:
    """MatMulIntegerToFloat: of integers A and B, their scales, their zero points, a bias."""
    first, second, first_scale, second_scale = writer.node.inputs[:4]
    factors = (first, second, writer.input(4), writer.input(5))
    _scaled(writer, factors, (first_scale, second_scale), writer.input(6))


def _scaled(writer: Writer, factors: tuple[str, ...], scales: tuple[str, str], bias: str) -> None:
    """MatMulInteger of `factors`, times the product of both scales, plus a bias ('' for none)."""
    sums = writer.named("sums", "MatMulInteger", factors)
    reals = writer.named("reals", "Cast", (sums,), to=_FLOAT32)
    scale = writer.named("scales", "Mul", scales)
    if bias:
        scaled = writer.named("scaled", "Mul", (reals, scale))
        writer.answer("Add", (scaled, bias))
    else:
        writer.answer("Mul", (reals, scale))


def _quantize(tensors: Tensors, node: Node) -> None:
    parameters = tensors.parameters(node)
    if parameters.quantisation.per_channel or parameters.dtype == "int32":
        raise RefusedError("activations quantised per channel", "quantise them per tensor")
    value = tensors.value(node, 0)
    stored = tensors.builder.requantised(value, parameters.quantisation, node.outputs[0])
    tensors.define(node.outputs[0], replace(stored, stored=True))
    tensors.stored[node.outputs[0]] = Stored(stored.tensor, stored.layout)


def _dequantize(tensors: Tensors, node: Node) -> None:
    source = node.inputs[0]
    if source in tensors.constants:
        tensors.constants[node.outputs[0]] = quantisation.dequantised_constant(
            node, tensors.constants[source].data, tensors.file_constants
        )
        return
    value = tensors.value(node, 0)
    parameters = tensors.parameters(node)
    if value.quantisation != parameters.quantisation:
        raise RefusedError(
            "it reads integers with another scale or zero point than they were written with",
            "quantise the model with onnxruntime.quantization.quantize_static",
        )
    tensors.define(node.outputs[0], replace(value, stored=False))


def _of_integers(rewrite: Rewrite, *names: str) -> tuple[Operator, ...]:
    return tuple(Operator(name, integers=rewrite) for name in names)


def _of_the_moment(name: str) -> Operator:
    unread = Unread(
        "its integers go elsewhere than to a MatMulInteger or ConvInteger by constant weights, "
        "a Cast to float and the Mul of both scales",
        "quantise the float model with onnxruntime.quantization.quantize_dynamic",
    )
    return Operator(name, Trait.OF_THE_MOMENT | Trait.JOINED, unread=unread)


_PULP = Unread(
    "it is of the PULP dialect, whose requantisation is not ONNX's",
    "export the float model and quantise it with onnxruntime.quantization.quantize_static",
)
_WITHOUT_INTEGERS = Unread(
    "it multiplies by a scale of the moment",
    "leave it in float: quantize_dynamic(..., op_types_to_quantize=['MatMul', 'Conv', 'Gather'])",
)

ROWS = (
    Operator(QUANTIZE, Trait.STORES, arranges=_quantize),
    Operator(DEQUANTIZE, Trait.STORES | Trait.STAYS_QUANTISED, arranges=_dequantize),
    *_of_integers(_renamed, _CONTRIB + QUANTIZE, _CONTRIB + DEQUANTIZE),
    *_of_integers(_convolution, "QLinearConv", _CONTRIB + "QLinearConv"),
    *_of_integers(_matmul, "QLinearMatMul", _CONTRIB + "QLinearMatMul"),
    *_of_integers(_gemm, _CONTRIB + "QGemm"),
    *_of_integers(_binary, _CONTRIB + "QLinearAdd", _CONTRIB + "QLinearMul"),
    *_of_integers(_unary, _CONTRIB + "QLinearAveragePool", _CONTRIB + "QLinearGlobalAveragePool"),
    *_of_integers(_unary, _CONTRIB + "QLinearReduceMean", _CONTRIB + "QLinearSigmoid"),
    *_of_integers(_unary, _CONTRIB + "QLinearLeakyRelu"),
    *_of_integers(_softmax, _CONTRIB + "QLinearSoftmax"),
    *_of_integers(_concat, _CONTRIB + "QLinearConcat"),
    *_of_integers(_dynamic_matmul, _CONTRIB + "DynamicQuantizeMatMul"),
    *_of_integers(_matmul_to_float, _CONTRIB + "MatMulIntegerToFloat"),
    _of_the_moment(DYNAMIC),
    _of_the_moment("MatMulInteger"),
    _of_the_moment(CONV_INTEGER),
    *(
        Operator(_CONTRIB + name, Trait.OF_THE_MOMENT, unread=_WITHOUT_INTEGERS)
        for name in ("DynamicQuantizeLSTM", "QAttention", "QEmbedLayerNormalization")
    ),
    *(
        Operator(name, Trait.STORES, unread=_PULP)
        for name in ("RequantShift", "iGELU", "iLayerNorm", "ITAMax", "IntegerMean", "iSoftmax")
    ),
)
