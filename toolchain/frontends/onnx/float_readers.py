"""ONNX operators whose float32 reading is another than the int8 one: functions of one operand, and
what int8 computes in another way. They answer in int8's kinds where there are any (`Float32.kind`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from toolchain.frontends.onnx.arithmetic import UNIT
from toolchain.ir import Attributes
from toolchain.ops.readers.onnx import resolve_axes
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.spec import OnnxNode
from toolchain.ops.unary.unary_f32 import Unary


def _unary(function: str) -> Callable[[OnnxNode], None]:
    return lambda node: node.emit_like(0, "unary", Unary(function), UNIT)


def _with_alpha(function: str, default: float) -> Callable[[OnnxNode], None]:
    def read(node: OnnxNode) -> None:
        alpha = float(np.float32(node.attribute("alpha", default)))
        if function == "elu" and alpha != 1.0:
            raise node.unsupported(f"alpha is {alpha:g}", "only 1 has a kernel in float32")
        node.emit_like(0, "unary", Unary(function, alpha), UNIT)

    return read


def _gelu(node: OnnxNode) -> None:
    tanh = node.attribute("approximate", "none") == "tanh"
    node.emit_like(0, "unary", Unary("gelu_tanh" if tanh else "gelu"), UNIT)


class _Chain:
    """Elementwise operators one after another on input 0; the last one answers."""

    def __init__(self, node: OnnxNode, axes: tuple[int, ...]) -> None:
        self._node, self._axes = node, axes
        self._tensor = node.operand(0, axes)
        shape = node.shape(0)
        self._shape = tuple(shape[axis] for axis in axes)
        self._waiting: tuple[str, Attributes, list[str]] | None = None

    def binary(self, function: str, operand: NDArray[np.float64] | float | str) -> None:
        """`operand`: the last dimensions as they lie, a number, or a tensor."""
        if not isinstance(operand, str):
            data = np.asarray(operand, np.float32)
            operand = self._node.add_constant(function, data, None)
        self._then(function, Attributes(), [self.tensor, operand])

    def unary(self, function: str) -> None:
        self._then("unary", Unary(function), [self.tensor])

    @property
    def tensor(self) -> str:
        """The result so far."""
        if self._waiting is not None:
            self._tensor = self._node.intermediate(*self._waiting, self._shape, UNIT)
            self._waiting = None
        return self._tensor

    def mean(self, tensor: str, axes: tuple[int, ...]) -> str:
        shape = tuple(1 if axis in axes else d for axis, d in enumerate(self._shape))
        return self._node.intermediate("mean", Reduce(axes, True), [tensor], shape, UNIT)

    def answer(self) -> None:
        assert self._waiting is not None
        self._node.emit(*self._waiting, UNIT, self._axes)

    def _then(self, kind: str, attributes: Attributes, inputs: list[str]) -> None:
        self._waiting = (kind, attributes, inputs)


def _clip(node: OnnxNode) -> None:
    low, high = float(node.attribute("min", -np.inf)), float(node.attribute("max", np.inf))
    if node.has(1):
        low = float(node.constant(1).real.reshape(()))
    if node.has(2):
        high = float(node.constant(2).real.reshape(()))
    named = {(0.0, np.inf): "relu", (0.0, 6.0): "relu6", (-1.0, 1.0): "relu_n1_to_1"}
    if (low, high) in named:
        node.emit_like(0, "unary", Unary(named[low, high]), UNIT)
        return
    chain = _Chain(node, node.axes(0))
    chain.binary("maximum", max(low, -3e38))
    chain.binary("minimum", min(high, 3e38))
    chain.answer()


def _hard_sigmoid(node: OnnxNode) -> None:
    chain = _Chain(node, node.axes(0))
    chain.binary("mul", float(node.attribute("alpha", 0.2)))
    chain.binary("add", float(node.attribute("beta", 0.5)))
    chain.unary("relu_0_to_1")
    chain.answer()


def _pow(node: OnnxNode) -> None:
    exponent = float(node.constant(1).real.reshape(()))
    if exponent not in (2.0, 0.5):
        raise node.unsupported(f"the power {exponent:g}", "2 and 0.5 have kernels in float32")
    node.emit_like(0, "unary", Unary("square" if exponent == 2 else "sqrt"), UNIT)


def _reciprocal(node: OnnxNode) -> None:
    axes = node.axes(0)
    one = node.add_constant("one", np.ones((), np.float32), None)
    node.emit("div", Attributes(), [one, node.operand(0, axes)], UNIT, axes)


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
    chain.binary("sub", chain.mean(chain.tensor, axes))
    centred = chain.tensor
    shape = node.shape(0)
    square = node.intermediate("unary", Unary("square"), [centred], shape, UNIT)
    variance = chain.mean(square, axes)
    row = tuple(1 if place in axes else d for place, d in enumerate(shape))
    epsilon = np.asarray(node.attribute("epsilon", 1e-5), np.float32)
    added = [variance, node.add_constant("epsilon", epsilon, None)]
    total = node.intermediate("add", Attributes(), added, row, UNIT)
    root = node.intermediate("unary", Unary("rsqrt"), [total], row, UNIT)
    chain.binary("mul", root)
    for index, function in ((1, "mul"), (2, "add")):
        if node.has(index):
            chain.binary(function, node.constant(index).real)
    chain.answer()


READERS: Mapping[str, Callable[[OnnxNode], None]] = MappingProxyType(
    {
        "Abs": _unary("abs"),
        "BatchNormalization": _batch_norm,
        "Clip": _clip,
        "Erf": _unary("erf"),
        "Elu": _with_alpha("elu", 1.0),
        "Exp": _unary("exp"),
        "Gelu": _gelu,
        "HardSigmoid": _hard_sigmoid,
        "HardSwish": _unary("hard_swish"),
        "LayerNormalization": _layer_norm,
        "LeakyRelu": _with_alpha("leaky_relu", 0.01),
        "Log": _unary("log"),
        "Neg": _unary("neg"),
        "Pow": _pow,
        "Reciprocal": _reciprocal,
        "Relu": _unary("relu"),
        "Sigmoid": _unary("logistic"),
        "Sqrt": _unary("sqrt"),
        "Tanh": _unary("tanh"),
    }
)
