"""Several models on the same sticks, against every combination of their plans."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from tests.support.edgetpu import all_plans, random_graph
from toolchain.edgetpu.model.figures import EdgeTpuCost, measure
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.model.rules import rules_of
from toolchain.edgetpu.plan.cuts import Cuts, Model, all_cuts
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.plan.planner import plan
from toolchain.edgetpu.plan.several import least_joint_period, small_enough
from toolchain.errors import InputError, ResultError
from toolchain.search import Work

SMALL = EdgeTpuCost(
    cache_bytes=250,
    macs_per_ms=300,
    stream_bytes_per_ms=60,
    in_bytes_per_ms=50,
    out_bytes_per_ms=30,
    hub_bytes_per_ms=80,
)


def cuts_of(graphs: list[PipelineGraph], cost: EdgeTpuCost, balance: str) -> list[Cuts]:
    found = []
    for graph in graphs:
        cuts = all_cuts(Model(graph, rules_of(graph), cost, balance))
        assert cuts is not None
        found.append(cuts)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_the_least_period_of_several_models(seed: int) -> None:
    rng = random.Random(4000 + seed)
    models = rng.choice((2, 2, 3))
    stages = 2 if models == 3 else rng.choice((2, 3))
    graphs = [random_graph(rng, rng.choice((3, 4, 5)), name) for name in "abc"[:models]]
    if rng.random() < 0.3:  # a variable that two operators share
        ops = list(graphs[-1].ops)
        for index in rng.sample(range(len(ops)), 2):
            ops[index] = replace(ops[index], states=(0,))
        graphs[-1] = replace(graphs[-1], ops=tuple(ops))
    balance = rng.choice(("file", "compiled"))
    cost = replace(
        SMALL, whole_layers=rng.random() < 0.8, cache_bytes=rng.choice((100, 250, 500, 10_000))
    )
    every = [list(all_plans(graph, stages)) for graph in graphs]
    if not all(every):
        return
    periods = {
        chosen: measure(graphs, chosen, stages, cost, balance)[1].period_ms
        for chosen in itertools.product(*every)
    }
    start = rng.choice(list(periods))
    listed = cuts_of(graphs, cost, balance)
    assert small_enough(listed)
    found = least_joint_period(listed, stages, start, Work(60.0))
    (proof,) = found.proofs
    assert proof.value == pytest.approx(min(periods.values()))
    assert periods[found.stage_of] == pytest.approx(proof.value)
    assert proof.bound == proof.value
    unfinished = least_joint_period(listed, stages, start, Work(0.0))
    assert unfinished.stage_of == start
    assert unfinished.proofs[0].bound == 0.0


@pytest.mark.parametrize("seed", range(8))
def test_joint_periods_are_proved(seed: int) -> None:
    rng = random.Random(200 + seed)
    graphs = [random_graph(rng, 6, "a"), random_graph(rng, 5, "b")]
    every = [list(all_plans(graph, 2)) for graph in graphs]
    if not all(every):
        with pytest.raises((InputError, ResultError)):
            plan(graphs, 2, Options(cost=SMALL))
        return
    best = min(
        measure(graphs, chosen, 2, SMALL)[1].period_ms for chosen in itertools.product(*every)
    )
    found = plan(graphs, 2, Options(cost=SMALL))
    assert found.proved_optimal
    assert found.totals.period_ms == pytest.approx(best)


@pytest.mark.slow
def test_work_that_ends_early_leaves_a_bound() -> None:
    """A bound that is proved before the work is done stands."""
    rng = random.Random(3)
    graphs = [random_graph(rng, 12, "a"), random_graph(rng, 12, "b")]
    listed = cuts_of(graphs, SMALL, "file")
    start = plan(graphs, 3, Options("params", cost=SMALL)).stage_of
    (done,) = least_joint_period(listed, 3, start, Work(60.0)).proofs
    spent = 0.001
    gaps = []
    while spent < 10:
        (some,) = least_joint_period(listed, 3, start, Work(spent)).proofs
        assert some.bound <= done.value <= some.value * (1 + 1e-9)
        gaps.append(some.value - some.bound)
        spent *= 4
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] == 0
