"""The shapes over which `benchmarks.cost` measures: what networks have, and blocks of them.

Drawn at random from a seed. Images are up to 48 rows high, and often a single output row, as blocks
of a split network are; channels are often no multiple of four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks._cost_floats import FLOATS
from benchmarks._cost_rare import RARE, alone
from toolchain.boards import Core
from toolchain.cost.fitted import kernel_name
from toolchain.cost.key import COPIES, Key, operator_key, source_digest
from toolchain.cost.predicted import only_views
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import forms
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.convolution.partial_conv2d import PartialConv2D
from toolchain.ops.convolution.transpose_conv2d_s8 import TransposeConv2D
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.elementwise.multiplication import Mul
from toolchain.ops.kernel import Kernel as Choice
from toolchain.ops.lowering import Lowered, lower
from toolchain.ops.matmul.common import BatchMatMul
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.matmul.partial_fully_connected import PartialFullyConnected
from toolchain.ops.movement.block_concat import BlockConcat
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.pad import Pad
from toolchain.ops.normalisation.softmax_s8 import Softmax
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.preference import Preference
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.reduction.requantise_sums import Law, RequantiseSums
from toolchain.ops.resize.common import Resize
from toolchain.ops.unary.relu import Relu
from toolchain.ops.window import Padding, Window, same_padding
from toolchain.timing.kernel_firmware import Kernel
from toolchain.timing.kernel_timing import copies_kernel

Rng = np.random.Generator
_X = Quantisation((0.05,), (-3,))
_Y = Quantisation((0.06,), (4,))
_AFTER_RELU = Quantisation((6 / 255,), (-128,))
"""What an activation leaves as it is, and sums can be rounded to at once."""


def _pick(rng: Rng, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _channels(rng: Rng, most: int) -> int:
    """Up to `most`; two thirds of them are multiples of eight."""
    return (
        int(rng.integers(1, most + 1))
        if rng.random() < 1 / 3
        else 8 * int(rng.integers(1, most // 8 + 1))
    )


def _image(rng: Rng, window: tuple[int, int], stride: tuple[int, int]) -> tuple[int, int]:
    """Height and width: of a whole image, or of a block with few output rows or columns."""
    width = int(rng.integers(4, 49))
    height = int(rng.integers(4, 33))
    few = int(rng.integers(1, 4))
    what = rng.random()
    if what < 0.5:
        height = (few - 1) * stride[0] + window[0]
    elif what < 0.6:
        width = (few - 1) * stride[1] + window[1]
    return max(height, window[0]), max(width, window[1])


def _window(rng: Rng) -> tuple[Window, tuple[int, int]]:
    kernel = _pick(
        rng, (3, 3), (3, 3), (3, 3), (5, 5), (7, 7), (1, 3), (3, 1), (1, 7), (5, 1), (2, 2)
    )
    stride = _pick(rng, (1, 1), (1, 1), (2, 2), (1, 2))
    dilation = _pick(rng, (2, 2), (1, 2), (2, 1)) if rng.random() < 0.12 else (1, 1)
    size = _image(rng, Window(kernel, stride, dilation).extent, stride)
    padding = same_padding(size, kernel, stride, dilation)
    if rng.random() < 0.5:  # a block inside the image
        padding = replace(padding, top=0, bottom=0)
    if rng.random() < 0.15:
        padding = Padding()
    return Window(kernel, stride, dilation, padding), size


def _activation(rng: Rng) -> Activation:
    return Activation(_pick(rng, Activation.NONE, Activation.RELU, Activation.RELU6))


def _weighted(
    rng: Rng, kind: str, attributes: Attributes, x_shape: tuple[int, ...], shape: tuple[int, ...]
) -> Graph:
    """A layer with weights of eight bits, scaled as trained ones are."""
    axis = 3 if kind == "depthwise_conv2d" else 0
    channels = shape[axis]
    per_channel = len(shape) == 4
    count = channels if per_channel else 1
    taps = int(np.prod(shape)) // channels
    scale = 0.02 / np.sqrt(taps)
    apart = np.random.default_rng(shape)
    zero = 9 if kind == "conv2d" and apart.random() < 1 / 12 else 0
    count = 1 if zero else count
    share = _pick(apart, 0.05, 0.5, 1.0) if apart.random() < 1 / 6 else 0.0
    each = np.where(apart.random(count) < share, 0.8, scale).astype(np.float32)
    scales = tuple(float(one) for one in each)
    w_q = Quantisation(scales, (zero,) * count, axis if count > 1 else None)
    b_scales = tuple(float(np.float32(0.05) * one) for one in each)
    b_q = Quantisation(b_scales, (0,) * count, 0 if count > 1 else None)
    if isinstance(attributes, Conv2D | DepthwiseConv2D) and apart.random() < 0.1:
        attributes = replace(attributes, rounding=Rounding.ONNX)
    whole = isinstance(attributes, Conv2D | DepthwiseConv2D) and apart.random() < 0.5
    result = _AFTER_RELU if whole else _Y
    weights = rng.integers(-127, 128, shape).astype(np.int8)
    bias = rng.integers(-1000, 1000, channels).astype(np.int32)
    return graph_of(
        kind,
        attributes,
        [
            Tensor("x", x_shape, DType.INT8, _X),
            Tensor("weights", shape, DType.INT8, w_q, weights),
            Tensor("bias", (channels,), DType.INT32, b_q, bias),
        ],
        result,
    )


def graph_of(
    kind: str, attributes: Attributes, tensors: list[Tensor], result: Quantisation = _Y
) -> Graph:
    """One operator alone."""
    return alone(kind, attributes, tensors, result)


def conv2d(rng: Rng) -> Graph:
    window, size = _window(rng)
    depth, channels = _channels(rng, 48), _channels(rng, 48)
    if rng.random() < 0.2:
        depth = int(rng.integers(1, 5))
    groups = 1
    if rng.random() < 0.1:
        groups = int(rng.integers(2, 5))
    attributes = Conv2D(window.stride, window.dilation, window.padding, _activation(rng))
    x_shape = (1, *size, depth * groups)
    return _weighted(rng, "conv2d", attributes, x_shape, (channels * groups, *window.kernel, depth))


def winograd(rng: Rng) -> Graph:
    """3x3 over whole images and blocks of a few rows, of channels that Winograd's kernels take."""
    rows = _pick(rng, int(rng.integers(3, 9)), int(rng.integers(4, 33)))
    size = (rows, int(rng.integers(3, 33)))
    depth, channels = 8 * int(rng.integers(1, 9)), 2 * int(rng.integers(2, 33))
    padding = same_padding(size, (3, 3), (1, 1))
    if rng.random() < 0.5:  # a block inside the image
        padding = replace(padding, top=0, bottom=0)
    attributes = Conv2D((1, 1), (1, 1), padding, _activation(rng))
    return _weighted(rng, "conv2d", attributes, (1, *size, depth), (channels, 3, 3, depth))


