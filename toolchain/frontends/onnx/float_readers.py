"""Readers of ONNX operators whose float32 form differs from the int8 one.

They are functions of one operand, and operators that int8 computes in another way. They answer with
int8 kinds where there are any (`Float32.kind`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from toolchain.frontends.onnx.arithmetic import UNIT
from toolchain.ir import Attributes
from toolchain.ops import spec_of
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.elementwise.div import Div
from toolchain.ops.readers.onnx import resolve_axes
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.spec import OnnxNode
from toolchain.ops.unary.float_function import FloatFunction, Function
from toolchain.ops.unary.gelu import Gelu
from toolchain.ops.unary.leaky_relu import LeakyRelu
from toolchain.ops.unary.relu import Bounds, Relu

_ERF, _NEG, _SQUARE = map(FloatFunction, (Function.ERF, Function.NEG, Function.SQUARE))


def _unary(kind: str, attributes: Attributes | None = None) -> Callable[[OnnxNode], None]:
    return lambda node: node.emit_like(0, kind, attributes or Attributes(), UNIT)


def _alpha(node: OnnxNode, default: float) -> float:
    return float(np.float32(node.attribute("alpha", default)))


def _elu(node: OnnxNode) -> None:
    alpha = _alpha(node, 1.0)
    if alpha == 1.0:
        node.emit_like(0, "elu", Attributes(), UNIT)
    else:
        _exponential_below_zero(node, 1.0, 1.0, alpha)


def _celu(node: OnnxNode) -> None:
    alpha = _alpha(node, 1.0)
    _exponential_below_zero(node, 1.0, alpha, alpha)


def _selu(node: OnnxNode) -> None:
    gamma = _alpha(node, 1.05070102214813232421875)
    _exponential_below_zero(node, gamma, 1.0, gamma * _alpha(node, 1.67326319217681884765625))


def _exponential_below_zero(node: OnnxNode, above: float, divisor: float, below: float) -> None:
    """above * max(x, 0) + below * (exp(min(x, 0) / divisor) - 1)."""
    chain = _Chain(node, node.axes(0))
    x = chain.tensor
    chain.binary("minimum", 0.0)
    if divisor != 1.0:
        chain.binary("div", divisor)
    chain.unary("exp", Attributes())
    chain.binary("sub", 1.0)
    chain.binary("mul", below)
    negative = chain.tensor
    chain.restart(x)
    chain.unary("relu", Relu())
    chain.binary("mul", above)
    chain.binary("add", negative)
    chain.answer()


def _softplus(node: OnnxNode) -> None:
    chain = _Chain(node, node.axes(0))
    _add_softplus(chain)
    chain.answer()


def _add_softplus(chain: _Chain) -> None:
    """max(x, 0) + log(1 + exp(-|x|)), which no x overflows."""
    x = chain.tensor
    chain.unary("abs", Attributes())
    chain.unary("float_function", _NEG)
    chain.unary("exp", Attributes())
    chain.binary("add", 1.0)
    chain.unary("log", Attributes())
    small = chain.tensor
    chain.restart(x)
    chain.unary("relu", Relu())
    chain.binary("add", small)


def _mish(node: OnnxNode) -> None:
    chain = _Chain(node, node.axes(0))
    x = chain.tensor
    _add_softplus(chain)
    chain.unary("tanh", Attributes())
    chain.binary("mul", x)
    chain.answer()


def _softsign(node: OnnxNode) -> None:
    chain = _Chain(node, node.axes(0))
    x = chain.tensor
    chain.unary("abs", Attributes())
    chain.binary("add", 1.0)
    below = chain.tensor
    chain.restart(x)
    chain.binary("div", below)
    chain.answer()


def _leaky_relu(node: OnnxNode) -> None:
    node.emit_like(0, "leaky_relu", LeakyRelu(_alpha(node, 0.01)), UNIT)


def _gelu(node: OnnxNode) -> None:
    tanh = node.attribute("approximate", "none") == "tanh"
    node.emit_like(0, "gelu", Gelu(tanh), UNIT)


class _Chain:
    """Elementwise operators one after another on input 0; the last one answers."""

    def __init__(self, node: OnnxNode, axes: tuple[int, ...]) -> None:
        self._node, self._axes = node, axes
        self._tensor = node.operand(0, axes)
        shape = node.shape(0)
        self.shape = tuple(shape[axis] for axis in axes)
        self._waiting: tuple[str, Attributes, list[str]] | None = None

    def binary(self, kind: str, operand: NDArray[np.float64] | float | str) -> None:
        """`operand`: the last dimensions as they lie, a number, or a tensor."""
        if not isinstance(operand, str):
            data = np.asarray(operand, np.float32)
            operand = self._node.add_constant(kind, data, None)
        self._then(kind, spec_of(kind).plain_attributes(), [self.tensor, operand])

    def unary(self, kind: str, attributes: Attributes) -> None:
        self._then(kind, attributes, [self.tensor])

    def restart(self, tensor: str) -> None:
        """Go on from `tensor`, an earlier result."""
        self._tensor, self._waiting = tensor, None

    @property
    def tensor(self) -> str:
        """The result so far."""
        if self._waiting is not None:
            self._tensor = self._node.intermediate(*self._waiting, self.shape, UNIT)
            self._waiting = None
        return self._tensor

    def mean(self, tensor: str, axes: tuple[int, ...]) -> str:
        shape = tuple(1 if axis in axes else d for axis, d in enumerate(self.shape))
        return self._node.intermediate("mean", Reduce(axes, True), [tensor], shape, UNIT)

    def answer(self) -> None:
        assert self._waiting is not None
        self._node.emit(*self._waiting, UNIT, self._axes)

    def _then(self, kind: str, attributes: Attributes, inputs: list[str]) -> None:
        self._waiting = (kind, attributes, inputs)


def _clip(node: OnnxNode) -> None:
    low, high = -np.inf, np.inf
    if node.has(1):
        low = float(node.constant(1).real.reshape(()))
    if node.has(2):
        high = float(node.constant(2).real.reshape(()))
    for bounds in (Bounds.RELU, Bounds.RELU6, Bounds.RELU_N1_TO_1):
        if (low, high) == bounds.real:
            node.emit_like(0, "relu", Relu(bounds), UNIT)
            return
    chain = _Chain(node, node.axes(0))
    chain.binary("maximum", max(low, -3e38))
    chain.binary("minimum", min(high, 3e38))
    chain.answer()


def _hard_sigmoid(node: OnnxNode) -> None:
    chain = _Chain(node, node.axes(0))
    chain.binary("mul", float(node.attribute("alpha", 0.2)))
    chain.binary("add", float(node.attribute("beta", 0.5)))
    chain.unary("relu", Relu(Bounds.RELU_0_TO_1))
    chain.answer()


def _pow(node: OnnxNode) -> None:
    exponent = float(node.constant(1).real.reshape(()))
    single = {
        2.0: ("float_function", _SQUARE),
        0.5: ("sqrt", Attributes()),
        -0.5: ("rsqrt", Attributes()),
    }
    if exponent in single:
        node.emit_like(0, *single[exponent], UNIT)
        return
    if exponent == 0 or exponent != int(exponent) or abs(exponent) > _MOST_FACTORS:
        raise node.unsupported(
            f"the power {exponent:g}",
            f"0.5, -0.5 and whole powers up to {_MOST_FACTORS} have kernels in float32",
        )
    chain = _Chain(node, node.axes(0))
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


_MOST_FACTORS = 8
"""The largest power that is a product."""


def _reciprocal(node: OnnxNode) -> None:
    axes = node.axes(0)
    one = node.add_constant("one", np.ones((), np.float32), None)
    node.emit("div", Div(), [one, node.operand(0, axes)], UNIT, axes)


def _batch_norm(node: OnnxNode) -> None:
    scale, bias, mean, variance = (node.constant(i).real.reshape(-1) for i in range(1, 5))
    gain = scale / np.sqrt(variance + float(node.attribute("epsilon", 1e-5)))
    rank = len(node.shape(0))
    chain = _Chain(node, (0, *range(2, rank), 1) if rank > 1 else (0,))
    chain.binary("mul", gain)
    chain.binary("add", bias - mean * gain)
    chain.answer()


def _layer_norm(node: OnnxNode) -> None:
    """(x - mean) / sqrt(mean of its square + epsilon) * gain + offset, over the last dimensions."""
    rank = len(node.shape(0))
    if node.outputs > 1:
        raise node.unsupported("its mean or deviation is an output", "export it for inference")
    (axis,) = resolve_axes(node, (int(node.attribute("axis", -1)),), rank)
    axes = tuple(range(axis, rank))
    chain = _Chain(node, tuple(range(rank)))
    _normalise(node, chain, axes)
    for index, function in ((1, "mul"), (2, "add")):
        if node.has(index):
            chain.binary(function, node.constant(index).real)
    chain.answer()


def _instance_norm(node: OnnxNode) -> None:
    """(x - mean) / sqrt(mean of its square + epsilon) * gain + offset, in each channel of each
    image.
    """
    shape = node.shape(0)
    rank = len(shape)
    order = (0, *range(2, rank), 1)
    chain = _Chain(node, order)
    _normalise(node, chain, tuple(range(1, rank - 1)))
    chain.binary("mul", node.constant(1).real.reshape(-1))
    chain.binary("add", node.constant(2).real.reshape(-1))
    chain.answer()


def _normalise(node: OnnxNode, chain: _Chain, axes: tuple[int, ...]) -> None:
    """Centre along `axes` of the tensor, and divide by the deviation."""
    shape = chain.shape
    chain.binary("sub", chain.mean(chain.tensor, axes))
    centred = chain.tensor
    square = node.intermediate("float_function", _SQUARE, [centred], shape, UNIT)
    variance = chain.mean(square, axes)
    row = tuple(1 if place in axes else d for place, d in enumerate(shape))
    epsilon = np.asarray(node.attribute("epsilon", 1e-5), np.float32)
    added = [variance, node.add_constant("epsilon", epsilon, None)]
    total = node.intermediate("add", Sum(), added, row, UNIT)
    root = node.intermediate("rsqrt", Attributes(), [total], row, UNIT)
    chain.binary("mul", root)


READERS: Mapping[str, Callable[[OnnxNode], None]] = MappingProxyType(
    {
        "Abs": _unary("abs"),
        "BatchNormalization": _batch_norm,
        "Celu": _celu,
        "Clip": _clip,
        "Erf": _unary("float_function", _ERF),
        "Elu": _elu,
        "Exp": _unary("exp"),
        "Gelu": _gelu,
        "HardSigmoid": _hard_sigmoid,
        "HardSwish": _unary("hard_swish"),
        "InstanceNormalization": _instance_norm,
        "LayerNormalization": _layer_norm,
        "LeakyRelu": _leaky_relu,
        "Log": _unary("log"),
        "Mish": _mish,
        "Neg": _unary("float_function", _NEG),
        "Pow": _pow,
        "Reciprocal": _reciprocal,
        "Relu": _unary("relu", Relu()),
        "Selu": _selu,
        "Sigmoid": _unary("logistic"),
        "Softplus": _softplus,
        "Softsign": _softsign,
        "Sqrt": _unary("sqrt"),
        "Tanh": _unary("tanh"),
    }
)
