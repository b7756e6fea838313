"""Advice on networks: changed graphs are sound, and their plans are those of graphs built so."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from tests.support.graph_builder import Builder
from tests.support.random_networks import random_network
from toolchain.advise import advise_graph, changes
from toolchain.advise.advising import LEAST_SAVED, Base
from toolchain.advise.change import Proposal
from toolchain.advise.groups import channel_groups
from toolchain.advise.surgery import CannotChangeError, Draft
from toolchain.boards import board
from toolchain.cli import run
from toolchain.cost.predicted import predicted_model
from toolchain.ir import Attributes, DType, Graph, Quantisation
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.check import check
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.elementwise.multiplication import Mul
from toolchain.ops.interpret import interpret
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.unary.quantize import Quantize
from toolchain.ops.window import Padding
from toolchain.planning.options import PlanOptions
from toolchain.resources import BOARDS

DIGITS = BOARDS.parent / "examples" / "digits" / "digits_int8.tflite"
PAGE = BOARDS.parent / "docs" / "advise.md"
SAME3 = Padding(1, 1, 1, 1)
TARGET = board("cortex-m4f")
COSTS = predicted_model(TARGET)


def classifier(build: Builder, x: str, units: int = 5) -> Graph:
    """The network that ends with x flattened and a fully connected layer."""
    elements = build.graph([]).tensors[x].elements
    flat = build.op("reshape", [x], Reshape((1, elements)))
    weights = build.constant((units, elements), quantisation=Quantisation((0.01,), (0,)))
    return build.graph([build.op("fully_connected", [flat, weights], FullyConnected())])


def with_channels(first: int, second: int) -> Graph:
    build = Builder()
    x = build.conv(build.input((1, 8, 8, 4)), 1, first, Conv2D())
    x = build.conv(x, 3, second, Conv2D(padding=SAME3))
    return build.graph([build.conv(x, 1, 8, Conv2D())])


def with_kernel(size: int, times: int) -> Graph:
    build = Builder()
    x = build.input((1, 8, 8, 8))
    for _ in range(times):
        x = build.conv(x, size, 8, Conv2D(padding=Padding(*(size // 2,) * 4)))
    return build.graph([build.conv(x, 1, 8, Conv2D())])


def proposals(name: str, graph: Graph) -> list[Proposal]:
    """The sound changed graphs of one change."""
    made = list(changes()[name].proposals(graph, TARGET.core))
    for proposal in made:
        sound(graph, proposal)
    return made


def sound(before: Graph, proposal: Proposal) -> None:
    check(proposal.graph)
    assert proposal.keras and proposal.pytorch and proposal.what
    assert any(op.name == proposal.layer for op in before.ops)
    for name in before.outputs:
        assert proposal.graph.tensors[name].shape == before.tensors[name].shape


@pytest.mark.slow
@pytest.mark.parametrize(
    ("graph", "changed"),
    [
        (
            with_channels(30, 30),
            {
                "30 -> 32 channels of conv2d_0": with_channels(32, 30),
                "channels of 2 layers up to a multiple of 4: 32": with_channels(32, 32),
            },
        ),
        (
            with_kernel(5, 1),
            {"5x5 -> two 3x3 (Conv2D), the first with the stride": with_kernel(3, 2)},
        ),
    ],
    ids=["channels", "kernel"],
)
def test_a_changed_graph_is_planned_as_one_that_was_built_so(
    graph: Graph, changed: dict[str, Graph]
) -> None:
    told = advise_graph(graph, TARGET, plans=8, costs=COSTS)
    base = Base.of(TARGET, PlanOptions(), COSTS)
    assert told.before == base.figures(base.plan(graph))
    for what, fresh in changed.items():
        found = next(a for a in told.advice if a.proposal.what == what)
        sound(graph, found.proposal)
        assert found.after.count < told.before.count and found.saved["time"] > LEAST_SAVED
        assert found.after == base.figures(base.plan(fresh))
    shares = [max(a.saved.values()) for a in told.advice]
    assert shares == sorted(shares, reverse=True)
    assert told.deciding["time"][0].share > 0.2


def test_channels_of_a_skip_connection_change_together() -> None:
    build = Builder()
    x = build.conv(build.input((1, 8, 8, 4)), 3, 6, Conv2D(padding=SAME3))
    y = build.conv(x, 3, 6, Conv2D(padding=SAME3))
    x = build.op("add", [x, y], Sum(Activation.NONE))
    deep = build.constant((1, 3, 3, 6), quantisation=Quantisation((0.01,), (0,)))
    x = build.op("depthwise_conv2d", [x, deep], DepthwiseConv2D(padding=SAME3))
    z = build.conv(x, 1, 10, Conv2D())
    graph = classifier(build, build.op("concat", [x, z], Concat(-1)))
    tied, alone = channel_groups(graph)
    assert [op.name for op in tied.makers] == ["conv2d_0", "conv2d_1"] and tied.channels == 6
    assert [op.name for op in alone.makers] == [z.replace("t", "conv2d_")] and alone.channels == 10
    made = Draft.of(graph).settled({op.name: 8 for op in tied.makers})
    assert made.tensors[x].shape == (1, 8, 8, 8)
    assert made.input(made.ops[-1], 1).shape == (5, 8 * 8 * 18)
    with pytest.raises(CannotChangeError):
        Draft.of(graph).settled({tied.makers[0].name: 8})
    assert {p.what for p in proposals("channels", graph)} >= {
        "6 -> 8 channels of conv2d_0 (and 1 tied to it)",
        "10 -> 12 channels of conv2d_4",
    }


def test_a_stride_moves_to_the_layer_before() -> None:
    build = Builder()
    x = build.conv(build.input((1, 16, 16, 4)), 3, 8, Conv2D(padding=SAME3))
    x = build.op("max_pool2d", [x], Pool2D(2, 2, 2, 2))
    x = build.conv(x, 3, 8, Conv2D(padding=SAME3))
    graph = build.graph([build.conv(x, 3, 8, Conv2D((2, 2), padding=Padding(0, 0, 1, 1)))])
    pool, strided = proposals("stride-earlier", graph)
    assert "no pool max_pool2d_1" in pool.what and len(pool.graph.ops) == 3
    assert [op.attributes.stride for op in strided.graph.ops if op.kind == "conv2d"] == [  # type: ignore[attr-defined]
        *((1, 1), (2, 2), (1, 1)),
    ]


def test_an_input_is_smaller_where_the_outputs_stay() -> None:
    build = Builder()
    x = build.conv(build.input((1, 24, 24, 3)), 3, 8, Conv2D((2, 2), padding=Padding(0, 0, 1, 1)))
    graph = classifier(build, x)
    sizes = [p.graph.tensors["in0"].shape[1] for p in proposals("input-size", graph)]
    assert sizes == [18, 16, 12]
    assert proposals("input-size", build.graph([x])) == []


def test_a_multiplier_and_a_convolution_become_cheaper() -> None:
    build = Builder()
    deep = build.constant((1, 3, 3, 16), quantisation=Quantisation((0.01,), (0,)))
    x = build.op("depthwise_conv2d", [build.input((1, 9, 9, 8)), deep], DepthwiseConv2D())
    graph = build.graph([build.conv(x, 3, 8, Conv2D())])
    (single,) = proposals("depthwise-multiplier", graph)
    assert single.graph.tensors[x].shape[3] == 8
    (separable,) = proposals("separable", graph)
    assert [op.kind for op in separable.graph.ops] == [
        *("depthwise_conv2d", "depthwise_conv2d", "conv2d"),
    ]


def test_an_activation_that_is_an_operator_is_fused() -> None:
    build = Builder()
    x = build.conv(build.input((1, 6, 6, 4)), 1, 4, Conv2D())
    gate = build.op("logistic", [x], Attributes(), Quantisation((1 / 256,), (-128,)))
    x = build.conv(build.op("mul", [x, gate], Mul()), 1, 4, Conv2D())
    x = build.op("logistic", [x], Attributes(), Quantisation((1 / 256,), (-128,)))
    graph = build.graph([build.conv(x, 1, 4, Conv2D())])
    silu, sigmoid = proposals("activation", graph)
    assert "x * logistic(x) -> ReLU" in silu.what and len(silu.graph.ops) == 4
    assert "activation logistic -> ReLU" in sigmoid.what and len(sigmoid.graph.ops) == 5


def test_nearly_dead_channels_are_left_out() -> None:
    graph = with_channels(16, 8)
    (conv, *_) = graph.ops
    weights = graph.input(conv, 1)
    assert weights.constant is not None
    data = weights.constant.copy()
    data[3:8] = np.sign(data[3:8])
    weak = Draft.of(graph).with_op(conv, conv, tensors=[replace(weights, constant=data)]).settled()
    (found,) = proposals("nearly-dead", weak)
    assert found.what.startswith("5 of 16 channels of conv2d_0") and "-> 12" in found.what
    assert proposals("nearly-dead", graph) == []


def test_scales_and_biases_come_into_the_quick_range() -> None:
    graph = with_channels(16, 8)
    (conv, *_) = graph.ops
    weights, bias = graph.input(conv, 1), graph.input(conv, 2)
    assert proposals("bias-range", graph) == []
    slow = [
        replace(weights, quantisation=Quantisation((0.7,), (0,))),
        replace(bias, constant=np.full(16, 1 << 24, np.int32)),
    ]
    (found,) = proposals("bias-range", Draft.of(graph).with_op(conv, conv, tensors=slow).settled())
    assert "1 of 1 factors below 0.5 and biases within" in found.what
    assert found.graph.tensors[weights.name].q.scale < 0.5


def test_a_float_operator_between_int8_ones_becomes_int8() -> None:
    build = Builder()
    x = build.conv(build.input((1, 6, 6, 4)), 1, 4, Conv2D())
    x = build.op("dequantize", [x], Attributes(), None, DType.FLOAT32)
    x = build.op("max_pool2d", [x], Pool2D(2, 2, 2, 2), None, DType.FLOAT32)
    x = build.op("quantize", [x], Quantize(DType.INT8))
    graph = build.graph([build.conv(x, 1, 4, Conv2D())])
    (found,) = proposals("float-to-int8", graph)
    assert not found.graph.computes_in_float and graph.computes_in_float


def test_every_change_of_random_networks_is_sound() -> None:
    made = 0
    for seed in range(12):
        graph = random_network(np.random.default_rng(seed))
        for name in changes():
            for proposal in proposals(name, graph):
                made += 1
                if made % 10 == 0:
                    changed = proposal.graph
                    zeros = [np.zeros(changed.tensors[n].shape, np.int8) for n in changed.inputs]
                    interpret(changed, zeros)
    assert made > 25


def test_the_command_tells_what_is_saved(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["advise", str(DIGITS), "--chip", "cortex-m4f", "--plans", "1", "--by", "time"]
    assert run([*words, "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["board"], told["chip"], told["planned"]) == (None, "cortex-m4f", 1)
    (advice,) = told["advice"]
    assert advice["change"] == "separable" and advice["train_anew"]
    assert advice["after"]["count"] < told["before"]["count"]
    assert run([*words, "--time-limit", "0", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["planned"], told["advice"]) == (0, []) and told["proposed"] > 1
    assert run(["advise", str(DIGITS), "--chip", "m4f", "--by", "rom"]) == 2
    assert "it is one of time, ram, flash" in " ".join(capsys.readouterr().err.split())


def test_the_page_has_every_change() -> None:
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == list(changes())
