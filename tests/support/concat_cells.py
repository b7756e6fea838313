"""Cells whose branches are concatenated in front of a convolution, as in SwiftNet."""

from __future__ import annotations

import numpy as np

from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.check import check
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.movement.concat import Concat
from toolchain.ops.window import same_padding


def cell(seed: int, depthwise: bool) -> Graph:
    """x -> k pointwise branches -> concat -> [depthwise ->] conv to few channels, as SwiftNet's."""
    rng = np.random.default_rng(seed)
    size, branches = int(rng.integers(4, 9)), int(rng.integers(2, 6))
    tensors: list[Tensor] = []
    ops: list[Op] = []

    def image(name: str, channels: int, q: Quantisation) -> Tensor:
        tensors.append(Tensor(name, (1, size, size, channels), DType.INT8, q))
        return tensors[-1]

    def filters(name: str, shape: tuple[int, ...], axis: int) -> tuple[str, str]:
        count = shape[axis]
        scales = tuple(float(np.float32(s)) for s in rng.uniform(0.002, 0.02, count))
        q = Quantisation(scales, (0,) * count, axis if count > 1 else None)
        data = rng.integers(-127, 128, shape).astype(np.int8)
        tensors.append(Tensor(name, shape, DType.INT8, q, data))
        bias = rng.integers(-2000, 2000, count).astype(np.int32)
        tensors.append(Tensor(f"{name}/bias", (count,), DType.INT32, None, bias))
        return name, f"{name}/bias"

    def quantisation() -> Quantisation:
        scale = float(np.float32(rng.uniform(0.02, 0.1)))
        return Quantisation((scale,), (int(rng.integers(-128, 128)),))

    joined = quantisation()
    x = image("x", int(rng.integers(2, 6)), quantisation())
    names = []
    for index in range(branches):
        channels = int(rng.integers(1, 9))
        weights = filters(f"w{index}", (channels, 1, 1, x.shape[3]), 0)
        out = image(f"b{index}", channels, joined)
        names.append(out.name)
        ops.append(Op("conv2d", f"branch{index}", (x.name, *weights), (out.name,), Conv2D()))
    total = sum(t.shape[3] for t in tensors if t.name in names)
    last = image("joined", total, joined)
    ops.append(Op("concat", "join", tuple(names), (last.name,), Concat(-1)))
    padding = same_padding((size, size), (3, 3), (1, 1))
    if depthwise:
        weights = filters("wd", (1, 3, 3, total), 3)
        out = image("d", total, quantisation())
        attributes = DepthwiseConv2D(padding=padding, activation=Activation.RELU6)
        ops.append(Op("depthwise_conv2d", "dw", (last.name, *weights), (out.name,), attributes))
        last = out
    kernel = int(rng.choice([1, 3]))
    weights = filters("wy", (2, kernel, kernel, total), 0)
    y = image("y", 2, quantisation())
    conv = Conv2D(padding=padding if kernel == 3 else Conv2D().padding, activation=Activation.RELU)
    ops.append(Op("conv2d", "reduce", (last.name, *weights), (y.name,), conv))
    return check(Graph.build("cell", tensors, ops, ["x"], ["y"]))
