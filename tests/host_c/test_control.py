"""Branches and loops that depend on data: C and interpreter against LiteRT, on random files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import random_inputs, run_graphs_on_host
from tests.support.litert import run_litert
from tests.support.random_control import ControlFlow
from toolchain.boards import HOST, board
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir import Graph
from toolchain.ops.interpret import interpret
from toolchain.ops.lowering import lower
from toolchain.passes import prepare
from toolchain.planner import plan_graph
from toolchain.planning.nested import lay_out
from toolchain.planning.options import PlanOptions
from toolchain.report.latency import latency_line, per_turn, predict_latency

MODELS = 12


def _models() -> list[tuple[bytes, Graph]]:
    files = [ControlFlow(np.random.default_rng(seed)).model() for seed in range(MODELS)]
    return [(data, prepare(FRONT_END.read(data, Path("m.tflite"))).graph) for data in files]


@pytest.mark.parametrize("planned", [False, True])
def test_random_control_flow_equals_litert_s(planned: bool) -> None:
    """With arenas of nested graphs where nothing shares bytes, and where all that may does."""
    rng, cases, wanted, kinds = np.random.default_rng(2), [], [], Counter[str]()
    for data, graph in _models():
        kinds.update(op.kind for op in graph.ops)
        made = lay_out(graph, HOST, PlanOptions()) if planned else graph
        for _ in range(2):
            values = random_inputs(graph, rng)
            wanted.append(run_litert(data, values))
            cases.append((made, values))
    assert min(kinds["branch"], kinds["while_loop"]) > MODELS // 2
    for (graph, values), want, got in zip(
        cases, wanted, run_graphs_on_host(cases, sanitize=True), strict=True
    ):
        for one, two, three in zip(want, got, interpret(graph, values), strict=True):
            np.testing.assert_array_equal(two, one)
            np.testing.assert_array_equal(three, one)


def test_a_nested_plan_takes_no_more_than_no_plan() -> None:
    """And the text says what is counted."""
    target, smaller = board("nucleo-f446re"), 0
    for _, graph in _models():
        plan = plan_graph(graph, target)
        planned = sum(op.scratch_bytes for op in plan.operators)
        apart = sum(kernel.scratch_bytes for kernel in lower(graph, target.core).kernels)
        assert planned <= apart
        smaller += planned < apart
        line = latency_line(plan, predict_latency(plan))
        assert ("Of a loop one turn is counted" in line) == bool(per_turn(plan))
    assert smaller > MODELS // 4
