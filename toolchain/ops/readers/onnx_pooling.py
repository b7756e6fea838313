"""ONNX readers of pools and of reductions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.arithmetic.fixed_point import ScaleError, check_reach
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.elementwise.div import Div
from toolchain.ops.elementwise.rows import Lookup
from toolchain.ops.movement.pad import Pad
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.movement.slice import Slice
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.readers import onnx
from toolchain.ops.readers.onnx import OnnxWindow
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.window import Padding

_STEPS = 255
"""Steps between the smallest and the largest value of 8 bits."""
_LANES = 4
"""Floats that ONNX Runtime adds at once."""
_LARGEST_RATIO = 2.0
"""Up to this ratio of scales, averaging and then requantising differs from one rounding by at most
1.
"""


def _pool_window(node: kit.OnnxNode) -> OnnxWindow:
    if node.operator.startswith("Global"):
        kernel = node.shape(0)[2:]
    else:
        kernel = tuple(node.attribute("kernel_shape", ()))
    if len(kernel) != len(node.shape(0)) - 2:
        raise ValueError(f"kernel_shape {list(kernel)} for an input {list(node.shape(0))}")
    walk = onnx.window(node, kernel)
    if walk.dilation != (1, 1):
        raise node.unsupported(f"dilations {walk.dilation}", "pool without dilation")
    return walk


def _attributes(walk: OnnxWindow, activation: Activation = Activation.NONE) -> Pool2D:
    padding = Padding(*walk.begin, *walk.end)
    return Pool2D(*walk.kernel, *walk.stride, padding, activation)


def read_max_pool(node: kit.OnnxNode) -> None:
    """Reads MaxPool and GlobalMaxPool. The result keeps the input's scale."""
    axes = onnx.image_axes(node)
    if node.outputs > 1:
        raise node.unsupported("its output Indices", "use its first output only")
    x = node.operand(0, axes, onnx.image_shape(node.shape(0)))
    attributes = _attributes(_pool_window(node))
    shape = onnx.image_shape(node.output_shape())
    node.emit("max_pool2d", attributes, [x], node.quantisation(0), axes, shape)


def read_average_pool(node: kit.OnnxNode) -> None:
    """Reads AveragePool.

    If the output's scale differs from the input's, the pool becomes a mean (one window), a
    depthwise convolution (no padding), or a pool and a requantisation.
    """
    axes, walk = onnx.image_axes(node), _pool_window(node)
    source, shape = onnx.image_shape(node.shape(0)), onnx.image_shape(node.output_shape())
    x_q, q = node.quantisation(0), node.output_quantisation(node.quantisation(0))
    if shape[1:3] == (1, 1) and walk.kernel == source[1:3] and not walk.padded:
        read_global_average_pool(node)
        return
    x = node.operand(0, axes, source)
    if node.attribute("count_include_pad", 0) and walk.padded:
        if any(walk.added):
            raise node.unsupported("ceil_mode with count_include_pad", "use one of the two")
        (top, left), (bottom, right) = walk.begin, walk.end
        around = ((0, 0), (top, bottom), (left, right), (0, 0))
        source = (source[0], source[1] + top + bottom, source[2] + left + right, source[3])
        x = node.intermediate("pad", Pad(around), [x], source, x_q)
        walk = replace(walk, begin=(0, 0), end=(0, 0))
    attributes = _attributes(walk)
    if x_q == q:
        attributes = replace(attributes, activation=Activation(node.fused_activation()))
        node.emit("average_pool2d", attributes, [x], q, axes, shape)
        return
    if not any(walk.begin) and not any(walk.end):
        _emit_sum(node, x, walk, q)
        return
    if x_q.scale > _LARGEST_RATIO * q.scale:
        raise node.unsupported(
            "its output scale is less than half of its input's",
            "quantise with the same scale on both sides, or pool without padding, or with "
            "count_include_pad=1",
        )
    mean = node.intermediate("average_pool2d", attributes, [x], shape, x_q)
    node.emit("lookup", Lookup("Identity"), [mean], q, axes, shape)


def _emit_sum(node: kit.OnnxNode, x: str, walk: OnnxWindow, q: kit.Quantisation) -> None:
    """An average that changes the scale: a depthwise convolution by ones rounds only once."""
    try:
        check_reach(node.quantisation(0).scale / q.scale, _STEPS)
    except ScaleError as error:  # ONNX Runtime converts the mean to int32 without looking
        raise node.unsupported(str(error)) from error
    axes, channels = onnx.image_axes(node), node.shape(0)[1]
    height, width = walk.kernel
    part = float(np.float32(1 / (height * width)))
    ones = np.ones((1, height, width, channels), dtype=np.int8)
    weights = node.add_constant("ones", ones, kit.Quantisation((part,), (0,)))
    activation = Activation(node.fused_activation())
    attributes = DepthwiseConv2D(walk.stride, activation=activation, rounding=Rounding.ONNX)
    shape = onnx.image_shape(node.output_shape())
    node.emit("depthwise_conv2d", attributes, [x, weights], q, axes, shape)


