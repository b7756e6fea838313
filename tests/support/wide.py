"""A small network of int16 activations and int8 weights, as TFLite's 16x8 scheme has it."""

from __future__ import annotations

import numpy as np

from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.elementwise.multiplication import Mul
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.pad import Pad
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.normalisation.softmax_s8 import Softmax
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.unary.quantize import Quantize
from toolchain.ops.window import Padding


class _Builder:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(21)
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []

    def value(self, name: str, shape: tuple[int, ...], scale: float) -> str:
        q = Quantisation((float(np.float32(scale)),), (0,))
        self.tensors.append(Tensor(name, shape, DType.INT16, q))
        return name

    def weights(self, name: str, shape: tuple[int, ...], axis: int, scale: float) -> list[str]:
        """Filters with a scale a channel, and biases for inputs of `scale`."""
        channels = shape[axis]
        scales = tuple(float(np.float32(s)) for s in self.rng.uniform(0.002, 0.006, channels))
        q = Quantisation(scales, (0,) * channels, axis)
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        finer = tuple(float(np.float32(s * scale)) for s in scales)
        bias = self.rng.integers(-(2**20), 2**20, channels).astype(np.int64)
        bias_q = Quantisation(finer, (0,) * channels, 0)
        self.tensors += [
            Tensor(f"{name}_weights", shape, DType.INT8, q, data),
            Tensor(f"{name}_bias", (channels,), DType.INT64, bias_q, bias),
        ]
        return [f"{name}_weights", f"{name}_bias"]

    def op(self, kind: str, inputs: list[str], output: str, attributes: Attributes) -> str:
        self.ops.append(Op(kind, f"{kind}_{len(self.ops)}", tuple(inputs), (output,), attributes))
        return output


def network() -> Graph:
    """Float ends; a picture, two branches that meet twice, a dense head."""
    b = _Builder()
    b.tensors.append(Tensor("image", (1, 12, 10, 3), DType.FLOAT32))
    x = b.op("quantize", ["image"], b.value("x", (1, 12, 10, 3), 1 / 3000), Quantize(DType.INT16))
    padded = b.op(
        "pad",
        [x],
        b.value("padded", (1, 13, 11, 3), 1 / 3000),
        Pad(((0, 0), (0, 1), (1, 0), (0, 0))),
    )
    own = b.weights("first", (8, 3, 3, 3), 0, 1 / 3000)
    stem = b.op(
        "conv2d",
        [padded, *own],
        b.value("stem", (1, 6, 5, 8), 0.0006),
        Conv2D((2, 2), activation=Activation.RELU),
    )
    own = b.weights("second", (1, 3, 3, 8), 3, 0.0006)
    left = b.op(
        "depthwise_conv2d",
        [stem, *own],
        b.value("left", (1, 6, 5, 8), 0.0004),
        DepthwiseConv2D(padding=Padding(1, 1, 1, 1)),
    )
    gate = b.op("logistic", [left], b.value("gate", (1, 6, 5, 8), 1 / 32768), Attributes())
    scaled = b.op("mul", [stem, gate], b.value("scaled", (1, 6, 5, 8), 0.0006), Mul())
    total = b.op("add", [scaled, left], b.value("total", (1, 6, 5, 8), 0.0009), Sum())
    bent = b.op("tanh", [total], b.value("bent", (1, 6, 5, 8), 1 / 32768), Attributes())
    largest = b.op(
        "max_pool2d", [bent], b.value("largest", (1, 3, 2, 8), 1 / 32768), Pool2D(2, 2, 2, 2)
    )
    average = b.op(
        "average_pool2d",
        [bent],
        b.value("average", (1, 3, 2, 8), 1 / 32768),
        Pool2D(2, 2, 2, 2),
    )
    both = b.op("concat", [largest, average], b.value("both", (1, 3, 2, 16), 1 / 32768), Concat(3))
    flat = b.op("reshape", [both], b.value("flat", (1, 96), 1 / 32768), Reshape((1, 96)))
    own = b.weights("dense", (5, 96), 0, 1 / 32768)
    scores = b.op(
        "fully_connected", [flat, *own], b.value("scores", (1, 5), 0.0005), FullyConnected()
    )
    chances = b.op("softmax", [scores], b.value("chances", (1, 5), 1 / 32768), Softmax())
    b.tensors.append(Tensor("result", (1, 5), DType.FLOAT32))
    b.op("dequantize", [chances], "result", Attributes())
    return Graph.build("wide", b.tensors, b.ops, ["image"], ["result"])
