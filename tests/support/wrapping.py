"""Operators whose int32 sums wrap: biases at the ends of int32, and the largest weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import forms
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.hybrid.dense import HybridDense
from toolchain.ops.matmul.common import BatchMatMul
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.recurrent.lstm_layer import GATES
from toolchain.ops.spec import Array

_ENDS = (2**31 - 1, -(2**31), 2**31 - 2, 1 - 2**31, 2**30, -(2**30), 2_130_617_867)
_DEPTH = 140_000
"""So many products of +-127 wrap twice."""
BELOW = 2.0**14 * (1 - 2.0**-47)


def _with(graph: Graph, *changed: Tensor) -> Graph:
    tensors = dict(graph.tensors) | {tensor.name: tensor for tensor in changed}
    return replace(graph, tensors=tensors)


def _scale(value: float) -> Quantisation:
    return Quantisation((float(np.float32(value)),), (0,))


def _rescaled(tensor: Tensor, scale: float) -> Tensor:
    return replace(tensor, quantisation=replace(tensor.q, scales=(float(np.float32(scale)),)))


def _at_the_ends(tensor: Tensor, rng: np.random.Generator) -> Tensor:
    data = rng.choice(_ENDS, tensor.shape).astype(np.int64)
    data -= (
        np.sign(data) * rng.integers(0, 3, tensor.shape) * rng.integers(0, 200_000, tensor.shape)
    )
    return replace(tensor, constant=data.astype(np.int32))


def _extreme(tensor: Tensor, rng: np.random.Generator) -> Tensor:
    return replace(tensor, constant=rng.choice([-127, 127], tensor.shape).astype(np.int8))


def biased(kind: str, rng: np.random.Generator) -> Graph:
    """A sample of a convolution or fully connected layer whose biases lie at the ends of int32, so
    that some inputs make a sum wrap; the output tells all of int32 apart, or a part of it.
    """
    while True:
        graph = forms()[kind].sample(rng)
        (op,) = graph.ops
        constant = [name for name in op.inputs if name and graph.tensors[name].is_constant]
        if len(constant) == 2:  # weights and a bias
            break
    x, weights, bias, y = (graph.tensors[name] for name in (*op.inputs[:3], op.outputs[0]))
    largest = max(weights.q.scales)
    changed = _rescaled(y, x.q.scale * largest * 2.0 ** rng.uniform(17, 26))
    weights = _extreme(weights, rng) if rng.random() < 0.5 else weights
    return _with(graph, changed, weights, _at_the_ends(bias, rng))


def svdf(rng: np.random.Generator) -> Graph:
    """A layer over time with an int16 state, whose time filters are large, too."""
    while True:
        graph = forms()["svdf"].sample(rng)
        (op,) = graph.ops
        if op.inputs[3]:
            break
    x, features, time, bias, state = (graph.input(op, index) for index in range(5))
    data = rng.choice([-32767, 32767, 20_000], time.shape).astype(np.int16)
    finer = x.q.scale * features.q.scale * 2.0 ** rng.uniform(-1, 3)
    scale = finer * time.q.scale * 2.0 ** rng.uniform(18, 25)
    changed = [replace(time, constant=data), _at_the_ends(bias, rng)]
    after = graph.tensors[op.outputs[1]]
    changed += [_rescaled(each, finer) for each in (state, after)]
    return _with(graph, *changed, _rescaled(graph.output(op), scale))


def lstm(rng: np.random.Generator) -> Graph:
    """A layer whose gates' biases lie at the ends of int32."""
    graph = forms()["lstm"].sample(rng)
    x = graph.tensors["x"]
    changed = []
    for gate in GATES:
        scale = 2.0 ** rng.uniform(-30, -26) / x.q.scale
        changed.append(_rescaled(graph.tensors[f"w_{gate}"], scale))
        changed.append(_at_the_ends(graph.tensors[f"b_{gate}"], rng))
    return _with(graph, *changed)


def without_tanh(rng: np.random.Generator, exponent: int) -> Graph:
    """A layer whose cell state's scale, 2^exponent, has no hyperbolic tangent in LiteRT."""
    graph = lstm(rng) if rng.random() < 0.3 else forms()["lstm"].sample(rng)
    cells = (graph.tensors[name] for name in ("cell", "cell_next"))
    return _with(graph, *(_rescaled(cell, 2.0**exponent) for cell in cells))