def read_global_average_pool(node: kit.OnnxNode) -> None:
    """Reads GlobalAveragePool: a mean over all dimensions after the first two."""
    rank = len(node.shape(0))
    if node.in_float and math.prod(node.shape(0)[2:]) >= _LANES:
        _emit_mean_in_lanes(node)
    else:
        _emit_mean(node, tuple(range(2, rank)), keep_dims=True)


def _emit_mean_in_lanes(node: kit.OnnxNode) -> None:
    """The mean of floats in the order of ONNX Runtime's `MlasPoolGlobalKernel`: the elements of a
    channel are added in four lanes, the lanes as (0 + 2) + (1 + 3), then what is left one by one.
    """
    batches, channels, *spatial = node.shape(0)
    axes = (0, *range(2, 2 + len(spatial)), 1)
    count = math.prod(spatial)
    whole = count // _LANES * _LANES

    def reshaped(x: str, *shape: int) -> str:
        return node.results("reshape", Reshape(shape), [x], [shape])[0]

    def part(x: str, begin: int, size: int) -> str:
        shape = (batches, size, channels)
        attributes = Slice((0, begin, 0), shape, (1, 1, 1), shape)
        return node.results("slice", attributes, [x], [shape])[0]

    def joined(x: str, shape: tuple[int, ...]) -> str:
        return node.results("sum", Reduce((1,)), [x], [shape])[0]

    def added(one: str, two: str, rows: int) -> str:
        return node.results("add", Sum(), [one, two], [(batches, rows, channels)])[0]

    pixels = reshaped(node.operand(0, axes), batches, count, channels)
    rows = pixels if whole == count else part(pixels, 0, whole)
    turns = reshaped(rows, batches, whole // _LANES, _LANES, channels)
    lanes = joined(turns, (batches, _LANES, channels))
    pair = added(part(lanes, 0, 2), part(lanes, 2, 2), 2)
    total = reshaped(joined(pair, (batches, channels)), batches, 1, channels)
    for place in range(whole, count):
        total = added(total, part(pixels, place, 1), 1)
    shape = (batches, *(1 for _ in spatial), channels)
    size = node.add_constant("count", np.full((1,) * len(shape), count, np.float32), None)
    node.emit("div", Div(), [reshaped(total, *shape), size], None, axes)


def read_mean(node: kit.OnnxNode) -> None:
    """Reads GlobalAveragePool and ReduceMean."""
    if node.operator.startswith("Global"):
        read_global_average_pool(node)
        return
    rank = len(node.shape(0))
    axes = onnx.axes_argument(node)
    if not axes:
        if node.attribute("noop_with_empty_axes", 0):
            raise node.unsupported("it reduces nothing", "remove it")
        axes = tuple(range(rank))
    _emit_mean(node, onnx.resolve_axes(node, axes, rank), bool(node.attribute("keepdims", 1)))


def _reduce(node: kit.OnnxNode, axes: tuple[int, ...], keep_dims: bool) -> Reduce:
    return Reduce(axes, keep_dims, Rounding.ONNX)


def read_reduction_of(
    kind: str, attributes: Callable[[kit.OnnxNode, tuple[int, ...], bool], Reduce] = _reduce
) -> Callable[[kit.OnnxNode], None]:
    """The reader of ReduceSum, or of ReduceMax and ReduceMin, which keep the input's scale."""

    def read(node: kit.OnnxNode) -> None:
        rank = len(node.shape(0))
        axes = onnx.axes_argument(node) or tuple(range(rank))
        reduced, keep_dims = (
            onnx.resolve_axes(node, axes, rank),
            bool(node.attribute("keepdims", 1)),
        )
        q = node.output_quantisation() if kind == "sum" else node.quantisation(0)
        places = _places(node, reduced)
        _emit_reduction(node, kind, attributes(node, places, keep_dims), reduced, q)

    return read


def _emit_mean(node: kit.OnnxNode, reduced: tuple[int, ...], keep_dims: bool) -> None:
    q = node.output_quantisation(node.quantisation(0))
    _emit_reduction(node, "mean", _reduce(node, _places(node, reduced), keep_dims), reduced, q)


def _places(node: kit.OnnxNode, reduced: tuple[int, ...]) -> tuple[int, ...]:
    """Where the reduced dimensions lie."""
    order = node.axes(0)
    return tuple(sorted(order.index(axis) for axis in reduced))


def _emit_reduction(
    node: kit.OnnxNode, kind: str, attributes: Reduce, reduced: tuple[int, ...], q: kit.Quantisation
) -> None:
    """Dimensions that stay lie in the order of the input's."""
    order = node.axes(0)
    left = [axis for axis in order if axis not in reduced]
    axes = order if attributes.keep_dims else tuple(sorted(left).index(axis) for axis in left)
    node.emit(kind, attributes, [node.operand(0, order)], q, axes)