def first_layer(rng: Rng) -> Graph:
    """Few channels in: spectrograms, whose rows may be one word, and pictures."""
    depth = _pick(rng, 1, 1, 2, 3)
    kernel = _pick(rng, (10, 4), (4, 4), (3, 2), (3, 3), (5, 5), (10, 8))
    stride = _pick(rng, (1, 1), (2, 2), (2, 1))
    size = int(rng.integers(kernel[0], 50)), int(rng.integers(kernel[1], 50))
    padding = _pick(rng, same_padding(size, kernel, stride), Padding())
    attributes = Conv2D(stride, (1, 1), padding, _activation(rng))
    shape = (_channels(rng, 48), *kernel, depth)
    return _weighted(rng, "conv2d", attributes, (1, *size, depth), shape)


def pointwise(rng: Rng) -> Graph:
    size = _image(rng, (1, 1), (1, 1))
    stride = (2, 2) if rng.random() < 0.15 else (1, 1)
    depth, channels = _channels(rng, 160), _channels(rng, 160)
    attributes = Conv2D(stride, (1, 1), Padding(), _activation(rng))
    return _weighted(rng, "conv2d", attributes, (1, *size, depth), (channels, 1, 1, depth))


def strided_pointwise(rng: Rng) -> Graph:
    size = _image(rng, (1, 1), (2, 2))
    depth, channels = _channels(rng, 64), _channels(rng, 64)
    attributes = Conv2D(_pick(rng, (2, 2), (1, 2), (3, 3)), (1, 1), Padding(), _activation(rng))
    return _weighted(rng, "conv2d", attributes, (1, *size, depth), (channels, 1, 1, depth))


