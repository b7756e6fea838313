"""Dead channels: which are removed, which must stay, and that the results stay the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.graph_builder import QUANTISATION, Builder
from toolchain.ir import DType, Graph, Quantisation
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.check import check
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.interpret import interpret
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.pad import Pad
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.unary.relu import Relu
from toolchain.ops.window import UNPADDED, Padding
from toolchain.passes import Prepared
from toolchain.passes.remove_dead_channels import GROUP, RemoveDeadChannels

ZERO = QUANTISATION.zero_point
ONE_PIXEL = Padding(1, 1, 1, 1)


def removed(graph: Graph, seeds: int = 2) -> Prepared:
    """The result of the pass, after checking that it computes what the graph did."""
    result = RemoveDeadChannels().run(Prepared(check(graph)))
    after = check(result.graph)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        values = [
            rng.integers(-128, 128, graph.tensors[name].shape).astype(np.int8)
            for name in graph.inputs
        ]
        for want, have in zip(interpret(graph, values), interpret(after, values), strict=True):
            np.testing.assert_array_equal(have, want)
    return result


class Pruned(Builder):
    """Builds convolutions with filters of zeros."""

    def prune(self, tensor: str, filters: list[int], bias: int) -> None:
        """Zero the filters of the product that makes `tensor`, and set their bias."""
        op = next(op for op in self.ops if tensor in op.outputs)
        weights, offset = (self.tensors[name] for name in op.inputs[1:])
        assert weights.constant is not None
        assert offset.constant is not None
        data, values = weights.constant.copy(), offset.constant.copy()
        data[(slice(None),) * 3 + (filters,) if op.kind == "depthwise_conv2d" else filters] = 0
        values[filters] = bias
        self.tensors[weights.name] = replace(weights, constant=data)
        self.tensors[offset.name] = replace(offset, constant=values)

    def depthwise(self, x: str, attributes: DepthwiseConv2D) -> str:
        channels = self.tensors[x].shape[3]
        weights = self.constant((1, 3, 3, channels), quantisation=Quantisation((0.01,), (0,)))
        return self.op("depthwise_conv2d", [x, weights, self.bias(x, channels)], attributes)

    def dense(self, x: str, units: int) -> str:
        depth = self.tensors[x].shape[-1]
        weights = self.constant((units, depth), quantisation=Quantisation((0.01,), (0,)))
        return self.op("fully_connected", [x, weights, self.bias(x, units)], FullyConnected())

    def bias(self, x: str, channels: int) -> str:
        scale = float(np.float32(self.tensors[x].q.scale) * np.float32(0.01))
        return self.constant((channels,), DType.INT32, Quantisation((scale,), (0,)))

    def width(self, graph: Graph, name: str) -> int:
        return graph.tensors[name].shape[-1]


def test_constants_reach_the_last_bias_through_a_chain() -> None:
    build = Pruned()
    a = build.conv(build.input((1, 6, 6, 3)), 3, 8, Conv2D(padding=ONE_PIXEL))
    build.prune(a, [1, 4, 5, 7], 3000)
    b = build.op("relu", [a], Relu())
    c = build.depthwise(b, DepthwiseConv2D())
    d = build.op("average_pool2d", [c], Pool2D(2, 2, 2, 2, UNPADDED))
    e = build.conv(d, 1, 5, Conv2D())
    result = removed(build.graph([e]))
    assert [build.width(result.graph, name) for name in (a, b, c, d, e)] == [4, 4, 4, 4, 5]
    assert result.removed.channels == 16
    assert result.removed.macs == 4 * 36 * 27 + 4 * 16 * 9 + 4 * 5 * 4
    assert result.removed.weight_bytes == 4 * (27 + 4) + 4 * (9 + 4) + 4 * 5


@pytest.mark.parametrize(("bias", "left"), [(3000, 8), (0, 4)])
def test_padding_lets_only_the_zero_point_fold(bias: int, left: int) -> None:
    build = Pruned()
    a = build.conv(build.input((1, 5, 5, 2)), 1, 8, Conv2D())
    build.prune(a, [0, 2, 3, 6], bias)
    b = build.conv(a, 3, 4, Conv2D(padding=ONE_PIXEL))
    assert build.width(removed(build.graph([b])).graph, a) == left


def test_a_channel_that_nobody_reads_is_not_computed() -> None:
    build = Pruned()
    a = build.conv(build.input((1, 4, 4, 2)), 1, 12, Conv2D())
    b = build.conv(a, 1, 4, Conv2D())
    weights = build.tensors[build.ops[-1].inputs[1]]
    assert weights.constant is not None
    data = weights.constant.copy()
    data[..., 3:9] = 0
    build.tensors[weights.name] = replace(weights, constant=data)
    assert build.width(removed(build.graph([b])).graph, a) == 8  # six, and two to fill a group


def test_two_readers_of_a_sum_keep_what_either_needs() -> None:
    build = Pruned()
    x = build.input((1, 4, 4, 2))
    a, b = (build.conv(x, 1, 16, Conv2D()) for _ in range(2))
    build.prune(a, list(range(12)), -900)
    build.prune(b, list(range(4, 16)), 700)
    both = build.op("add", [a, b], Sum())
    c, d = build.conv(both, 1, 4, Conv2D()), build.conv(a, 3, 4, Conv2D(padding=ONE_PIXEL))
    graph = removed(build.graph([c, d])).graph
    assert [build.width(graph, name) for name in (a, b, both)] == [16, 16, 16]
    build.ops.pop()
    graph = removed(build.graph([c])).graph
    assert [build.width(graph, name) for name in (a, b, both)] == [8, 8, 8]


def test_channels_go_through_a_concat() -> None:
    build = Pruned()
    x = build.input((1, 4, 4, 2))
    a, b = (build.conv(x, 1, 8, Conv2D()) for _ in range(2))
    build.prune(b, [0, 1, 2, 3], 100)
    both = build.op("concat", [a, b], Concat(3))
    c = build.conv(both, 1, 4, Conv2D())
    graph = removed(build.graph([c])).graph
    assert [build.width(graph, name) for name in (a, b, both)] == [8, 4, 12]


def test_outputs_states_and_padded_values_stay() -> None:
    build = Pruned()
    a = build.conv(build.input((1, 4, 4, 2)), 1, 8, Conv2D())
    build.prune(a, [0, 1, 2, 3], 2000)
    b = build.op("pad", [a], Pad(((0, 0), (1, 1), (1, 1), (0, 0))))
    c = build.conv(b, 1, 4, Conv2D())
    assert removed(build.graph([a, c])).removed.channels == 0
    assert build.width(removed(build.graph([c])).graph, b) == 8  # zeros around the constant


def test_a_fully_connected_reader_of_means() -> None:
    build = Pruned()
    a = build.conv(build.input((1, 4, 4, 2)), 3, 16, Conv2D(activation=Activation.RELU6))
    build.prune(a, list(range(0, 16, 2)), 5000)
    b = build.op("mean", [a], Reduce((1, 2), True))
    c = build.op("reshape", [b], Reshape((1, 16)))
    d = build.dense(c, 3)
    graph = removed(build.graph([d])).graph
    assert [build.width(graph, name) for name in (a, b, c, d)] == [8, 8, 8, 3]


@st.composite
def pruned_networks(draw: st.DrawFn) -> Graph:
    """Random chains and branches with pruned filters."""
    build = Pruned(rng=np.random.default_rng(draw(st.integers(0, 2**32 - 1))))
    made = [build.input((1, 6, 6, draw(st.integers(1, 3))))]
    for _ in range(draw(st.integers(2, 7))):
        x = draw(st.sampled_from(made[-3:]))
        alike = [n for n in made[1:] if build.tensors[n].shape == build.tensors[x].shape]
        kinds = ["conv", "conv", "conv", "depthwise", "relu", "pool", "pad"]
        kind = draw(st.sampled_from(kinds + ["add", "concat"] * bool(alike)))
        padding = draw(st.sampled_from([UNPADDED, ONE_PIXEL]))
        if min(build.tensors[x].shape[1:3]) < 3:
            padding = ONE_PIXEL
        if kind == "conv":
            size = draw(st.sampled_from([1, 3]))
            channels = draw(st.integers(1, 14))
            y = build.conv(x, size, channels, Conv2D(padding=padding if size > 1 else UNPADDED))
        elif kind == "depthwise":
            y = build.depthwise(x, DepthwiseConv2D(padding=padding))
        elif kind == "relu":
            y = build.op("relu", [x], Relu())
        elif kind == "pool":
            y = build.op("average_pool2d", [x], Pool2D(3, 3, 1, 1, padding))
        elif kind == "pad":
            sides = ((0, 0), (0, 1), (1, 0), (0, 0))
            y = build.op("pad", [x], Pad(sides, draw(st.sampled_from([None, 5]))))
        elif kind == "add":
            y = build.op("add", [x, draw(st.sampled_from(alike))], Sum())
        else:
            y = build.op("concat", [x, draw(st.sampled_from(alike))], Concat(3))
        if kind in ("conv", "depthwise"):
            channels = build.tensors[y].shape[3]
            filters = draw(st.lists(st.integers(0, channels - 1), unique=True))
            build.prune(y, filters, draw(st.sampled_from([0, 0, -30000, 900, 30000])))
        made.append(y)
    outputs = [build.conv(made[-1], 1, 3, Conv2D())]
    if draw(st.booleans()):
        outputs.append(draw(st.sampled_from(made[1:])))
    return build.graph(outputs)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(pruned_networks())
def test_random_pruned_networks_compute_the_same(graph: Graph) -> None:
    result = removed(graph, seeds=1)
    for name, tensor in result.graph.tensors.items():
        if not tensor.is_constant and tensor.shape[-1] != graph.tensors[name].shape[-1]:
            assert tensor.shape[-1] >= 1
    again = RemoveDeadChannels().run(Prepared(result.graph))
    assert again.removed.channels < GROUP * len(graph.ops) or result.removed.channels == 0
