"""Identity rewriting: byte for byte the same, in less memory where it is taken."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.concat_cells import cell
from tests.support.host import run_graph_on_host
from toolchain.boards import HOST, board
from toolchain.ir import Graph
from toolchain.ir.memory import peak_bytes
from toolchain.memory.problem import memory_problem
from toolchain.ops.check import check
from toolchain.ops.interpret import interpret
from toolchain.ops.lowering import lower
from toolchain.passes.identity_rewriting import lowest_peak, partition, sites
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.schedule import scheduler


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