def row(rng: Rng) -> Graph:
    """One-dimensional and unpadded, as streaming networks have it."""
    kernel, stride = int(rng.integers(2, 10)), _pick(rng, 1, 1, 2)
    depth, channels = 4 * int(rng.integers(1, 13)), _channels(rng, 64)
    width = kernel + stride * int(rng.integers(0, 33))
    attributes = Conv2D((1, stride), (1, 1), Padding(), _activation(rng))
    return _weighted(rng, "conv2d", attributes, (1, 1, width, depth), (channels, 1, kernel, depth))


def depthwise_conv2d(rng: Rng) -> Graph:
    window, size = _window(rng)
    depth = _channels(rng, 64)
    multiplier = 2 if rng.random() < 0.1 else 1
    attributes = DepthwiseConv2D(window.stride, window.dilation, window.padding, _activation(rng))
    shape = (1, *window.kernel, depth * multiplier)
    graph = _weighted(rng, "depthwise_conv2d", attributes, (1, *size, depth), shape)
    return _scattered(rng, graph) if rng.random() < 0.5 else graph


def depthwise_3x3(rng: Rng) -> Graph:
    """Windows of 3x3 over whole images and blocks, whose lines are short or long."""
    stride = _pick(rng, (1, 1), (1, 1), (2, 2), (1, 2), (2, 1))
    size = _image(rng, (3, 3), stride)
    padding = _pick(rng, same_padding(size, (3, 3), stride), Padding(1, 1, 1, 1), Padding())
    if rng.random() < 0.3:  # a block inside the image
        padding = replace(padding, top=0, bottom=0)
    depth = max(_channels(rng, 64), 2)
    attributes = DepthwiseConv2D(stride, (1, 1), padding, _activation(rng))
    graph = _weighted(rng, "depthwise_conv2d", attributes, (1, *size, depth), (1, 3, 3, depth))
    return _scattered(rng, graph)


def _scattered(rng: Rng, graph: Graph) -> Graph:
    """With a scale of its own for each channel, so that some sums are rounded once and others
    twice, and a few are scaled by 0.5 or more.
    """
    weights, bias = graph.tensors["weights"], graph.tensors["bias"]
    large = rng.random(len(weights.q.scales)) < _pick(rng, 0.0, 0.0, 0.0, 0.2, 0.5)
    each = np.where(large, 1.6, rng.uniform(0.005, 0.02, len(large))).astype(np.float32)
    x_scale = np.float32(graph.tensors["x"].q.scale)
    tensors = {
        tensor.name: replace(
            tensor,
            quantisation=replace(tensor.q, scales=tuple(map(float, scales))),
        )
        for tensor, scales in ((weights, each), (bias, each * x_scale))
    }
    return replace(graph, tensors={**graph.tensors, **tensors})


def transpose_conv2d(rng: Rng) -> Graph:
    """Images enlarged twofold, mostly."""
    kernel, stride = _pick(rng, (2, 2), (3, 3), (4, 4), (5, 5)), _pick(rng, (2, 2), (2, 2), (1, 1))
    height, width = int(rng.integers(1, 17)), int(rng.integers(2, 25))
    depth, channels = _channels(rng, 48), _channels(rng, 48)
    size = (height * stride[0], width * stride[1])
    attributes = TransposeConv2D(size, stride, same_padding(size, kernel, stride))
    x_shape, shape = (1, height, width, depth), (channels, *kernel, depth)
    return _weighted(rng, "transpose_conv2d", attributes, x_shape, shape)


