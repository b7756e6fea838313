"""`--optimise size`: the smallest kernels of the whole network, within a quarter more cycles."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.support.random_networks import random_network
from toolchain.boards import Core, board
from toolchain.contact.network import Network
from toolchain.cost.predicted import PredictedCostModel
from toolchain.ir import Graph
from toolchain.kernels.code_sizes import code_bytes
from toolchain.memory.firmware_size import code_of, estimated_need
from toolchain.ops.check import check
from toolchain.ops.lowering import Lowered, lower
from toolchain.ops.moves import may_move
from toolchain.planner import plan_graph
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.planning.small import small_kernels


@cache
def _mobile() -> Graph:
    """Depthwise convolutions of both strides between pointwise ones."""
    net = Network("mobile", (1, 24, 24, 8))
    x = net.input
    for stride in (1, 2, 1, 2):
        x = net.conv(net.depthwise(x, 3, stride), 16, 1)
    return check(net.graph(x))


def _figures(lowered: Lowered) -> tuple[int, int]:
    """Cycles and bytes of code."""
    graph, core = lowered.graph, lowered.core
    costs = PredictedCostModel(core)
    numbers = [n for n, op in enumerate(graph.ops) if not may_move(op, graph)]
    functions = frozenset(f for n in numbers for f in lowered.kernels[n].functions)
    return sum(costs.cost(lowered, n).count for n in numbers), code_bytes(core, functions)


def _sides(graph: Graph, core: Core) -> tuple[Lowered, Lowered]:
    return lower(graph, core), lower(graph, core, known=small_kernels(graph, core))


@pytest.mark.parametrize("name", ["nucleo-l4r5zi", "nucleo-g0b1re", "mps3-an547"])
def test_small_kernels_take_a_quarter_more_time_at_most(name: str) -> None:
    core = board(name).core
    drawn = (check(random_network(np.random.default_rng(seed))) for seed in range(3))
    for graph in (_mobile(), *drawn):
        (quick, most), (slow, least) = (_figures(one) for one in _sides(graph, core))
        assert slow <= 1.25 * quick
        assert slow == quick or least < 1.02 * most
    if core.name == "cortex-m4":
        (_, most), (_, least) = (_figures(one) for one in _sides(_mobile(), core))
        assert least < 0.7 * most


def test_forms_call_no_other_function() -> None:
    for kernel in _sides(_mobile(), board("nucleo-l4r5zi").core)[1].kernels:
        assert not kernel.inexact
        assert {form.name for form in kernel.forms()} == {kernel.name}


def test_the_plan_has_them_and_takes_less_flash() -> None:
    target = board("nucleo-l4r5zi")
    default, size = (
        plan_graph(_mobile(), target, PlanOptions(optimise=each, nearly_free=False))
        for each in (Optimise.BALANCED, Optimise.SIZE)
    )
    assert code_of(size).size_bytes < 0.8 * code_of(default).size_bytes
    assert estimated_need(size).flash_bytes < estimated_need(default).flash_bytes
    chosen = {k.name for k in size.lowered.kernels}
    assert len({n for n in chosen if "depthwise" in n}) == 1
