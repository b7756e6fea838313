"""Functions of one operand in float32: a kind each, or several together.

Quantised they are tables (`ops/unary/lookup`).
"""

from __future__ import annotations

from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from toolchain.frontends.onnx.model import Node
from toolchain.frontends.onnx.operators.chain import Chain
from toolchain.frontends.onnx.operators.older import BROADCAST, align, given
from toolchain.frontends.onnx.operators.row import Older, Operator, Trait
from toolchain.frontends.onnx.operators.tensors import Tensors
from toolchain.frontends.onnx.quantisation import UNIT
from toolchain.ir import Attributes
from toolchain.ops.elementwise.div import Div
from toolchain.ops.elementwise.functions import UNARY
from toolchain.ops.elementwise.kinds import float_attributes, float_kind
from toolchain.ops.elementwise.rows import Unary
from toolchain.ops.spec import OnnxNode
from toolchain.ops.unary.lookup import onnx_parameters, onnx_row
from toolchain.ops.unary.relu import Bounds, Relu

CLIP = "Clip"


def _computed(node: OnnxNode) -> None:
    """By the float32 form of the function's row."""
    row = onnx_row(node)
    node.emit_like(0, float_kind(row), _attributes(node, row), UNIT)


def _attributes(node: OnnxNode, row: Unary) -> Attributes:
    """The row's attributes, with the parameters of the operator that they hold."""
    attributes = float_attributes(row)
    held = {entry.name for entry in fields(attributes)}
    values = zip(row.parameters, _parameters(node), strict=True)
    given = {parameter.attribute: value for parameter, value in values}
    given = {name: value for name, value in given.items() if name in held}
    return replace(cast(Any, attributes), **given) if given else attributes


def _parameters(node: OnnxNode) -> list[float]:
    """The values that the function takes besides its operand, in float32."""
    return [float(np.float32(value)) for value in onnx_parameters(node, onnx_row(node))]


def _elu(node: OnnxNode) -> None:
    (alpha,) = _parameters(node)
    if alpha == 1.0:
        _computed(node)
    else:
        _exponential_below_zero(node, 1.0, 1.0, alpha)


def _celu(node: OnnxNode) -> None:
    (alpha,) = _parameters(node)
    _exponential_below_zero(node, 1.0, alpha, alpha)


def _selu(node: OnnxNode) -> None:
    alpha, gamma = _parameters(node)
    _exponential_below_zero(node, gamma, 1.0, gamma * alpha)


def _exponential_below_zero(node: OnnxNode, above: float, divisor: float, below: float) -> None:
    """above * max(x, 0) + below * (exp(min(x, 0) / divisor) - 1)."""
    chain = Chain(node, node.axes(0))
    x = chain.tensor
    chain.binary("minimum", 0.0)
    if divisor != 1.0:
        chain.binary("div", divisor)
    chain.unary("exp")
    chain.binary("sub", 1.0)
    chain.binary("mul", below)
    negative = chain.tensor
    chain.restart(x)
    chain.unary("relu")
    chain.binary("mul", above)
    chain.binary("add", negative)
    chain.answer()


def _softplus(node: OnnxNode) -> None:
    chain = Chain(node, node.axes(0))
    _add_softplus(chain)
    chain.answer()


def _add_softplus(chain: Chain) -> None:
    """max(x, 0) + log(1 + exp(-|x|)), which no x overflows."""
    x = chain.tensor
    chain.unary("abs")
    chain.unary("neg")
    chain.unary("exp")
    chain.binary("add", 1.0)
    chain.unary("log")
    small = chain.tensor
    chain.restart(x)
    chain.unary("relu")
    chain.binary("add", small)


def _mish(node: OnnxNode) -> None:
    chain = Chain(node, node.axes(0))
    x = chain.tensor
    _add_softplus(chain)
    chain.unary("tanh")
    chain.binary("mul", x)
    chain.answer()


def _softsign(node: OnnxNode) -> None:
    chain = Chain(node, node.axes(0))
    x = chain.tensor
    chain.unary("abs")
    chain.binary("add", 1.0)
    below = chain.tensor
    chain.restart(x)
    chain.binary("div", below)
    chain.answer()


