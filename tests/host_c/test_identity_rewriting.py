"""Identity rewriting: byte for byte the same, in less memory where it is taken."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.host import run_graph_on_host
from toolchain.boards import HOST, board
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ir.memory import peak_bytes
from toolchain.memory.problem import memory_problem
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.check import check
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.interpret import interpret
from toolchain.ops.lowering import lower
from toolchain.ops.movement.concat import Concat
from toolchain.ops.window import same_padding
from toolchain.passes.identity_rewriting import lowest_peak, partition, sites
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.schedule import scheduler


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


def peak(graph: Graph) -> int:
    problem = memory_problem(lower(graph, HOST))
    return peak_bytes(problem, scheduler("auto").schedule(problem).order)


def given(graph: Graph, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return tuple(
        rng.integers(-128, 128, graph.tensors[name].shape).astype(np.int8) for name in graph.inputs
    )


@pytest.mark.parametrize("depthwise", [False, True])
def test_every_byte_stays(depthwise: bool) -> None:
    for seed in range(12):
        graph = cell(seed, depthwise)
        rewritten = graph
        while sites(rewritten):
            rewritten = check(partition(rewritten, sites(rewritten)[0]))
        assert not any(op.kind == "concat" for op in rewritten.ops)
        inputs = given(graph, seed)
        for want, have in zip(interpret(graph, inputs), interpret(rewritten, inputs), strict=True):
            np.testing.assert_array_equal(want, have)


@pytest.mark.parametrize("depthwise", [False, True])
def test_the_generated_c_is_exact(depthwise: bool) -> None:
    graph = cell(0, depthwise)
    rewritten = lowest_peak(graph, peak)
    assert rewritten is not graph
    inputs = given(graph, 5)
    (want,) = interpret(graph, inputs)
    (have,) = run_graph_on_host(rewritten, inputs, sanitize=True)
    np.testing.assert_array_equal(have, want)


def test_a_rewrite_is_taken_only_where_it_lowers_the_peak() -> None:
    taken = 0
    for seed in range(20):
        graph = cell(seed, seed % 2 == 1)
        rewritten = lowest_peak(graph, peak)
        taken += rewritten is not graph
        assert peak(rewritten) < peak(graph) or rewritten is graph
    assert taken > 10


def test_the_planner_rewrites_by_default_and_codegen_follows() -> None:
    graph = cell(0, True)
    plan = plan_graph(graph, board("host"))
    assert "partial_conv2d" in {op.kind for op in plan.graph.ops}
    assert plan.schedule.peak_bytes == peak(lowest_peak(graph, peak))
    plain = plan_graph(graph, board("host"), PlanOptions(rewrite=False))
    assert plain.graph is graph


def test_what_cannot_be_divided_is_left_alone() -> None:
    graph = cell(0, False)
    assert sites(graph) == ("joined",)
    kept = Graph.build("kept", graph.tensors.values(), graph.ops, ["x"], ["y", "joined"])
    assert sites(kept) == ()
    assert lowest_peak(kept, peak) is kept
