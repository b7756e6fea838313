"""Plans of large models: their parts against every plan of small graphs, then the models."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks._edgetpu_large import KINDS
from tests.support.edgetpu import all_plans, random_graph
from toolchain.edgetpu.model.figures import EdgeTpuCost, measure
from toolchain.edgetpu.model.reading import read_graph
from toolchain.edgetpu.model.rules import broken_rules, rules_of
from toolchain.edgetpu.plan import bounds, chains
from toolchain.edgetpu.plan.bounds import bound_ms
from toolchain.edgetpu.plan.cuts import Model, all_cuts, down_sets, period_ms, prefixes
from toolchain.edgetpu.plan.demand import Assignment, Options
from toolchain.edgetpu.plan.moves import polish
from toolchain.edgetpu.plan.planner import plan
from toolchain.edgetpu.plan.solvers import SOLVERS, Task
from toolchain.search import Work

SMALL = EdgeTpuCost(
    cache_bytes=150,
    macs_per_ms=300,
    stream_bytes_per_ms=60,
    in_bytes_per_ms=50,
    out_bytes_per_ms=30,
    hub_bytes_per_ms=80,
)


def asked(name: str, task: Task) -> Assignment | None:
    """What the solver of this name finds."""
    (solver,) = (solver for solver in SOLVERS if solver.name == name)
    return solver.solve(task, None)


@pytest.mark.parametrize("seed", range(24))
def test_bounds_and_chains_against_every_plan(seed: int) -> None:
    rng = random.Random(900 + seed)
    graph = random_graph(rng, 8)
    stages = rng.choice((2, 3))
    balance = rng.choice(("file", "compiled"))
    cost = replace(SMALL, whole_layers=rng.random() < 0.8, cache_bytes=rng.choice((60, 150, 999)))
    times = tuple(rng.uniform(0.0, 3.0) for _ in graph.ops) if rng.random() < 0.3 else None
    every = [
        measure([graph], [cut], stages, cost, balance, times)[1].period_ms
        for cut in all_plans(graph, stages)
    ]
    model = Model(graph, rules_of(graph), cost, balance, times)
    task = Task((model,), stages, ("period",), Options())
    assert task.few_cuts
    best = asked("listed stages", task)
    if not every:
        assert best is None
        return
    assert best is not None
    assert best.proofs[0].value == pytest.approx(min(every))
    assert not broken_rules(graph, best.stage_of[0], stages)
    bound = bound_ms(model, stages, 2 * max(every))
    assert 0 < bound <= min(every) * (1 + 1e-9)
    found = asked("three orders", task)
    if found is not None:  # the cuts of three orders may hold no plan
        assert not broken_rules(graph, found.stage_of[0], stages)
        assert found.proofs[0].bound <= min(every) * (1 + 1e-9)
        assert found.proofs[0].value >= min(every) * (1 - 1e-9)


def test_bounds_are_close_where_one_operator_follows_another() -> None:
    """With one order of the operators, only the weights of the relaxation are left open."""
    for seed in range(6):
        rng = random.Random(seed)
        graph = random_graph(rng, 12)
        ops = tuple(
            replace(op, inputs=(k and graph.ops[k - 1].outputs[0],), outputs=op.outputs[:1])
            for k, op in enumerate(graph.ops)
        )
        graph = replace(graph, ops=ops, inputs=(0,), outputs=(ops[-1].outputs[0],))
        model = Model(graph, rules_of(graph), replace(SMALL, cache_bytes=1 << 20))
        best = asked("listed stages", Task((model,), 3, ("period",), Options()))
        assert best is not None
        period = best.proofs[0].value
        assert bound_ms(model, 3, period) >= 0.8 * period


@pytest.mark.parametrize("seed", range(6))
def test_listed_stages_are_those_of_the_lattice(seed: int) -> None:
    graph = random_graph(random.Random(300 + seed), 14)
    cuts = all_cuts(Model(graph, rules_of(graph), SMALL))
    assert cuts is not None
    listed = chains.stages_within(cuts, 3, 1e9)
    assert len(listed.edges.before) == int(cuts.valid.sum())
    pairs = np.array([listed.edges.before, listed.edges.behind])
    every = chains.stick_side(cuts, 1e9)
    assert (pairs == [every.edges.before, every.edges.behind]).all()
    assert (listed.streamed == every.streamed).all()
    assert listed.time_ms == pytest.approx(every.time_ms)
    rows, columns = np.nonzero(cuts.valid)
    streamed, _ = cuts.costs.first_fit(rows, columns, SMALL.cache_bytes)
    time_ms = cuts.costs.time_without_streams[rows, columns] + streamed / 60
    ours = {
        tuple(p): (t, s) for p, t, s in zip(pairs.T, listed.time_ms, listed.streamed, strict=True)
    }
    for row, column, size, time in zip(rows, columns, streamed, time_ms, strict=True):
        assert ours[row, column] == (pytest.approx(time), size)


@pytest.mark.parametrize("seed", range(6))
def test_a_polished_plan_is_no_worse_and_keeps_the_rules(seed: int) -> None:
    rng = random.Random(700 + seed)
    graph = random_graph(rng, 8)
    plans = list(all_plans(graph, 3))
    if not plans:
        return
    model = Model(graph, rules_of(graph), SMALL)
    start = rng.choice(plans)
    better = polish(model, start, 3, Work(10.0))
    assert better in plans
    assert period_ms([model], [better], 3) <= period_ms([model], [start], 3)
    assert polish(model, start, 3, Work(0.0)) == start


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_generated_models_are_planned_with_a_bound(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(KINDS[kind](260)))
    assert path.read_text() == json.dumps(KINDS[kind](260))
    graph = read_graph(path)
    assert 180 <= len(graph.ops) <= 270
    cost = EdgeTpuCost(cache_bytes=1 << 20)
    found = plan([graph], 8, Options(cost=cost))
    if kind == "cells":
        assert found.proofs[0].gap < 0.6
    else:
        assert found.proved_optimal
    for objective in ("greedy", "contiguous"):
        given = plan([graph], 8, Options(objective, cost=cost))
        if not broken_rules(graph, given.stage_of[0], 8):
            assert found.totals.period_ms <= given.totals.period_ms * (1 + 1e-9)


def test_what_caches_hold_of_layers_that_are_cached_whole() -> None:
    rng = random.Random(5)
    for _ in range(40):
        sizes = [rng.choice((0, 3, 7, 12, 50)) for _ in range(rng.randrange(1, 9))]
        capacity = rng.randrange(1, 90)
        sums = {0}
        for size in sizes:
            sums |= {held + size for held in sums}
        assert bounds._most_filled(sizes, capacity) == max(s for s in sums if s <= capacity)


def test_cuts_of_an_order_are_closed() -> None:
    graph = random_graph(random.Random(8), 12)
    rules = rules_of(graph)
    every = down_sets(rules)
    assert every is not None
    order = list(range(len(graph.ops)))
    random.Random(1).shuffle(order)
    assert set(prefixes(graph, rules, order)) <= set(every)
    assert set(prefixes(graph, rules, range(len(graph.ops)))) <= set(every)