def _clip(node: OnnxNode) -> None:
    low, high = _parameters(node)
    for bounds in (Bounds.RELU, Bounds.RELU6, Bounds.RELU_N1_TO_1):
        if (low, high) == bounds.real:
            node.emit_like(0, "relu", Relu(bounds), UNIT)
            return
    chain = Chain(node, node.axes(0))
    chain.binary("maximum", max(low, -3e38))
    chain.binary("minimum", min(high, 3e38))
    chain.answer()


def _hard_sigmoid(node: OnnxNode) -> None:
    chain, (alpha, beta) = Chain(node, node.axes(0)), _parameters(node)
    chain.binary("mul", alpha)
    chain.binary("add", beta)
    chain.unary("relu_0_to_1")
    chain.answer()


def _pow(node: OnnxNode) -> None:
    (exponent,) = _parameters(node)
    if exponent in _POWERS:
        row = UNARY[_POWERS[exponent]]
        node.emit_like(0, float_kind(row), float_attributes(row), UNIT)
        return
    if exponent == 0 or exponent != int(exponent) or abs(exponent) > _MOST_FACTORS:
        raise node.unsupported(
            f"the power {exponent:g}",
            f"0.5, -0.5 and whole powers up to {_MOST_FACTORS} have kernels in float32",
        )
    chain = Chain(node, node.axes(0))
    x = chain.tensor
    for _ in range(abs(int(exponent)) - 1):
        chain.binary("mul", x)
    if exponent < 0:
        below = chain.tensor
        chain.restart(node.add_constant("one", np.ones((), np.float32), None))
        chain.binary("div", below)
    elif exponent == 1:
        chain.binary("mul", 1.0)
    chain.answer()


_POWERS = MappingProxyType({2.0: "square", 0.5: "sqrt", -0.5: "rsqrt"})
"""Exponents whose power is a function of its own, by name."""
_MOST_FACTORS = 8
"""The largest power that is a product."""


def _reciprocal(node: OnnxNode) -> None:
    axes = node.axes(0)
    one = node.add_constant("one", np.ones((), np.float32), None)
    node.emit("div", Div(), [one, node.operand(0, axes)], UNIT, axes)


def _relu_clips(tensors: Tensors, node: Node) -> tuple[float, float] | None:
    return 0.0, float("inf")


def _clip_clips(tensors: Tensors, node: Node) -> tuple[float, float] | None:
    bounds = [-np.inf, np.inf]
    for place, name in enumerate(node.inputs[1:3]):
        if not name:
            continue
        if name not in tensors.constants or tensors.constants[name].data.size != 1:
            return None
        bounds[place] = float(tensors.constants[name].real.reshape(()))
    return bounds[0], bounds[1]


_COMPOSED = (
    Operator("Celu", float32=_celu),
    Operator(
        CLIP,
        Trait.KEEPS_VALUES,
        older=Older(11, given(("min", np.float32), ("max", np.float32))),
        float32=_clip,
        clips=_clip_clips,
    ),
    Operator("Elu", float32=_elu),
    Operator("HardSigmoid", float32=_hard_sigmoid),
    Operator("Mish", float32=_mish),
    Operator("Pow", Trait.IN_TABLES, older=BROADCAST, float32=_pow),
    Operator("PRelu", older=Older(7, lambda writer: align(writer, 1))),
    Operator("Reciprocal", float32=_reciprocal),
    Operator("Relu", Trait.KEEPS_VALUES, float32=_computed, clips=_relu_clips),
    Operator("Selu", float32=_selu),
    Operator("Softplus", float32=_softplus),
    Operator("Softsign", float32=_softsign),
)
"""Several kinds together compute these, or more is known of them."""
_ONE_KIND = {row.onnx for row in UNARY.values() if row.onnx and row.formula.own is not None}

ROWS = (
    *_COMPOSED,
    *(
        Operator(name, float32=_computed)
        for name in sorted(_ONE_KIND - {row.name for row in _COMPOSED})
    ),
)