def _rows(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Whole rows of one sign, so that sums are as large as they can be, and mixed ones."""
    data = np.where(rng.random(shape) < 0.9, 127, -127)
    return (data * rng.choice([-1, 1], (*shape[:-1], 1))).astype(np.int8)


def dense(rng: np.random.Generator, *, computed: bool = False) -> Graph:
    """A fully connected layer so deep that products alone wrap; `computed`: of two inputs."""
    data = _rows((6, _DEPTH), rng)
    bias = Tensor("bias", (6,), DType.INT32, _scale(2.0**-20))
    tensors = [
        Tensor("x", (2, _DEPTH), DType.INT8, Quantisation((2.0**-10,), (-3,))),
        Tensor("w", data.shape, DType.INT8, _scale(2.0**-10), None if computed else data),
        _at_the_ends(replace(bias, constant=np.zeros(6, np.int32)), rng),
        Tensor("y", (2, 6), DType.INT8, _scale(2.0**3.1)),
    ]
    op = Op("fully_connected", "op", ("x", "w", "bias"), ("y",), FullyConnected())
    return Graph.build("dense", tensors, [op], ["x", "w"] if computed else ["x"], ["y"])


def matmul(rng: np.random.Generator, *, constant: bool) -> Graph:
    """A product of matrices so deep that it wraps."""
    data = _rows((3, _DEPTH), rng)
    tensors = [
        Tensor("x", (2, _DEPTH), DType.INT8, Quantisation((2.0**-10,), (5,))),
        Tensor("w", data.shape, DType.INT8, _scale(2.0**-10), data if constant else None),
        Tensor("y", (2, 3), DType.INT8, Quantisation((2.0**3.1,), (7,))),
    ]
    op = Op("batch_matmul", "op", ("x", "w"), ("y",), BatchMatMul(False, True))
    return Graph.build("matmul", tensors, [op], ["x"] if constant else ["x", "w"], ["y"])


def four_bits(rng: np.random.Generator) -> Graph:
    """A fully connected layer of weights of four bits, 16 times whose sums int32 does not hold."""
    graph = dense(rng)
    weights = np.where(np.arange(6) % 2, -8, 7)[:, None] * np.ones((1, _DEPTH))
    return _with(
        graph,
        replace(graph.tensors["w"], constant=weights.astype(np.int8)),
        replace(graph.tensors["bias"], constant=np.zeros(6, np.int32)),
        _rescaled(graph.tensors["y"], 1.5),
    )


def hybrid(rng: np.random.Generator, chosen: Range = Range.SYMMETRIC) -> Graph:
    """A fully connected layer of floats and int8 weights, so deep that its sums wrap."""
    graph = dense(rng)
    op = replace(graph.ops[0], inputs=("x", "w"), attributes=HybridDense(range=chosen))
    ends = [Tensor(name, graph.tensors[name].shape, DType.FLOAT32) for name in ("x", "y")]
    return Graph.build("hybrid", [ends[0], graph.tensors["w"], ends[1]], [op], ["x"], ["y"])


def deep_inputs(graph: Graph, rng: np.random.Generator) -> list[Array]:
    """Of the deep layers: rows that make sums as large as they can be; the first is constant."""
    made = [_rows(graph.tensors[name].shape, rng) for name in graph.inputs]
    for rows in made:
        rows[0] = -127
    return [
        rows.astype(graph.tensors[name].dtype.numpy)
        for name, rows in zip(graph.inputs, made, strict=True)
    ]


def finer(kind: str, rng: np.random.Generator) -> Graph:
    """A sample of an int16 kind whose input is so coarse that scaled sums wrap in int32.

    LiteRT's scaling is defined for factors below 2^14.
    """
    graph = forms()[kind].sample(rng)
    (op,) = graph.ops
    x, weights, y = (graph.tensors[name] for name in (*op.inputs[:2], op.outputs[0]))
    factor = 2.0 ** rng.uniform(9, 13.99)
    return _with(graph, _rescaled(x, y.q.scale * factor / max(weights.q.scales)))


def at_factor(kind: str, factor: float, rng: np.random.Generator) -> Graph:
    """A sample of an int16 kind whose input's scale times that of its weights, by its output's, is
    a power of two, or a little less than 2^14: by so little that `QuantizeMultiplier` rounds it up.
    """
    graph = forms()[kind].sample(rng)
    (op,) = graph.ops
    x, weights, y = (graph.tensors[name] for name in (*op.inputs[:2], op.outputs[0]))
    scales = (1.0, 1.0, 1 / factor)
    if factor == BELOW:  # b * c = a * 2^24 - 1, of 24 bits each
        b = 0xC00001
        c = -pow(b, -1, 1 << 24) % (1 << 24)
        scales = (b / 2**24, c / 2**24, (b * c + 1) / 2**62)
    changed = (
        replace(tensor, quantisation=replace(tensor.q, scales=(scale,) * len(tensor.q.scales)))
        for tensor, scale in zip((x, weights, y), scales, strict=True)
    )
    return _with(graph, *changed)