def heavy(rng: Rng) -> Graph:
    """More weights than a cache holds, over few pixels, as the last layers of a network have it."""
    size = (int(rng.integers(2, 7)), int(rng.integers(2, 7)))
    if rng.random() < 0.5:
        depth, channels = 8 * int(rng.integers(12, 33)), 8 * int(rng.integers(12, 33))
        attributes = Conv2D((1, 1), (1, 1), Padding(), _activation(rng))
        return _weighted(rng, "conv2d", attributes, (1, *size, depth), (channels, 1, 1, depth))
    depth, channels = 8 * int(rng.integers(4, 9)), 8 * int(rng.integers(6, 13))
    padding = same_padding(size, (3, 3), (1, 1))
    attributes = Conv2D((1, 1), (1, 1), padding, _activation(rng))
    return _weighted(rng, "conv2d", attributes, (1, *size, depth), (channels, 3, 3, depth))


def streaming_depthwise(rng: Rng) -> Graph:
    """Long windows over time, one value wide, of which networks that run on a stream take few."""
    kernel = int(_pick(rng, 3, 4, 5, 6, 9, 11, 13, 17, 21, 23, 29))
    depth, steps = _channels(rng, 64), int(_pick(rng, 1, 1, 2, 3, 8, 24))
    attributes = DepthwiseConv2D((1, 1), (1, 1), Padding(), _activation(rng))
    shape = (1, kernel, 1, depth)
    return _weighted(rng, "depthwise_conv2d", attributes, (1, kernel + steps - 1, 1, depth), shape)


def fully_connected(rng: Rng) -> Graph:
    rows = _pick(rng, 1, 1, 1, 2, 8, 16)
    depth, units = _channels(rng, 384), _channels(rng, 160)
    attributes = FullyConnected(_activation(rng))
    return _weighted(rng, "fully_connected", attributes, (rows, depth), (units, depth))


def computed_fully_connected(rng: Rng) -> Graph:
    """Weights that are computed at run time."""
    graph = fully_connected(rng)
    computed = replace(graph.tensors["weights"], constant=None)
    tensors = [computed if t.name == "weights" else t for t in graph.tensors.values()]
    return Graph.build(graph.name, tensors, graph.ops, ("x", "weights"), graph.outputs)


def scaled_fully_connected(rng: Rng) -> Graph:
    """A scale for each unit, as ONNX files have them; of every other layer two units have weights
    that cannot be joined."""
    graph = fully_connected(rng)
    weights, bias = graph.tensors["weights"], graph.tensors["bias"]
    assert weights.constant is not None
    data, units = weights.constant.copy(), len(weights.constant)
    if units > 1 and rng.random() < 0.5:
        data[:2, 0] = -1, -128
    scales = (weights.q.scales[0] * rng.uniform(0.5, 1.0, units)).astype(np.float32)
    w_q = Quantisation(tuple(map(float, scales)), (0,) * units, 0 if units > 1 else None)
    b_q = Quantisation(tuple(map(float, np.float32(0.05) * scales)), w_q.zero_points, w_q.axis)
    changed = {
        "weights": replace(weights, quantisation=w_q, constant=data),
        "bias": replace(bias, quantisation=b_q),
    }
    return replace(graph, tensors={**graph.tensors, **changed})


def _four_bits(sampler: Callable[[Rng], Graph]) -> Callable[[Rng], Graph]:
    """Weights that fit four bits, on scales as much coarser."""

    def sample(rng: Rng) -> Graph:
        graph = sampler(rng)
        weights = graph.tensors["weights"]
        q = weights.q
        data = rng.integers(-8, 8, weights.shape).astype(np.int8)
        scales = tuple(16 * scale for scale in q.scales)
        few = replace(
            weights, quantisation=Quantisation(scales, (0,) * len(scales), q.axis), constant=data
        )
        return replace(graph, tensors={**graph.tensors, "weights": few})

    return sample


