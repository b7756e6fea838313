"""Networks that no file holds: seeded int8 layers on one graph.

All activations share one quantisation, so that a concatenation only joins bytes and a ReLU only
clamps. Weights are uniform, their scale such that the activations neither vanish nor saturate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import spec_of
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.elementwise.multiplication import Mul
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.movement.slice import Slice
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.unary.relu import Relu
from toolchain.ops.window import same_padding

SPREAD = 73.3
"""Standard deviation of integers spread evenly over [-127, 127]."""
ACTIVATION = Quantisation((0.046875,), (-3,))


class Network:
    """Grows a graph layer by layer; activations are known by their tensors' names.

    Layers without weights are made once for the same operands, as a converter's common
    subexpression elimination does.
    """

    def __init__(self, name: str, shape: tuple[int, ...], seed: int = 0) -> None:
        self.name = name
        self.input = "input"
        self._rng = np.random.default_rng(seed)
        self._tensors = {"input": Tensor("input", shape, DType.INT8, ACTIVATION)}
        self._ops: list[Op] = []
        self._made: dict[tuple[str, tuple[str, ...], Attributes], str] = {}

    def shape(self, x: str) -> tuple[int, ...]:
        return self._tensors[x].shape

    def channels(self, x: str) -> int:
        return self.shape(x)[-1]

    def graph(self, *outputs: str) -> Graph:
        return Graph.build(self.name, self._tensors.values(), self._ops, ["input"], outputs)

    def op(
        self, kind: str, inputs: Sequence[str], attributes: Attributes, q: Quantisation = ACTIVATION
    ) -> str:
        """Add an operator with one output; returns the output's name."""
        key = (kind, tuple(inputs), attributes)
        if key in self._made:
            return self._made[key]
        name = f"{kind}_{len(self._ops)}"
        op = Op(kind, name, tuple(inputs), (name,), attributes)
        operands = [self._tensors[x] for x in inputs]
        hollow = Graph.build(
            name, [*operands, Tensor(name, (1,), DType.INT8, q)], [op], inputs, [name]
        )
        (found,) = spec_of(kind).infer(op, hollow)
        self._tensors[name] = Tensor(name, found.shape, found.dtype, q)
        self._ops.append(op)
        self._made[key] = name
        return name

    def constant(
        self, shape: tuple[int, ...], scale: float, low: int = -127, high: int = 127
    ) -> str:
        """Seeded int8 values, with zero point 0."""
        data = self._rng.integers(low, high + 1, shape).astype(np.int8)
        name = f"constant_{len(self._tensors)}"
        q = Quantisation((float(np.float32(scale)),), (0,))
        self._tensors[name] = Tensor(name, shape, DType.INT8, q, data)
        return name

    def _weights(self, shape: tuple[int, ...], taps: int, axis: int, x: str) -> list[str]:
        """Weights with a scale per channel, and a bias; sums of `taps` products keep the scale."""
        channels = shape[axis]
        stretch = self._rng.uniform(0.7, 1.1, channels) / (SPREAD * math.sqrt(taps))
        scales = tuple(float(s) for s in stretch.astype(np.float32))
        data = self._rng.integers(-127, 128, shape).astype(np.int8)
        weights, bias = f"weights_{len(self._tensors)}", f"bias_{len(self._tensors)}"
        q = Quantisation(scales, (0,) * channels, axis if channels > 1 else None)
        self._tensors[weights] = Tensor(weights, shape, DType.INT8, q, data)
        step = np.float32(self._tensors[x].q.scale)
        products = tuple(float(step * np.float32(s)) for s in scales)
        low, high = -0.5 / products[0], 0.5 / products[0]
        values = self._rng.integers(int(low), int(high) + 1, channels).astype(np.int32)
        over = Quantisation(products, (0,) * channels, 0 if channels > 1 else None)
        self._tensors[bias] = Tensor(bias, (channels,), DType.INT32, over, values)
        return [weights, bias]

    def conv(
        self,
        x: str,
        channels: int,
        kernel: int | tuple[int, int] = 1,
        stride: int = 1,
        relu: Activation = Activation.NONE,
    ) -> str:
        """Convolution with padding SAME and its batch normalisation."""
        sides = (kernel, kernel) if isinstance(kernel, int) else kernel
        _, height, width, depth = self.shape(x)
        shape = (channels, *sides, depth)
        weights = self._weights(shape, sides[0] * sides[1] * depth, 0, x)
        padding = same_padding((height, width), sides, (stride, stride))
        attributes = Conv2D((stride, stride), padding=padding, activation=relu)
        return self.op("conv2d", [x, *weights], attributes)

    def depthwise(
        self,
        x: str,
        kernel: int,
        stride: int = 1,
        relu: Activation = Activation.NONE,
        dilation: int = 1,
    ) -> str:
        _, height, width, depth = self.shape(x)
        weights = self._weights((1, kernel, kernel, depth), kernel * kernel, 3, x)
        pair, apart = (stride, stride), (dilation, dilation)
        padding = same_padding((height, width), (kernel, kernel), pair, apart)
        attributes = DepthwiseConv2D(pair, apart, padding, relu)
        return self.op("depthwise_conv2d", [x, *weights], attributes)

    def dense(
        self,
        x: str,
        units: int,
        q: Quantisation = ACTIVATION,
        *,
        keep_dims: bool = False,
    ) -> str:
        weights = self._weights((units, self.channels(x)), self.channels(x), 0, x)
        return self.op("fully_connected", [x, *weights], FullyConnected(keep_dims=keep_dims), q)

    def relu(self, x: str) -> str:
        return self.op("relu", [x], Relu())

    def pool(self, x: str, kind: str, size: int, stride: int) -> str:
        """`kind`: max or average; padding SAME."""
        _, height, width, _ = self.shape(x)
        padding = same_padding((height, width), (size, size), (stride, stride))
        return self.op(f"{kind}_pool2d", [x], Pool2D(size, size, stride, stride, padding))

    def add(self, x: str, y: str, relu: Activation = Activation.NONE) -> str:
        return self.op("add", [x, y], Sum(relu))

    def sum(self, parts: Sequence[str]) -> str:
        total = parts[0]
        for part in parts[1:]:
            total = self.add(total, part)
        return total

    def sub(self, x: str, y: str, q: Quantisation = ACTIVATION) -> str:
        return self.op("sub", [x, y], Sum(), q)

    def mul(self, x: str, y: str, q: Quantisation = ACTIVATION) -> str:
        return self.op("mul", [x, y], Mul(), q)

    def mean(self, x: str, axes: tuple[int, ...], q: Quantisation = ACTIVATION) -> str:
        """Dimensions stay, as 1."""
        return self.op("mean", [x], Reduce(axes, keep_dims=True), q)

    def reshape(self, x: str, shape: tuple[int, ...]) -> str:
        return self.op("reshape", [x], Reshape(shape))

    def concat(self, parts: Sequence[str]) -> str:
        """Along the channels."""
        whole = tuple(parts)
        return whole[0] if len(whole) == 1 else self.op("concat", whole, Concat(-1))

    def take(self, x: str, begin: int, end: int) -> str:
        """Channels [begin, end)."""
        shape = self.shape(x)
        sizes = (*shape[:-1], end - begin)
        first = (0,) * (len(shape) - 1)
        return self.op("slice", [x], Slice((*first, begin), sizes, (1,) * len(shape), sizes))

    def odd_pixels(self, x: str) -> str:
        """Every second row and column, from the second on."""
        batch, height, width, depth = self.shape(x)
        sizes = (batch, height // 2, width // 2, depth)
        return self.op("slice", [x], Slice((0, 1, 1, 0), sizes, (1, 2, 2, 1), sizes))

    def classifier(self, x: str, classes: int) -> Graph:
        """Mean over the image, then one dense layer: the graph of the whole network."""
        mean = self.mean(x, (1, 2))
        flat = self.reshape(mean, (1, self.channels(x)))
        return self.graph(self.dense(flat, classes))
