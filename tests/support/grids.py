"""Every combination of shapes, strides, paddings and dilations of the kernels that slide windows.

Sizes are small but odd and even, below and above what the kernels take at once. Paddings go beyond
SAME, as merged pad operators make them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.operator import operator_of
from toolchain.ops.pooling.common import Pool2D, infer_pool
from toolchain.ops.window import Padding, Window, same_padding

Q = Quantisation((0.05,), (3,))
WEIGHTS_Q = Quantisation((0.01,), (0,))
SIZES = ((7, 6), (1, 9), (8, 1), (5, 11))
KERNELS = ((1, 1), (3, 3), (2, 5), (1, 4))
STRIDES = ((1, 1), (2, 2), (1, 3))
DILATIONS = ((1, 1), (2, 3))


def _weights(shape: tuple[int, ...]) -> np.ndarray:
    return (np.arange(np.prod(shape)) * 5 % 23 - 11).astype(np.int8).reshape(shape)


def _windows(size: tuple[int, int]) -> Iterator[Window]:
    for kernel, stride, dilation in itertools.product(KERNELS, STRIDES, DILATIONS):
        if dilation != (1, 1) and (stride != (1, 1) or kernel == (1, 1)):
            continue
        same = same_padding(size, kernel, stride, dilation)
        for padding in {Padding(), same, Padding(2, 1, 0, 3)}:
            window = Window(kernel, stride, dilation, padding)
            try:
                window.output_size(*size)
            except ValueError:
                continue
            yield window


def convolutions() -> list[Graph]:
    """Depths and channels around a word."""
    depths = ((1, 8), (3, 5), (4, 1), (8, 4), (8, 9))
    return [
        _convolution(size, window, *depth, batches)
        for size in SIZES
        for window in _windows(size)
        for depth, batches in zip(depths, itertools.cycle((1, 1, 2)), strict=False)
    ]


def depthwise_convolutions() -> list[Graph]:
    return [
        _depthwise(size, window, channels, multiplier, batches)
        for size in SIZES
        for window in _windows(size)
        for channels, multiplier, batches in ((1, 1, 1), (3, 1, 2), (4, 1, 1), (1, 4, 1))
    ]


def pointwise_convolutions() -> list[Graph]:
    """1x1 and 1xN kernels, which Helium's kernels apply to the image itself."""
    windows = [Window((1, 1)), Window((1, 1), (2, 2)), Window((1, 3)), Window((1, 4), (1, 2))]
    depths = ((4, 9), (8, 4), (4, 4), (12, 1), (5, 5), (4, 2))
    return [
        _convolution(size, window, *depth, batches)
        for size in ((1, 14), (5, 7), (1, 9))
        for window in windows
        for depth, batches in zip(depths, itertools.cycle((1, 2)), strict=False)
    ]


def many_channels() -> list[Graph]:
    """Depthwise, more channels than Helium's kernel takes at once (124)."""
    windows = [
        Window((3, 3), (1, 1), (1, 1), Padding(1, 1, 1, 1)),
        Window((3, 3), (2, 2), (1, 1), Padding(0, 0, 1, 1)),
        Window((2, 3)),
        Window((3, 1), (1, 2), (1, 1), Padding(2, 0, 0, 0)),
    ]
    return [
        _depthwise((6, 7), window, channels, 1, 1) for window in windows for channels in (124, 250)
    ]


def pools(kind: str) -> list[Graph]:
    graphs = []
    for size, channels, batches in itertools.product(SIZES, (1, 7, 16), (1, 2)):
        for window in _windows(size):
            if window.dilation == (1, 1):
                graphs += _pool(kind, size, window, channels, batches)
    return graphs


def fully_connected() -> list[Graph]:
    graphs = []
    for rows, depth, units in itertools.product((1, 2, 5), (1, 3, 4, 9), (1, 2, 4, 5, 8, 13)):
        weights = _weights((units, depth))
        tensors = [
            Tensor("x", (rows, depth), DType.INT8, Q),
            Tensor("weights", weights.shape, DType.INT8, WEIGHTS_Q, weights),
            Tensor("y", (rows, units), DType.INT8, Q),
        ]
        op = Op("fully_connected", "op", ("x", "weights"), ("y",), FullyConnected())
        graphs.append(Graph.build("grid", tensors, [op], ["x"], ["y"]))
    return graphs


def _convolution(
    size: tuple[int, int], window: Window, depth: int, channels: int, batches: int
) -> Graph:
    weights = _weights((channels, *window.kernel, depth))
    attributes = Conv2D(window.stride, window.dilation, window.padding)
    x, y = (batches, *size, depth), (batches, *window.output_size(*size), channels)
    return _single(Op("conv2d", "op", ("x", "weights"), ("y",), attributes), x, y, weights)


def _depthwise(
    size: tuple[int, int], window: Window, channels: int, multiplier: int, batches: int
) -> Graph:
    weights = _weights((1, *window.kernel, channels * multiplier))
    attributes = DepthwiseConv2D(window.stride, window.dilation, window.padding)
    x, y = (batches, *size, channels), (batches, *window.output_size(*size), channels * multiplier)
    op = Op("depthwise_conv2d", "op", ("x", "weights"), ("y",), attributes)
    return _single(op, x, y, weights)


def _pool(
    kind: str, size: tuple[int, int], window: Window, channels: int, batches: int
) -> list[Graph]:
    """None where a window would lie in the padding alone."""
    attributes = Pool2D(*window.kernel, *window.stride, window.padding)
    op = Op(kind, "op", ("x",), ("y",), attributes)
    x = Tensor("x", (batches, *size, channels), DType.INT8, Q)
    y = Tensor("y", (), DType.INT8, Q)
    try:
        graph = Graph.build("grid", [x, y], [op], ["x"], ["y"])
        shape = infer_pool(operator_of(op, graph))[0].shape
    except ValueError:
        return []
    return [_single(op, x.shape, shape)]


def _single(
    op: Op, x: tuple[int, ...], y: tuple[int, ...], weights: np.ndarray | None = None
) -> Graph:
    tensors = [Tensor("x", x, DType.INT8, Q), Tensor("y", y, DType.INT8, Q)]
    if weights is not None:
        tensors.append(Tensor("weights", weights.shape, DType.INT8, WEIGHTS_Q, weights))
    return Graph.build("grid", tensors, [op], ["x"], ["y"])