def _pool(kind: str) -> Callable[[Rng], Graph]:
    def sample(rng: Rng) -> Graph:
        kernel = _pick(rng, (2, 2), (3, 3), (3, 3), (5, 5))
        stride = _pick(rng, (1, 1), (2, 2))
        size = _image(rng, kernel, stride)
        padding = same_padding(size, kernel, stride)
        if rng.random() < 0.4:
            padding = replace(padding, top=0, bottom=0)
        if rng.random() < 0.3:
            padding = Padding()
        if rng.random() < 0.2:
            size = (int(rng.integers(1, 9)), int(rng.integers(1, 9)))
            kernel, stride, padding = size, (1, 1), Padding()
        x = Tensor("x", (1, *size, _channels(rng, 64)), DType.INT8, _X)
        return graph_of(kind, Pool2D(*kernel, *stride, padding), [x], _X)

    return sample


def _pair(kind: str, attributes_of: Callable[..., Attributes]) -> Callable[[Rng], Graph]:
    def sample(rng: Rng) -> Graph:
        shape = (1, _pick(rng, 1, 1, 2, 8, 16), int(rng.integers(1, 33)), _channels(rng, 64))
        other = shape
        if rng.random() < 0.3:
            other = _pick(rng, (1, 1, 1, shape[3]), (1, *shape[1:3], 1))
        scale = 0.0625 if rng.random() < 0.2 else 0.04
        tensors = [
            Tensor(
                "x", shape, DType.INT8, Quantisation((0.0625,), (-3,)) if rng.random() < 0.2 else _X
            ),
            Tensor("b", other, DType.INT8, Quantisation((scale,), (5,))),
        ]
        attributes = attributes_of(activation=_activation(rng))
        result = Quantisation((0.0625,), (-5,)) if rng.random() < 0.3 else _Y
        return graph_of(kind, attributes, tensors, result)

    return sample


def concat(rng: Rng) -> Graph:
    axis = int(_pick(rng, 2, 3, 3, 3))
    rows = _pick(rng, 1, 1, 2, 8, 16) if axis == 3 else _pick(rng, 2, 3, 8)
    shape = (1, rows, int(rng.integers(2, 25)), _channels(rng, 48))
    tensors = []
    for index in range(int(rng.integers(2, 6))):
        length = _channels(rng, 48) if axis == 3 else int(rng.integers(1, 9))
        part = (*shape[:axis], length, *shape[axis + 1 :])
        tensors.append(Tensor(f"x{index}", part, DType.INT8, _X))
    return graph_of("concat", Concat(axis), tensors, _X)


def block_concat(rng: Rng) -> Graph:
    shape = (1, int(rng.integers(1, 9)), int(rng.integers(1, 33)), _channels(rng, 48))
    axis = int(_pick(rng, 1, 1, 1, 1, 2, 3))
    tensors, parts = [], []
    for index in range(_pick(rng, 1, 1, 1, 2)):
        length = _pick(rng, shape[axis], int(rng.integers(1, 9)))
        begin = int(rng.integers(length))
        parts.append((begin, int(rng.integers(begin, length)) + 1))
        part = (*shape[:axis], length, *shape[axis + 1 :])
        tensors.append(Tensor(f"x{index}", part, DType.INT8, _X))
    return graph_of("block_concat", BlockConcat(axis, tuple(parts)), tensors, _X)


def relu(rng: Rng) -> Graph:
    """A straight line, of which one end may be cut off more narrowly than int8."""
    shape = (1, _pick(rng, 1, 1, 2, 8, 16), int(rng.integers(1, 33)), _channels(rng, 64))
    bounds = _pick(rng, *type(Relu().bounds))
    result = Quantisation((_pick(rng, 0.05, 0.025, 0.06),), (_pick(rng, -3, -128),))
    x = Tensor("x", shape, DType.INT8, _X)
    return graph_of("relu", Relu(bounds), [x], result)


def logistic(rng: Rng) -> Graph:
    shape = (1, int(rng.integers(1, 9)), int(rng.integers(1, 33)), _channels(rng, 64))
    result = Quantisation((1 / 256,), (-128,))
    return graph_of("logistic", Attributes(), [Tensor("x", shape, DType.INT8, _X)], result)


