"""Convolutions that Winograd's algorithm takes: any size, padding, zero point; extreme weights."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.memory.plan import Plan, planned_ops
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution.common import random_bias, random_quantisation
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.kernels.thimble_convolve_winograd_s8 import (
    FORMS,
)
from toolchain.ops.convolution.kernels.thimble_convolve_winograd_s8 import (
    kernel as winograd_conv2d,
)
from toolchain.ops.lowering import Forms
from toolchain.ops.operator import operator_of
from toolchain.ops.window import Padding, Window


def all_by(graph: Graph, tile: int) -> Forms:
    """Winograd's kernels for every operator of the graph that they take."""
    return {op.part_of or op.name: FORMS[tile].function for op in graph.ops}


def roomiest(plan: Plan) -> Plan:
    """With the roomiest form of each kernel, its scratch behind all that the arena held."""
    kernels, scratch = [], dict(plan.arena.scratch_offsets)
    end = -(-plan.arena.size_bytes // 8) * 8
    for op, kernel in zip(plan.graph.ops, plan.lowered.kernels, strict=True):
        kernels.append(next(iter(kernel.more_scratch()), kernel))
        if kernels[-1] is not kernel:
            scratch[op.name] = end
            end += -(-kernels[-1].scratch_bytes // 8) * 8
    lowered = replace(plan.lowered, kernels=tuple(kernels))
    arena = replace(plan.arena, size_bytes=end, scratch_offsets=scratch)
    return replace(plan, lowered=lowered, arena=arena, operators=planned_ops(lowered, arena))


def convolution(
    size: tuple[int, int],
    depth: int,
    channels: int,
    rng: np.random.Generator,
    *,
    padding: Padding | None = None,
    weights: np.ndarray | None = None,
    activation: Activation = Activation.NONE,
    rounding: Rounding = Rounding.TFLITE,
) -> Graph:
    """3x3, stride 1. By default weights are random and each side is padded by 0 or 1."""
    sides = rng.integers(0, 2, 4)
    if padding is None:
        padding = Padding(*(int(side) for side in sides))
    x_q, w_q, y_q = random_quantisation(rng, channels, 9 * depth)
    shape = (channels, 3, 3, depth)
    if weights is None:
        weights = rng.integers(-128, 128, shape)
    outputs = Window((3, 3), padding=padding).output_size(*size)
    tensors = [
        Tensor("x", (1, *size, depth), DType.INT8, x_q),
        Tensor("weights", shape, DType.INT8, w_q, weights.astype(np.int8)),
        Tensor("y", (1, *outputs, channels), DType.INT8, y_q),
        random_bias(rng, x_q, w_q, channels),
    ]
    attributes = Conv2D(padding=padding, activation=activation, rounding=rounding)
    op = Op("conv2d", "conv", ("x", "weights", "bias"), ("y",), attributes)
    return Graph.build("winograd", tensors, [op], ["x"], ["y"])


def convolutions(count: int, rng: np.random.Generator, tile: int) -> list[Graph]:
    """Random ones that the kernel takes. Of three one has weights that are all -128 or 127, of two
    one is rounded as ONNX Runtime does.
    """
    graphs: list[Graph] = []
    while len(graphs) < count:
        size = tuple(int(n) for n in rng.integers(1, 12, 2) + 2)
        depth, channels = 8 * int(rng.integers(1, 5)), 2 * int(rng.integers(1, 7))
        weights = None
        if len(graphs) % 3 == 2:
            weights = rng.choice([-128, 127], (channels, 3, 3, depth))
        activation = rng.choice(np.array(list(Activation), dtype=object))
        rounding = Rounding.ONNX if len(graphs) % 2 else Rounding.TFLITE
        graph = convolution(
            (size[0], size[1]),
            depth,
            channels,
            rng,
            weights=weights,
            activation=activation,
            rounding=rounding,
        )
        if winograd_conv2d(operator_of(graph.ops[0], graph), tile) is not None:
            graphs.append(graph)
    return graphs


def extreme_inputs(graph: Graph, rng: np.random.Generator) -> list[np.ndarray]:
    """Random bytes; the lowest, the highest, and either."""
    shape = graph.tensors[graph.inputs[0]].shape
    return [
        rng.integers(-128, 128, shape).astype(np.int8),
        np.full(shape, -128, np.int8),
        np.full(shape, 127, np.int8),
        rng.choice(np.array([-128, 127], np.int8), shape),
    ]


def chain(side: int, channels: tuple[int, ...], rng: np.random.Generator) -> Graph:
    """Convolutions of 3x3, one after the other, padded so that the image stays so wide and high."""
    tensors, ops = [], []
    for index, (depth, count) in enumerate(pairwise(channels)):
        x_q, w_q, y_q = random_quantisation(rng, count, 9 * depth)
        x_q = tensors[-1].quantisation if index else x_q
        assert x_q is not None
        x, y, weights, bias = (f"{name}{index}" for name in ("x", "y", "weights", "bias"))
        x = f"y{index - 1}" if index else x
        if not index:
            tensors.append(Tensor(x, (1, side, side, depth), DType.INT8, x_q))
        data = rng.integers(-128, 128, (count, 3, 3, depth)).astype(np.int8)
        tensors.append(Tensor(weights, data.shape, DType.INT8, w_q, data))
        tensors.append(replace(random_bias(rng, x_q, w_q, count), name=bias))
        tensors.append(Tensor(y, (1, side, side, count), DType.INT8, y_q))
        attributes = Conv2D(padding=Padding(1, 1, 1, 1), activation=Activation.RELU)
        ops.append(Op("conv2d", f"conv{index}", (x, weights, bias), (y,), attributes))
    return Graph.build("chain", tensors, ops, ["x0"], [ops[-1].outputs[0]])
