"""A quantised network with some float32 operators, and a network that is float32 throughout."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.elementwise.functions import UNARY
from toolchain.ops.elementwise.kinds import float_attributes, float_kind
from toolchain.ops.elementwise.multiplication import Mul
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.normalisation.softmax_s8 import Softmax
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.unary.gelu import Gelu
from toolchain.ops.unary.leaky_relu import LeakyRelu
from toolchain.ops.unary.quantize import Quantize
from toolchain.ops.window import Padding


class _Builder:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(8)
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []

    def real(self, name: str, *shape: int) -> str:
        self.tensors.append(Tensor(name, shape, DType.FLOAT32))
        return name

    def quantised(self, name: str, scale: float, zero: int, *shape: int) -> str:
        q = Quantisation((float(np.float32(scale)),), (zero,))
        self.tensors.append(Tensor(name, shape, DType.INT8, q))
        return name

    def constant(self, name: str, *shape: int) -> str:
        data = self.rng.normal(0, 0.3, shape).astype(np.float32)
        self.tensors.append(Tensor(name, shape, DType.FLOAT32, None, data))
        return name

    def weights(self, name: str, x_scale: float, *shape: int) -> tuple[str, str]:
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        bias = self.rng.integers(-500, 500, shape[0]).astype(np.int32)
        q = Quantisation((float(np.float32(0.01)),), (0,))
        bias_q = Quantisation((float(np.float32(0.01 * x_scale)),), (0,))
        self.tensors += [
            Tensor(name, shape, DType.INT8, q, data),
            Tensor(f"{name}_bias", shape[:1], DType.INT32, bias_q, bias),
        ]
        return name, f"{name}_bias"

    def op(self, kind: str, inputs: tuple[str, ...], output: str, attributes: Attributes) -> str:
        self.ops.append(Op(kind, f"{kind}_{len(self.ops)}", inputs, (output,), attributes))
        return output


def mixed() -> Graph:
    """An int8 convolution; softmax, a scale and a norm of its rows in float32; an int8 dense."""
    b = _Builder()
    b.quantised("x", 0.05, 3, 1, 8, 8, 4)
    conv = b.quantised("conv", 0.2, -5, 1, 6, 6, 8)
    b.op("conv2d", ("x", *b.weights("filters", 0.05, 8, 3, 3, 4)), conv, Conv2D())
    real = b.op("dequantize", (conv,), b.real("real", 1, 6, 6, 8), Attributes())
    soft = b.op("softmax", (real,), b.real("soft", 1, 6, 6, 8), Softmax())
    mean = b.op("mean", (real,), b.real("mean", 1, 6, 6, 1), Reduce((3,), True))
    away = b.op("sub", (real, mean), b.real("away", 1, 6, 6, 8), Sum())
    bent = b.op("gelu", (away,), b.real("bent", 1, 6, 6, 8), Gelu(approximate=True))
    scaled = b.op("mul", (soft, bent), b.real("scaled", 1, 6, 6, 8), Mul())
    back = b.quantised("back", 0.01, -20, 1, 6, 6, 8)
    b.op("quantize", (scaled,), back, Quantize(DType.INT8))
    flat = b.op("reshape", (back,), b.quantised("flat", 0.01, -20, 1, 288), Reshape((1, 288)))
    y = b.quantised("y", 0.1, 7, 1, 5)
    b.op("fully_connected", (flat, *b.weights("dense", 0.01, 5, 288)), y, FullyConnected())
    return Graph.build("mixed", b.tensors, b.ops, ["x"], ["y"])


def network() -> Graph:
    """Float32 ends, a picture, two branches, a dense head."""
    b = _Builder()
    b.real("x", 1, 9, 9, 3)
    stem = b.op(
        "conv2d",
        ("x", b.constant("filters", 6, 3, 3, 3), b.constant("bias", 6)),
        b.real("stem", 1, 5, 5, 6),
        Conv2D((2, 2), padding=Padding(1, 1, 1, 1), activation=Activation.RELU6),
    )
    left = b.op(
        "depthwise_conv2d",
        (stem, b.constant("columns", 1, 3, 3, 6), b.constant("shift", 6)),
        b.real("left", 1, 5, 5, 6),
        DepthwiseConv2D(padding=Padding(1, 1, 1, 1)),
    )
    bent = b.op("tanh", (left,), b.real("bent", 1, 5, 5, 6), Attributes())
    total = b.op("add", (stem, bent), b.real("total", 1, 5, 5, 6), Sum())
    pool = Pool2D(2, 2, 2, 2)
    top = b.op("max_pool2d", (total,), b.real("top", 1, 2, 2, 6), pool)
    average = b.op("average_pool2d", (total,), b.real("average", 1, 2, 2, 6), pool)
    both = b.op("concat", (top, average), b.real("both", 1, 2, 2, 12), Concat(3))
    flat = b.op("reshape", (both,), b.real("flat", 1, 48), Reshape((1, 48)))
    scores = b.op(
        "fully_connected",
        (flat, b.constant("dense", 4, 48)),
        b.real("scores", 1, 4),
        FullyConnected(),
    )
    b.op("softmax", (scores,), b.real("y", 1, 4), Softmax())
    return Graph.build("floats", b.tensors, b.ops, ["x"], ["y"])


_OPERATORS: Mapping[str, tuple[str, Attributes]] = MappingProxyType(
    {
        **{row.name: (float_kind(row), float_attributes(row)) for row in UNARY.values()},
        "leaky_relu": ("leaky_relu", LeakyRelu(0.25)),
    }
)
"""Kind and attributes of functions."""


def function_graph(function: str, shape: tuple[int, ...]) -> Graph:
    """One function of a float32 'x' that gives 'y'; the name of its row."""
    tensors = [Tensor(name, shape, DType.FLOAT32) for name in ("x", "y")]
    kind, attributes = _OPERATORS[function]
    op = Op(kind, "function", ("x",), ("y",), attributes)
    return Graph.build("function", tensors, [op], ["x"], ["y"])