def _reduce(kind: str) -> Callable[[Rng], Graph]:
    def sample(rng: Rng) -> Graph:
        shape = (1, int(rng.integers(1, 15)), int(rng.integers(1, 15)), _channels(rng, 160))
        axes = _pick(rng, (1, 2), (1, 2), (1, 2), (2,), (3,))
        x = Tensor("x", shape, DType.INT8, _X)
        return graph_of(kind, Reduce(axes, _pick(rng, True, False)), [x], _Y)

    return sample


def softmax(rng: Rng) -> Graph:
    shape = (_pick(rng, 1, 1, 4, 32), _pick(rng, 2, 10, 12, int(rng.integers(2, 129)), 1000))
    x = Tensor("x", shape, DType.INT8, Quantisation((float(_pick(rng, 0.02, 0.1, 0.4)),), (0,)))
    return graph_of("softmax", Softmax(), [x], Quantisation((1 / 256,), (-128,)))


def batch_matmul(rng: Rng) -> Graph:
    batch, rows = int(_pick(rng, 1, 1, 2, 4)), int(_pick(rng, 1, 2, 4, int(rng.integers(1, 65))))
    depth, columns = _channels(rng, 64), _channels(rng, 64)
    adjoint_x, adjoint_y = _pick(rng, (False, False), (False, True), (True, False))
    x_shape = (batch, depth, rows) if adjoint_x else (batch, rows, depth)
    y_shape = (batch, columns, depth) if adjoint_y else (batch, depth, columns)
    tensors = [
        Tensor("x", x_shape, DType.INT8, Quantisation((0.02,), (3,))),
        Tensor("w", y_shape, DType.INT8, Quantisation((0.02,), (-5,))),
    ]
    attributes = BatchMatMul(adjoint_x, adjoint_y)
    return graph_of("batch_matmul", attributes, tensors, Quantisation((0.1,), (0,)))


def _partial(sampler: Callable[[Rng], Graph], kind: str) -> Callable[[Rng], Graph]:
    """Sums over some of the inputs, mostly on top of others."""

    def sample(rng: Rng) -> Graph:
        graph = sampler(rng)
        while graph.ops[0].kind == "conv2d" and _grouped(graph):
            graph = sampler(rng)
        (op,) = graph.ops
        y = replace(graph.output(op), dtype=DType.INT32, quantisation=None)
        names = [*op.inputs]
        tensors = [tensor for tensor in graph.tensors.values() if tensor.name != "y"]
        while len(names) < (1 if kind == "partial_sum" else 2 if "matmul" in kind else 3):
            names.append("")
        names.append("sums" if rng.random() < 0.75 else "")
        if names[-1]:
            tensors.append(replace(y, name="sums"))
        attributes = op.attributes
        if isinstance(attributes, Conv2D):
            attributes = PartialConv2D(attributes.stride, attributes.dilation, attributes.padding)
        elif isinstance(attributes, FullyConnected):
            attributes = PartialFullyConnected()
        given = [tensor.name for tensor in tensors if not tensor.is_constant]
        part = Op(kind, kind, tuple(names), ("y",), attributes)
        return Graph.build("k", [*tensors, y], [part], given, ["y"])

    return sample


def _grouped(graph: Graph) -> bool:
    return graph.tensors["x"].shape[3] != graph.tensors["weights"].shape[3]


def requantise_sums(rng: Rng) -> Graph:
    channels = _channels(rng, 64)
    sums = Tensor(
        "x", (1, int(rng.integers(1, 5)), int(rng.integers(1, 25)), channels), DType.INT32
    )
    law = _pick(rng, Law.TWICE, Law.TWICE, Law.ONCE, Law.AWAY, Law.EVEN)
    count = _pick(rng, 1, channels)
    scales = {"multipliers": (1 << 30,) * count, "codes": (6,) * count}
    if law is Law.ONCE:
        scales["lows"] = (0,) * count
    attributes = (
        RequantiseSums(law, activation=_activation(rng), **scales)
        if law in (Law.TWICE, Law.ONCE)
        else RequantiseSums(law, count=int(rng.integers(4, 50)), activation=_activation(rng))
    )
    return graph_of("requantise_sums", attributes, [sums])


