"""Float ONNX models: the same readers, their operators turned into float32 kinds.

A reader sees every tensor as if it were quantised with scale 1 (`REAL`), constants as they are.
What it emits is renamed (`as_float`), and its tensors are float32. Functions of one operand, and
what int8 computes in another way, have readers here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.frontends.onnx.node import ACTIVATIONS, NodeView
from toolchain.frontends.onnx.quantisation import RefusedError
from toolchain.ir import Attributes, DType, Quantisation
from toolchain.ops import spec_of
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.elementwise.binary_f32 import FUNCTIONS as BINARY
from toolchain.ops.elementwise.binary_f32 import Binary
from toolchain.ops.normalisation.softmax_s8 import Softmax
from toolchain.ops.readers.onnx import resolve_axes
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.reduction.reduce_f32 import ReduceFloat
from toolchain.ops.reduction.reduce_max import ReduceMax
from toolchain.ops.resize.common import Resize
from toolchain.ops.resize.resize_linear import ResizeLinear
from toolchain.ops.spec import Array, OnnxNode
from toolchain.ops.unary.lookup import Lookup
from toolchain.ops.unary.unary_f32 import Unary

REAL = Quantisation((1.0,), (0,))
_MOVERS = frozenset(
    {"concat", "gather", "mirror_pad", "pad", "reshape", "resize_nearest", "slice", "split"}
    | {"tile", "transpose"}
)
_REDUCTIONS = MappingProxyType({"mean": "mean", "sum": "sum"})


def as_float(kind: str, attributes: Attributes) -> tuple[str, Attributes]:
    """The kind that computes in float32 what `kind` computes in int8.

    Raises RefusedError where there is none.
    """
    if kind in _MOVERS:
        return kind, attributes
    if kind in BINARY:
        activation = getattr(attributes, "activation", Activation.NONE)
        return "binary_f32", Binary(kind, activation)
    if kind in _REDUCTIONS and isinstance(attributes, Reduce):
        own = attributes.axes, attributes.keep_dims
        return "reduce_f32", ReduceFloat(*own, reduction=_REDUCTIONS[kind])
    if isinstance(attributes, ReduceMax):
        name = "minimum" if attributes.smallest else "maximum"
        return "reduce_f32", ReduceFloat(attributes.axes, attributes.keep_dims, reduction=name)
    if isinstance(attributes, ResizeLinear):
        sizes = (attributes.height, attributes.width)
        sources = [size / scale for size, scale in zip(sizes, attributes.scales, strict=True)]
        if any(abs(source - round(source)) > 1e-4 for source in sources):
            raise RefusedError("its scales are not those of its sizes", "export it with sizes")
        corners = attributes.coordinates == "align_corners"
        centers = attributes.coordinates in ("half_pixel", "pytorch_half_pixel")
        resize = Resize(attributes.height, attributes.width, corners, centers)
        return "resize_bilinear_f32", resize
    if kind == "softmax_once":
        return "softmax", Softmax()
    if isinstance(attributes, Lookup) and attributes.function == "LeakyRelu":
        return "unary_f32", Unary("leaky_relu", attributes.parameters[0])
    renamed = f"{kind}_f32"
    try:
        spec_of(renamed)
    except KeyError:
        raise RefusedError("it has no float32 kernel", "quantise the model to int8") from None
    return renamed, attributes


class FloatNodeView(NodeView):
    """See `ops.spec.OnnxNode`."""

    @property
    def in_float(self) -> bool:
        return True

    def quantisation(self, index: int) -> Quantisation:
        return REAL

    def output_quantisation(self, default: Quantisation | None = None) -> Quantisation:
        return REAL

    def operand(
        self,
        index: int,
        axes: tuple[int, ...],
        shape: tuple[int, ...] | None = None,
        quantisation: Quantisation | None = None,
    ) -> str:
        if not self.is_constant(index):
            return super().operand(index, axes, shape)
        data = self.constant(index).real
        whole = data.reshape((1,) * (len(axes) - data.ndim) + data.shape).transpose(axes)
        return self.add_constant("constant", whole.reshape(shape or whole.shape), None)

    def add_constant(self, stem: str, data: Array, quantisation: Quantisation | None) -> str:
        real = data.astype(np.float32) if data.dtype.kind == "f" else data
        return super().add_constant(stem, real, None)

    def fused_activation(self) -> str:
        follower = self._importer.only_consumer(self._last)
        if follower is None or follower.operator not in ("Relu", "Clip"):
            return "NONE"
        bounds = self._importer.clip_bounds(follower)
        name = ACTIVATIONS.get(bounds) if bounds is not None else None
        if name is None:
            return "NONE"
        self._importer.absorb(follower)
        self._last = follower.outputs[0]
        return name

    def intermediate(
        self,
        kind: str,
        attributes: Attributes,
        inputs: Sequence[str],
        shape: tuple[int, ...],
        quantisation: Quantisation,
        dtype: DType = DType.FLOAT32,
    ) -> str:
        return super().intermediate(*as_float(kind, attributes), inputs, shape, REAL, dtype)

    def emit(
        self,
        kind: str,
        attributes: Attributes,
        inputs: Sequence[str],
        quantisation: Quantisation | None,
        axes: tuple[int, ...],
        shape: tuple[int, ...] | None = None,
        dtype: DType = DType.FLOAT32,
    ) -> None:
        if dtype not in (DType.INT8, DType.FLOAT32):
            raise RefusedError("it has no float32 kernel", "quantise the model to int8")
        super().emit(*as_float(kind, attributes), inputs, REAL, axes, shape, DType.FLOAT32)

    def emit_like(
        self,
        index: int,
        kind: str,
        attributes: Attributes,
        quantisation: Quantisation,
        dtype: DType = DType.FLOAT32,
    ) -> None:
        super().emit_like(index, *as_float(kind, attributes), REAL, DType.FLOAT32)


def _unary(function: str) -> Callable[[OnnxNode], None]:
    return lambda node: node.emit_like(0, "unary", Unary(function), REAL)


def _with_alpha(function: str, default: float) -> Callable[[OnnxNode], None]:
    def read(node: OnnxNode) -> None:
        alpha = float(np.float32(node.attribute("alpha", default)))
        if function == "elu" and alpha != 1.0:
            raise node.unsupported(f"alpha is {alpha:g}", "only 1 has a kernel in float32")
        node.emit_like(0, "unary", Unary(function, alpha), REAL)

    return read


def _gelu(node: OnnxNode) -> None:
    tanh = node.attribute("approximate", "none") == "tanh"
    node.emit_like(0, "unary", Unary("gelu_tanh" if tanh else "gelu"), REAL)


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
            self._tensor = self._node.intermediate(*self._waiting, self._shape, REAL)
            self._waiting = None
        return self._tensor

    def mean(self, tensor: str, axes: tuple[int, ...]) -> str:
        shape = tuple(1 if axis in axes else d for axis, d in enumerate(self._shape))
        return self._node.intermediate("mean", Reduce(axes, True), [tensor], shape, REAL)

    def answer(self) -> None:
        assert self._waiting is not None
        self._node.emit(*self._waiting, REAL, self._axes)

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
        node.emit_like(0, "unary", Unary(named[low, high]), REAL)
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
    node.emit_like(0, "unary", Unary("square" if exponent == 2 else "sqrt"), REAL)


def _reciprocal(node: OnnxNode) -> None:
    axes = node.axes(0)
    one = node.add_constant("one", np.ones((), np.float32), None)
    node.emit("div", Attributes(), [one, node.operand(0, axes)], REAL, axes)


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
    square = node.intermediate("unary", Unary("square"), [centred], shape, REAL)
    variance = chain.mean(square, axes)
    row = tuple(1 if place in axes else d for place, d in enumerate(shape))
    epsilon = np.asarray(node.attribute("epsilon", 1e-5), np.float32)
    added = [variance, node.add_constant("epsilon", epsilon, None)]
    total = node.intermediate("add", Attributes(), added, row, REAL)
    root = node.intermediate("unary", Unary("rsqrt"), [total], row, REAL)
    chain.binary("mul", root)
    for index, function in ((1, "mul"), (2, "add")):
        if node.has(index):
            chain.binary(function, node.constant(index).real)
    chain.answer()


READERS: Mapping[str, Callable[[Any], None]] = MappingProxyType(
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
"""Operators that are read in another way than for int8."""
