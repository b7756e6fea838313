"""The operators that compute on integers, written as DequantizeLinear, operator, QuantizeLinear.

QLinearConv and QLinearMatMul are standard; the others are ONNX Runtime's (domain com.microsoft).
After this, one reader per operator serves both forms in which onnxruntime quantises. Those of
dynamic quantisation become the operators that ONNX Runtime's optimiser made them of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.onnx.file import Array, FileModel, Node, names_of
from toolchain.ir.names import Names

_CONTRIB = "com.microsoft."
_FLOAT32 = 1
"""ONNX's number of the element type."""
_ONE_AXIS = 13
"""The first opset whose Softmax is over one dimension."""


def expand(model: FileModel) -> FileModel:
    """The same model without QLinear operators. Raises InputError where one lacks an input."""
    expander = _Expander(dict(model.constants), model.opset, names_of(model))
    nodes = tuple(part for node in model.nodes for part in expander.parts(node))
    return replace(model, nodes=nodes, constants=expander.constants)


@dataclass
class _Expander:
    constants: dict[str, Array]
    opset: int
    names: Names

    def parts(self, node: Node) -> Iterator[Node]:
        plain = node.operator.removeprefix(_CONTRIB)
        if plain in ("QuantizeLinear", "DequantizeLinear"):
            yield replace(node, operator=plain)
        elif plain in EXPANSIONS and node.operator in EXPANDED:
            try:
                yield from EXPANSIONS[plain](self, node)
            except IndexError as error:
                raise InputError(f"{node} has only {len(node.inputs)} inputs") from error
        else:
            yield node

    def dequantize(self, node: Node, first: int, axis: int = 0) -> Node:
        """DequantizeLinear of the three inputs from `first` on: data, scale, zero point."""
        data, scale, zero_point = (_input(node, first + i) for i in range(3))
        output = self.fresh(node, f"input{first}")
        return Node(
            node.index,
            "DequantizeLinear",
            node.name,
            (data, scale, zero_point),
            (output,),
            {"axis": axis},
        )

    def core(
        self,
        node: Node,
        operator: str,
        inputs: tuple[str, ...],
        quantisation: tuple[str, str],
        attributes: Mapping[str, Any] | None = None,
    ) -> Iterator[Node]:
        """The real-valued operator, and the QuantizeLinear of its result."""
        attributes = node.attributes if attributes is None else attributes
        scale, zero_point = quantisation
        if not scale:
            yield Node(node.index, operator, node.name, inputs, node.outputs, attributes)
            return
        real = self.fresh(node, "real")
        yield Node(node.index, operator, node.name, inputs, (real,), attributes)
        yield Node(
            node.index, "QuantizeLinear", node.name, (real, scale, zero_point), node.outputs, {}
        )

    def bias(self, node: Node, name: str, input_scale: str, weight_scale: str) -> Node:
        """DequantizeLinear of an int32 bias, whose scale is the product of the other two."""
        for scale in (input_scale, weight_scale):
            if scale not in self.constants:
                raise InputError(f"the scale {scale!r} of {node} is not constant")
            if self.constants[scale].size != 1 and (
                scale == input_scale or self.constants[scale].ndim != 1
            ):
                shape = list(self.constants[scale].shape)
                raise InputError(f"the scale {scale!r} of {node} has the shape {shape}")
        product = self.constants[input_scale].astype(np.float32) * self.constants[
            weight_scale
        ].astype(np.float32)
        scale = self.fresh(node, "bias_scale")
        self.constants[scale] = np.asarray(product.reshape(-1) if product.size > 1 else product)
        if product.size == 1:
            self.constants[scale] = np.asarray(product.reshape(()))
        return Node(
            node.index,
            "DequantizeLinear",
            node.name,
            (name, scale),
            (self.fresh(node, "bias"),),
            {"axis": 0},
        )

    def scaled(
        self, node: Node, factors: tuple[str, ...], scales: tuple[str, str], bias: str
    ) -> Iterator[Node]:
        """MatMulInteger of these inputs, times the product of both scales, plus a bias ('' for
        none).
        """
        sums, reals, scale, scaled = (
            self.fresh(node, name) for name in ("sums", "reals", "scales", "scaled")
        )
        last = scaled if bias else node.outputs[0]
        steps: tuple[tuple[str, tuple[str, ...], str, dict[str, Any]], ...] = (
            ("MatMulInteger", factors, sums, {}),
            ("Cast", (sums,), reals, {"to": _FLOAT32}),
            ("Mul", scales, scale, {}),
            ("Mul", (reals, scale), last, {}),
        )
        for operator, inputs, output, attributes in steps:
            yield Node(node.index, operator, node.name, inputs, (output,), attributes)
        if bias:
            yield Node(node.index, "Add", node.name, (scaled, bias), node.outputs, {})

    def fresh(self, node: Node, stem: str) -> str:
        return self.names.fresh(f"{node.outputs[0]}/{node.index}/{stem}")


def _input(node: Node, index: int) -> str:
    return node.inputs[index]


def _optional(node: Node, index: int) -> str:
    return node.inputs[index] if index < len(node.inputs) else ""


def _convolution(expander: _Expander, node: Node) -> Iterator[Node]:
    x, weights = expander.dequantize(node, 0), expander.dequantize(node, 3)
    yield x
    yield weights
    operands = [x.outputs[0], weights.outputs[0]]
    if _optional(node, 8):
        bias = expander.bias(node, node.inputs[8], node.inputs[1], node.inputs[4])
        yield bias
        operands.append(bias.outputs[0])
    yield from expander.core(node, "Conv", tuple(operands), (node.inputs[6], node.inputs[7]))