def pad(rng: Rng) -> Graph:
    """Around an image, or behind its channels as residual blocks have it."""
    shape = (1, int(rng.integers(2, 49)), int(rng.integers(2, 49)), _channels(rng, 48))
    ends = rng.integers(0, 4, (2, 2))
    behind = _channels(rng, 48) if rng.random() < 0.5 else 0
    around = ((0, 0), (0, 0)) if behind else tuple((int(a), int(b)) for a, b in ends)
    attributes = Pad(((0, 0), *around, (0, behind)))
    return graph_of("pad", attributes, [Tensor("x", shape, DType.INT8, _X)], _X)


def resize_nearest(rng: Rng) -> Graph:
    height, width = int(rng.integers(1, 17)), int(rng.integers(1, 17))
    factor = _pick(rng, 2, 2, 3, 4)
    to = (factor * height, factor * width)
    if rng.random() < 0.25:
        to = (int(rng.integers(1, 49)), int(rng.integers(1, 49)))
    x = Tensor("x", (1, height, width, _channels(rng, 64)), DType.INT8, _X)
    return graph_of("resize_nearest", Resize(*to), [x], _X)


def resize_bilinear(rng: Rng) -> Graph:
    height, width = int(rng.integers(1, 17)), int(rng.integers(1, 17))
    factor = _pick(rng, 1, 2, 2, 4)
    to = (factor * height, factor * width)
    if rng.random() < 0.25:
        to = (int(rng.integers(1, 49)), int(rng.integers(1, 49)))
    x = Tensor("x", (1, height, width, _channels(rng, 64)), DType.INT8, _X)
    legacy = bool(rng.random() < 0.3)
    return graph_of("resize_bilinear", Resize(*to, legacy=legacy), [x], _X)


GRID: Mapping[str, tuple[Callable[[Rng], Graph], int]] = {
    "conv2d": (conv2d, 192),
    "winograd": (winograd, 48),
    "first_layer": (first_layer, 48),
    "pointwise": (pointwise, 128),
    "strided_pointwise": (strided_pointwise, 32),
    "row": (row, 32),
    "depthwise_conv2d": (depthwise_conv2d, 192),
    "depthwise_3x3": (depthwise_3x3, 96),
    "transpose_conv2d": (transpose_conv2d, 40),
    "heavy": (heavy, 32),
    "streaming_depthwise": (streaming_depthwise, 32),
    "fully_connected": (fully_connected, 64),
    "detection_postprocess": (forms()["detection_postprocess.int8"].sample, 32),
    "decode_boxes": (forms()["decode_boxes"].sample, 32),
    "local_response_norm": (forms()["local_response_norm"].sample, 32),
    "top_k": (forms()["top_k"].sample, 60),
    "computed_fully_connected": (computed_fully_connected, 32),
    "scaled_fully_connected": (scaled_fully_connected, 48),
    "four_bit_conv2d": (_four_bits(conv2d), 96),
    "four_bit_pointwise": (_four_bits(pointwise), 64),
    "four_bit_row": (_four_bits(row), 24),
    "four_bit_heavy": (_four_bits(heavy), 16),
    "four_bit_fully_connected": (_four_bits(fully_connected), 48),
    "average_pool2d": (_pool("average_pool2d"), 64),
    "max_pool2d": (_pool("max_pool2d"), 64),
    "add": (_pair("add", Sum), 48),
    "mul": (_pair("mul", Mul), 48),
    "relu": (relu, 48),
    "logistic": (logistic, 24),
    "concat": (concat, 40),
    "block_concat": (block_concat, 64),
    "padded_image": (pad, 32),
    "larger_image": (resize_nearest, 24),
    "interpolated_image": (resize_bilinear, 32),
    "mean": (_reduce("mean"), 48),
    "softmax": (softmax, 24),
    "batch_matmul": (batch_matmul, 40),
    "partial_conv2d": (_partial(conv2d, "partial_conv2d"), 64),
    "partial_pointwise": (_partial(pointwise, "partial_conv2d"), 32),
    "partial_fully_connected": (_partial(fully_connected, "partial_fully_connected"), 32),
    "partial_matmul": (_partial(batch_matmul, "partial_matmul"), 24),
    "partial_sum": (_partial(_reduce("mean"), "partial_sum"), 32),
    "requantise_sums": (requantise_sums, 96),
    **FLOATS,
    **RARE,
}
"""For each family a sampler, and how many of them are measured."""


