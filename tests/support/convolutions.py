"""Convolutions that `sample` does not make: any padding, batches, awkward scales, dead channels."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np

from tests.support.weights import sample_with_constant_weights
from toolchain.boards import HOST
from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import kernel_of
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.arithmetic.fixed_point import ScaleError
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.weighted import constant_of
from toolchain.ops.window import Padding, Window, same_padding
from toolchain.timing.kernel_shapes import graph_of_shape


def _rebuilt(graph: Graph, op: Op, *changed: Tensor) -> Graph:
    tensors = dict(graph.tensors) | {tensor.name: tensor for tensor in changed}
    return Graph.build(graph.name, tensors.values(), [op], graph.inputs, graph.outputs)


def rounded_as_onnx(graph: Graph) -> Graph:
    """The same convolution, whose sums are scaled in float."""
    op = graph.ops[0]
    assert isinstance(op.attributes, Conv2D | DepthwiseConv2D)
    return graph.with_ops([replace(op, attributes=replace(op.attributes, rounding=Rounding.ONNX))])


def above_zero(graph: Graph) -> Graph:
    """The same operator, whose least output stands for 0, as after a ReLU: most of its sums can be
    rounded once."""
    y = graph.output(graph.ops[0])
    return _rebuilt(graph, graph.ops[0], replace(y, quantisation=replace(y.q, zero_points=(-128,))))


def with_weight_zero_point(graph: Graph, rng: np.random.Generator) -> Graph:
    """The same convolution with one scale for all weights, and a zero point, as legacy uint8
    files have it."""
    op = graph.ops[0]
    x, weights, y = graph.input(op, 0), graph.input(op, 1), graph.output(op)
    zero = int(rng.choice([-128, 127, -1, int(rng.integers(2, 120))]))
    scale = float(np.float32(2.0 ** rng.uniform(-12, -5) * y.q.scale / x.q.scale))
    changed = [replace(weights, quantisation=Quantisation((scale,), (zero,)))]
    if len(op.inputs) > 2:
        changed.append(replace(graph.input(op, 2), quantisation=None))
    return _rebuilt(graph, op, *changed)


def padded_anyhow(graph: Graph, rng: np.random.Generator) -> Graph:
    """Another padding on each side, wider than the kernel too, and up to two images at once."""
    op = graph.ops[0]
    assert isinstance(op.attributes, Conv2D | DepthwiseConv2D)
    x, weights, y = graph.input(op, 0), graph.input(op, 1), graph.output(op)
    padding = Padding(*(int(v) for v in rng.integers(0, 7, 4)))
    attributes = replace(op.attributes, padding=padding)
    kernel = (weights.shape[1], weights.shape[2])
    window = Window(kernel, attributes.stride, attributes.dilation, padding)
    size = window.output_size(x.shape[1], x.shape[2])
    batches = int(rng.integers(1, 3))
    return _rebuilt(
        graph,
        replace(op, attributes=attributes),
        replace(x, shape=(batches, *x.shape[1:])),
        replace(y, shape=(batches, *size, y.shape[3])),
    )


def awkwardly_scaled(graph: Graph, rng: np.random.Generator) -> Graph:
    """Factors from 2**-40 up, and channels that are dead: no weights, biases near 2**30.

    The largest factors are those whose sums stay within 32 bits; beyond, the operator is refused.
    """
    while True:
        made = _awkwardly_scaled(graph, rng)
        with contextlib.suppress(ScaleError, UnsupportedError):
            kernel_of(made.ops[0], made, HOST)
            return made


def _awkwardly_scaled(graph: Graph, rng: np.random.Generator) -> Graph:
    op = graph.ops[0]
    x, weights, y = graph.input(op, 0), graph.input(op, 1), graph.output(op)
    axis = 3 if op.kind == "depthwise_conv2d" else 0
    channels = weights.shape[axis]
    spread = 2.0 ** rng.uniform(-40, rng.choice((0, 4, 12)), channels)
    spread[rng.random(channels) < 0.6] = 2.0 ** rng.uniform(-9, 1)
    scales = np.float32(spread * y.q.scale / x.q.scale)
    dead = rng.random(channels) < 0.2
    data = np.moveaxis(constant_of(weights).copy(), axis, 0)
    data[dead] = 0
    quantisation = Quantisation(tuple(float(s) for s in scales), (0,) * channels, axis)
    changed = [replace(weights, quantisation=quantisation, constant=np.moveaxis(data, 0, axis))]
    if len(op.inputs) > 2:
        bias = graph.input(op, 2)
        values = constant_of(bias).copy()
        values[dead] = rng.integers(-(2**30), 2**30, int(dead.sum()))
        changed.append(replace(bias, constant=values, quantisation=None))
    return _rebuilt(graph, op, *changed)


def convolutions(kind: str, count: int, rng: np.random.Generator) -> list[Graph]:
    """Random graphs of one operator of `kind`, a third of them of each sort."""
    graphs = []
    for index in range(count):
        graph = sample_with_constant_weights(kind, rng)
        if index % 3 == 1 and kind in ("conv2d", "depthwise_conv2d"):
            graph = padded_anyhow(graph, rng)
        if index % 3 == 2 and kind != "batch_matmul":
            graph = awkwardly_scaled(graph, rng)
        graphs.append(graph)
    return graphs


_WINDOWS = ((1, 1), (1, 3), (2, 2), (3, 3), (3, 3), (5, 5), (7, 7), (4, 3), (9, 1))


def in_whole_words(kind: str, count: int, rng: np.random.Generator) -> list[Graph]:
    """Convolutions whose channels come in fours, of few outputs or one, without padding or with
    any; a third of them with awkward scales."""
    graphs = []
    for index in range(count):
        kernel = _WINDOWS[int(rng.integers(len(_WINDOWS)))]
        stride = (1, 1) if rng.random() < 0.5 else (2, 2)
        most = 2 if kind == "conv2d" else 9
        outputs = rng.integers(1, most + 1, 2)
        size = [k + (int(n) - 1) * s for k, n, s in zip(kernel, outputs, stride, strict=True)]
        entry = {
            "kind": kind,
            "input": [1, *size, 4 * int(rng.integers(1, 4))],
            "channels": int(rng.integers(1, 22)),
            "kernel": list(kernel),
            "stride": list(stride),
        }
        graph = graph_of_shape(entry)
        if kind != "conv2d" and rng.random() < 0.7:
            graph = padded_anyhow(graph, rng)
        graphs.append(awkwardly_scaled(graph, rng) if index % 3 == 2 else graph)
    return graphs


def first_layers(count: int, rng: np.random.Generator) -> list[Graph]:
    """Convolutions of one to three channels: rows of windows that are one word or no whole words,
    unpadded or with any padding."""
    graphs = []
    for index in range(count):
        kernel = ((10, 4), (3, 4), (2, 2), (3, 3), (5, 5), (1, 3), (4, 1))[int(rng.integers(7))]
        depth = 2 if kernel == (2, 2) else int(rng.integers(1, 4))
        depth = 1 if kernel[1] == 4 else depth
        entry = {
            "kind": "conv2d",
            "input": [1, *(k + int(rng.integers(9)) for k in kernel), depth],
            "channels": int(rng.integers(1, 12)),
            "kernel": list(kernel),
            "stride": [1, 1] if rng.random() < 0.5 else [2, 2],
        }
        graph = graph_of_shape(entry)
        graphs.append(padded_anyhow(graph, rng) if index % 2 else graph)
    return graphs


def mixed_pairs(rng: np.random.Generator) -> tuple[Graph, Graph]:
    """A convolution all of whose channels may be rounded once, and one of whose channels every
    other one, with a factor above one half, must be rounded twice."""
    graph = graph_of_shape(
        {"kind": "conv2d", "input": [1, 5, 5, 8], "channels": 9, "kernel": [1, 1], "stride": [1, 1]}
    )
    op = graph.ops[0]
    x, weights, y = graph.input(op, 0), graph.input(op, 1), graph.output(op)
    y = replace(y, quantisation=Quantisation((y.q.scale,), (-128,)))
    made = []
    for odd in (2.0**-9, 0.6):
        factors = np.where(np.arange(9) % 2, odd, 2.0**-9 * rng.uniform(1, 2, 9))
        scales = tuple(float(s) for s in np.float32(factors * y.q.scale / x.q.scale))
        changed = replace(weights, quantisation=Quantisation(scales, (0,) * 9, 0))
        made.append(_rebuilt(graph, op, changed, y))
    return made[0], made[1]


def depthwise_lines(count: int, rng: np.random.Generator, most: int = 40) -> list[Graph]:
    """Depthwise convolutions, a third of 3x3, over rows of up to about `most` pixels: output zero
    points as after a ReLU and others, strides that differ, a fifth with awkward scales."""
    graphs = []
    while len(graphs) < count:
        kernels = ((3, 3), (3, 3), (3, 3), (5, 5), (7, 7), (3, 5), (2, 4), (1, 11), (2, 9))
        kernel = kernels[int(rng.integers(9))]
        stride = ((1, 1), (1, 1), (2, 2), (2, 2), (1, 2), (2, 1), (3, 1), (4, 2))[
            int(rng.integers(8))
        ]
        size = (int(rng.integers(1, most)), int(rng.integers(1, 9)))
        size = size if rng.random() < 0.4 else (size[1], size[0])
        padding = same_padding(size, kernel, stride, (1, 1))
        if rng.random() < 0.2:
            padding = Padding(*(int(v) for v in rng.integers(0, 4, 4)))
        window = Window(kernel, stride, (1, 1), padding)
        depth, multiplier = int(rng.integers(1, 6)), int(rng.choice((1, 1, 1, 2)))
        try:
            graph = _depthwise(size, window, depth, multiplier, rng)
        except ValueError:  # the window does not fit the image
            continue
        graphs.append(awkwardly_scaled(graph, rng) if rng.random() < 0.2 else graph)
    return graphs


def depthwise_windows(count: int, rng: np.random.Generator) -> list[Graph]:
    """Depthwise convolutions of windows of up to 4x4 over channels in fours, any padding, a quarter
    rounded as ONNX does and a sixth with awkward scales."""
    graphs: list[Graph] = []
    while len(graphs) < count:
        kernel = ((3, 3), (3, 3), (3, 3), (4, 4), (2, 2), (1, 4), (4, 1), (2, 3))[
            int(rng.integers(8))
        ]
        stride = ((1, 1), (1, 1), (2, 2), (1, 2), (2, 1), (3, 3))[int(rng.integers(6))]
        size = (int(rng.integers(1, 9)), int(rng.integers(1, 40)))
        padding = same_padding(size, kernel, stride, (1, 1))
        if rng.random() < 0.3:
            padding = Padding(*(int(v) for v in rng.integers(0, 6, 4)))
        window = Window(kernel, stride, (1, 1), padding)
        with contextlib.suppress(ValueError):  # the window does not fit the image
            graph = _depthwise(size, window, 4 * int(rng.integers(1, 5)), 1, rng)
            if rng.random() < 0.25:
                graph = rounded_as_onnx(graph)
            elif rng.random() < 0.2:
                graph = awkwardly_scaled(graph, rng)
            graphs.append(graph)
    return graphs


def _depthwise(
    size: tuple[int, int], window: Window, depth: int, multiplier: int, rng: np.random.Generator
) -> Graph:
    channels, batches = depth * multiplier, int(rng.choice((1, 1, 1, 2)))
    scales = tuple(float(np.float32(2.0**e)) for e in rng.uniform(-11, -5, channels))
    zero_point = -128 if rng.random() < 0.6 else int(rng.integers(-128, 128))
    tensors = [
        Tensor(
            "x",
            (batches, *size, depth),
            DType.INT8,
            Quantisation((1.0,), (int(rng.integers(-128, 128)),)),
        ),
        Tensor(
            "weights",
            (1, *window.kernel, channels),
            DType.INT8,
            Quantisation(scales, (0,) * channels, 3),
            rng.integers(-128, 128, (1, *window.kernel, channels)).astype(np.int8),
        ),
        Tensor(
            "bias",
            (channels,),
            DType.INT32,
            None,
            rng.integers(-9000, 9000, channels).astype(np.int32),
        ),
        Tensor(
            "y",
            (batches, *window.output_size(*size), channels),
            DType.INT8,
            Quantisation((1.0,), (zero_point,)),
        ),
    ]
    attributes = DepthwiseConv2D(window.stride, window.dilation, window.padding)
    if rng.random() < 0.2:
        held = (Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)
        attributes = replace(attributes, activation=held[int(rng.integers(3))])
    op = Op("depthwise_conv2d", "op", ("x", "weights", "bias"), ("y",), attributes)
    return Graph.build("lines", tensors, [op], ["x"], ["y"])


def of_many_taps(count: int, rng: np.random.Generator) -> list[Graph]:
    """Convolutions whose weights pay in four bits: of whole words and not, of one pixel and more,
    any channels, padded or not; a third of them with awkward scales."""
    graphs = []
    for index in range(count):
        kernel = ((1, 1), (1, 3), (3, 3), (2, 5))[int(rng.integers(4))]
        outputs = rng.integers(1, 5, 2)
        depth = int(rng.integers(6, 20)) * 4 if rng.random() < 0.8 else int(rng.integers(24, 50))
        entry = {
            "kind": "conv2d",
            "input": [1, *(k + int(n) - 1 for k, n in zip(kernel, outputs, strict=True)), depth],
            "channels": int(rng.integers(8, 22)),
            "kernel": list(kernel),
            "stride": [1, 1],
        }
        graph = graph_of_shape(entry)
        if rng.random() < 0.25:
            graph = padded_anyhow(graph, rng)
        graphs.append(awkwardly_scaled(graph, rng) if index % 3 == 2 else graph)
    return graphs


def of_four_bits(graph: Graph, rng: np.random.Generator) -> Graph:
    """The same with weights that fit four bits, on a scale as much coarser; every fourth channel
    may have none but -8, whose sums are the largest."""
    op = graph.ops[0]
    weights = graph.input(op, 1)
    data = rng.integers(-8, 8, weights.shape).astype(np.int8)
    if rng.random() < 0.25:
        data[::4] = -8
    return _rebuilt(graph, op, replace(weights, constant=data))