def _matmul(expander: _Expander, node: Node) -> Iterator[Node]:
    a, b = expander.dequantize(node, 0), expander.dequantize(node, 3, axis=-1)
    yield a
    yield b
    operands = (a.outputs[0], b.outputs[0])
    yield from expander.core(node, "MatMul", operands, (node.inputs[6], node.inputs[7]))


def _gemm(expander: _Expander, node: Node) -> Iterator[Node]:
    """Y = alpha * A * B + C, where C has the scale alpha * scale of A * scale of B."""
    transposed = int(node.attributes.get("transB", 0))
    a, b = expander.dequantize(node, 0), expander.dequantize(node, 3, axis=0 if transposed else 1)
    yield a
    yield b
    operands = [a.outputs[0], b.outputs[0]]
    if _optional(node, 6):
        bias = expander.bias(node, node.inputs[6], node.inputs[1], node.inputs[4])
        alpha = np.float32(node.attributes.get("alpha", 1.0))
        scales = expander.constants[bias.inputs[1]].astype(np.float32)
        expander.constants[bias.inputs[1]] = np.asarray(scales * alpha)
        yield bias
        operands.append(bias.outputs[0])
    scale = (_optional(node, 7), _optional(node, 8))
    yield from expander.core(node, "Gemm", tuple(operands), scale)


def _binary(operator: str, expander: _Expander, node: Node) -> Iterator[Node]:
    a, b = expander.dequantize(node, 0), expander.dequantize(node, 3)
    yield a
    yield b
    operands = (a.outputs[0], b.outputs[0])
    yield from expander.core(node, operator, operands, (node.inputs[6], _optional(node, 7)))


_OWN = frozenset({"opset", "channels_last"})
"""Attributes that the real-valued operators do not have."""


def _unary(
    operator: str, expander: _Expander, node: Node, kept: frozenset[str] = frozenset()
) -> Iterator[Node]:
    x = expander.dequantize(node, 0)
    yield x
    attributes = {k: v for k, v in node.attributes.items() if k not in _OWN - kept}
    if node.attributes.get("channels_last"):
        raise InputError(f"{node} has channels_last set; export the model in NCHW")
    scale = (node.inputs[3], _optional(node, 4))
    yield from expander.core(node, operator, (x.outputs[0],), scale, attributes)


def _softmax(expander: _Expander, node: Node) -> Iterator[Node]:
    """Its own opset says what its axis means: from 13 on one dimension, before all that follow.

    The attribute stays, and tells the reader of Softmax which kernel of ONNX Runtime it stands for.
    """
    own = node.attributes.get("opset", expander.opset)
    if (own < _ONE_AXIS) != (expander.opset < _ONE_AXIS):
        raise InputError(
            f"{node} is of opset {own} in a file of opset {expander.opset}, whose softmax differs"
        )
    yield from _unary("Softmax", expander, node, frozenset({"opset"}))


def _concat(expander: _Expander, node: Node) -> Iterator[Node]:
    parts = [expander.dequantize(node, first) for first in range(2, len(node.inputs), 3)]
    yield from parts
    operands = tuple(part.outputs[0] for part in parts)
    yield from expander.core(node, "Concat", operands, (node.inputs[0], node.inputs[1]))


def _dynamic_matmul(expander: _Expander, node: Node) -> Iterator[Node]:
    """DynamicQuantizeMatMul: of floats A, integers B, their scale and zero point, a bias."""
    stored = tuple(expander.fresh(node, name) for name in ("stored", "scale", "zero_point"))
    yield Node(node.index, "DynamicQuantizeLinear", node.name, node.inputs[:1], stored, {})
    data, scale, zero_point = stored
    _, weights, weights_scale = node.inputs[:3]
    zero_points = (zero_point, _optional(node, 3))
    factors = (data, weights, *zero_points)
    yield from expander.scaled(node, factors, (scale, weights_scale), _optional(node, 4))


def _matmul_to_float(expander: _Expander, node: Node) -> Iterator[Node]:
    """MatMulIntegerToFloat: of integers A and B, their scales, their zero points, a bias."""
    first, second, first_scale, second_scale = node.inputs[:4]
    factors = (first, second, _optional(node, 4), _optional(node, 5))
    yield from expander.scaled(node, factors, (first_scale, second_scale), _optional(node, 6))


EXPANSIONS: Mapping[str, Callable[[_Expander, Node], Iterator[Node]]] = MappingProxyType(
    {
        "QLinearConv": _convolution,
        "QLinearMatMul": _matmul,
        "QGemm": _gemm,
        "QLinearAdd": partial(_binary, "Add"),
        "QLinearMul": partial(_binary, "Mul"),
        "QLinearAveragePool": partial(_unary, "AveragePool"),
        "QLinearGlobalAveragePool": partial(_unary, "GlobalAveragePool"),
        "QLinearReduceMean": partial(_unary, "ReduceMean"),
        "QLinearSigmoid": partial(_unary, "Sigmoid"),
        "QLinearLeakyRelu": partial(_unary, "LeakyRelu"),
        "QLinearSoftmax": _softmax,
        "QLinearConcat": _concat,
        "DynamicQuantizeMatMul": _dynamic_matmul,
        "MatMulIntegerToFloat": _matmul_to_float,
    }
)

EXPANDED = frozenset(
    {"QLinearConv", "QLinearMatMul"}
    | {_CONTRIB + name for name in EXPANSIONS}
    | {_CONTRIB + "QuantizeLinear", _CONTRIB + "DequantizeLinear"}
)
"""The operators that `expand` replaces, by their names in `Node.operator`."""