_COPIES = 20
_SAMPLES = 8
"""Of each form that the grid has no sampler for."""


def families() -> tuple[str, ...]:
    """What the grid has shapes of, all other forms of operators, and plain copies."""
    return (*GRID, *(name for name in forms() if name not in GRID), COPIES)


@dataclass(frozen=True)
class Drawn:
    """An operator alone, with one of the kernels that `preference` gives it.

    `title`: the kernel's, where it is not the first form.
    """

    preference: Preference
    lowered: Lowered
    title: str

    @property
    def name(self) -> str:
        return kernel_name(self.lowered, 0)

    @property
    def source(self) -> str:
        return source_digest(self.lowered.kernels[0])


def drawn(family: str, seed: int, core: Core, count: int | None = None) -> Iterator[Drawn]:
    """All kernels of the operators of a family, or of `count` operators, by every preference.
    Branches and loops are left out: their time depends on data.
    """
    rng = np.random.default_rng([seed, *family.encode()])
    sampler, most = GRID.get(family) or (forms()[family].sample, _SAMPLES)
    graphs = [sampler(rng) for _ in range(min(most, count or most))]
    for preference in Preference:
        for graph in graphs:
            if only_views(graph.ops[0], graph):
                continue
            lowered = lower(graph, core, preference)
            first = lowered.kernels[0]
            for kernel in () if first.nested else _forms(first, family):
                title = "" if kernel is first else kernel.title
                yield Drawn(preference, replace(lowered, kernels=(kernel,)), title)


def kernels(family: str, seed: int, core: Core, most: int | None = None) -> tuple[Kernel, ...]:
    """As many operators, each alone, as the grid has of this family; of them at most `most`.

    An operator for which there are several libraries' kernels counts with each: with the quicker
    one, behind all of those with Arm's, and last with Thimble's.
    """
    if family == COPIES:
        rng = np.random.default_rng([seed, *family.encode()])
        sizes = rng.integers(1, 2048, (_COPIES, 3)) >> rng.integers(0, 10, (_COPIES, 1))
        return tuple(copies_kernel(tuple(int(size) + 1 for size in row)) for row in sizes[:most])
    found: dict[Key, Kernel] = {}
    for one in drawn(family, seed, core):
        key = operator_key(one.lowered, 0)
        apart = key.kernel.startswith(("thimble_copy_nd", "thimble_move"))
        kernel = Kernel(
            key, one.lowered.graph, apart=apart, preference=one.preference, title=one.title
        )
        found.setdefault(key, kernel)
    return tuple(found.values())[:most]


def name_of(kernel: Kernel) -> str:
    """The name by which the coefficients know it."""
    return kernel.key.kernel.partition("@")[0].partition(" ")[0]


def _forms(kernel: Choice, family: str) -> tuple[Choice, ...]:
    """Which of an operator's kernels count: all that differ in scratch; of shapes for Winograd's
    algorithm all forms of that; of depthwise convolutions, which have many, the one with most
    scratch, one with less and the one with the least.
    """
    more = kernel.more_scratch()
    if family in ("depthwise_conv2d", "depthwise_3x3") and more:
        return (more[0], more[len(more) // 2], kernel)
    if family != "winograd":
        return (*more, kernel)
    return tuple(one for form in kernel.more_flash() for one in (form, *form.more_scratch()))
