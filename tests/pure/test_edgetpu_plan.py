"""Edge TPU plans against every plan there is, on graphs small enough to list them all."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.edgetpu import all_plans, random_graph
from tests.support.long import mostly_long
from toolchain.edgetpu.model.figures import EdgeTpuCost, HostCost, HostStage, Totals, measure
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.model.reading import compiled_bytes
from toolchain.edgetpu.model.rules import broken_rules, check_plan, rules_of
from toolchain.edgetpu.plan import demand, program
from toolchain.edgetpu.plan.chains import best_chain
from toolchain.edgetpu.plan.cuts import Model, all_cuts, depth_first_order, greedy
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.plan.planner import apart, best_of, plan, plans_up_to
from toolchain.edgetpu.plan.several import improve
from toolchain.edgetpu.plan.solvers import RATE_SOLVERS, SOLVERS
from toolchain.errors import InputError, ResultError

SMALL = EdgeTpuCost(
    cache_bytes=150,
    macs_per_ms=300,
    stream_bytes_per_ms=60,
    in_bytes_per_ms=50,
    out_bytes_per_ms=30,
    hub_bytes_per_ms=80,
)
ORDERS = (("params", "spill", "comm"), ("spill", "params", "comm"), ("comm", "params"), ("period",))


def key(totals: Totals, order: tuple[str, ...]) -> tuple[float, ...]:
    values = {
        "params": totals.max_stage_bytes,
        "spill": totals.spill_bytes,
        "comm": totals.communication_bytes,
        "period": totals.period_ms,
    }
    return tuple(values[name] for name in order)


def totals_of(graph: PipelineGraph, stage_of: tuple[int, ...], stages: int, balance: str) -> Totals:
    return measure([graph], [stage_of], stages, SMALL, balance)[1]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("measured", [False, True])
def test_a_stage_on_the_host_is_the_best_there_is(seed: int, measured: bool) -> None:
    """Against every cut into at most so many sticks, with the host at every place or nowhere."""
    rng = random.Random(100 + seed)
    graph = random_graph(rng, 7)
    sticks = rng.choice((1, 2, 3))
    times = tuple(rng.uniform(0.0, 3.0) for _ in graph.ops) if measured else None
    host = HostCost(rng.choice((5.0, 100.0, 1000.0)), rng.choice((0.02, 3.0)), times)
    periods = {}
    for used in range(sticks + 1):
        for place in (None, *range(used + 1)):
            if place is None and used != sticks:
                continue
            stages = used + (place is not None)
            at = None if place is None else HostStage(place, host)
            for cut in all_plans(graph, stages):
                totals = measure([graph], [cut], stages, SMALL, "file", None, at)[1]
                periods[used, place, cut] = totals.period_ms
    options = Options("period", "file", SMALL, host=host)
    if not any(place is None for _, place, _ in periods):
        with pytest.raises((InputError, ResultError)):
            plan([graph], sticks, options)
        return
    found = plan([graph], sticks, options)
    assert found.proved_optimal
    assert found.totals.period_ms == pytest.approx(min(periods.values()))
    chosen = periods[found.sticks, found.host, found.stage_of[0]]
    assert chosen == pytest.approx(found.totals.period_ms)
    assert (
        found.totals.period_ms
        <= plan([graph], sticks, replace(options, host=None)).totals.period_ms
    )


def test_what_the_host_cannot_be_part_of() -> None:
    graph = random_graph(random.Random(3), 6)
    host = HostCost()
    for graphs, objective in (((graph, graph), "period"), ((graph,), "params")):
        with pytest.raises(InputError, match="one model, planned for the period"):
            plan(graphs, 1, Options(objective, "file", SMALL, host=host))
    with pytest.raises(InputError, match="times are of 1 operators"):
        plan([graph], 1, Options("period", "file", SMALL, host=HostCost(times_ms=(1.0,))))


@pytest.mark.parametrize("seed", range(24))
def test_plans_are_the_best_there_are(seed: int) -> None:
    rng = random.Random(seed)
    graph = random_graph(rng, 7)
    stages = rng.choice((2, 3))
    balance = rng.choice(("file", "compiled"))
    every = [(s, totals_of(graph, s, stages, balance)) for s in all_plans(graph, stages)]
    for order in ORDERS:
        options = Options(",".join(order), balance, SMALL)
        if not every:
            with pytest.raises((InputError, ResultError)):
                plan([graph], stages, options)
            continue
        best = min(key(totals, order) for _, totals in every)
        found = plan([graph], stages, options)
        assert found.proved_optimal
        assert key(found.totals, order) == pytest.approx(best, rel=1e-12)
        assert not broken_rules(graph, found.stage_of[0], stages)


@pytest.mark.slow
@pytest.mark.parametrize("seed", mostly_long(range(12), range(4)))
def test_two_exact_methods_agree(seed: int) -> None:
    rng = random.Random(100 + seed)
    graph = random_graph(rng, 24)
    model = Model(graph, rules_of(graph), SMALL)
    cuts = all_cuts(model)
    assert cuts is not None
    for order in ORDERS[:3]:
        chosen = best_chain(cuts, 4, order)
        solution = program.solve([model], 4, order)
        assert (chosen is None) == (solution is None)
        if chosen is None or solution is None:
            continue
        assert all(proof.bound == proof.value for proof in solution.proofs)
        ours = key(totals_of(graph, chosen, 4, "file"), order)
        assert ours == tuple(proof.value for proof in solution.proofs)
        assert ours == key(totals_of(graph, solution.stage_of[0], 4, "file"), order)


@pytest.mark.parametrize("seed", range(6))
def test_joint_plans_are_the_best_there_are(seed: int) -> None:
    rng = random.Random(200 + seed)
    graphs = [random_graph(rng, 5, "a"), random_graph(rng, 4, "b")]
    pairs = [(a, b) for a in all_plans(graphs[0], 2) for b in all_plans(graphs[1], 2)]
    every = [measure(graphs, pair, 2, SMALL)[1] for pair in pairs]
    for order in ORDERS:
        options = Options(",".join(order), cost=SMALL)
        if not every:
            with pytest.raises((InputError, ResultError)):
                plan(graphs, 2, options)
            continue
        best = min(key(totals, order) for totals in every)
        found = plan(graphs, 2, options)
        reached = key(found.totals, order)
        if order == ("period",):  # bounded, not always reached: the bound must hold
            assert found.proofs[0].bound <= best[0] * (1 + 1e-9)
            assert reached[0] >= best[0] * (1 - 1e-9)
            if found.proved_optimal:
                assert reached == pytest.approx(best)
        else:
            assert found.proved_optimal
            assert reached == best


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_joint_periods_are_never_worse_than_separate_plans(seed: int) -> None:
    rng = random.Random(700 + seed)
    graphs = [random_graph(rng, 9 + seed % 3, name) for name in "abc"[: 2 + seed % 2]]
    try:
        separate = [
            plan([graph], 3, Options(objective, cost=SMALL))
            for graph in graphs
            for objective in ("period", "contiguous", "params,spill", "greedy")
        ]
    except (InputError, ResultError):
        return
    found = plan(graphs, 3, Options(cost=SMALL))
    assert found.proofs[0].bound <= found.totals.period_ms * (1 + 1e-9)
    for objective in range(4):
        own = tuple(separate[4 * number + objective].stage_of[0] for number in range(len(graphs)))
        if any(broken_rules(g, s, 3) for g, s in zip(graphs, own, strict=True)):
            continue  # greedy cannot always run
        together = measure(graphs, own, 3, SMALL)[1]
        assert found.totals.period_ms <= together.period_ms * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_no_model_alone_can_shorten_an_improved_plan(seed: int) -> None:
    rng = random.Random(800 + seed)
    graphs = [random_graph(rng, 6, name) for name in "abc"]
    every = [list(all_plans(graph, 2)) for graph in graphs]
    if not all(every):
        return
    balance = ("file", "compiled")[seed % 2]
    cost = replace(SMALL, whole_layers=seed % 4 != 3)
    listed = []
    for graph in graphs:
        cuts = all_cuts(Model(graph, rules_of(graph), cost, balance))
        assert cuts is not None
        listed.append(cuts)
    start = tuple(rng.choice(plans) for plans in every)
    better = improve(listed, start, 2)
    period = measure(graphs, better, 2, cost, balance)[1].period_ms
    assert period <= measure(graphs, start, 2, cost, balance)[1].period_ms
    for number, plans in enumerate(every):
        for own in plans:
            other = (*better[:number], own, *better[number + 1 :])
            assert period <= measure(graphs, other, 2, cost, balance)[1].period_ms * (1 + 1e-8)


def test_out_of_time_the_plan_so_far_stands() -> None:
    graph = random_graph(random.Random(901), 20)
    models = [Model(graph, rules_of(graph), SMALL)] * 2
    start = [plan([graph], 3, Options("contiguous", cost=SMALL)).stage_of[0]] * 2
    totals = measure([graph] * 2, start, 3, SMALL)[1]
    order = ("params", "spill", "comm")
    found = program.solve(models, 3, order, start=start, seconds=1e-9)
    assert found is not None
    assert tuple(proof.value for proof in found.proofs) == key(totals, order)
    assert found.stage_of == tuple(start)
    for step, exact in zip(found.proofs, program.solve(models, 3, order).proofs, strict=True):
        assert step.bound <= step.value
        if step.objective == "params":
            assert step.bound <= exact.value
    assert program.solve(models, 3, order, seconds=1e-9) is None


def test_slack_lets_an_objective_give_way() -> None:
    for seed in range(300, 310):
        graph = random_graph(random.Random(seed), 12)
        try:
            strict = plan([graph], 3, Options("params,comm", cost=SMALL))
        except (InputError, ResultError):
            continue
        loose = plan([graph], 3, Options("params,comm", cost=SMALL, slack=0.5))
        assert loose.totals.communication_bytes <= strict.totals.communication_bytes
        assert loose.totals.max_stage_bytes <= 1.5 * strict.totals.max_stage_bytes
        break
    else:
        pytest.fail("no graph could be planned")


@pytest.mark.parametrize("seed", range(8))
def test_children_of_a_fan_out_stay_together(seed: int) -> None:
    graph = random_graph(random.Random(400 + seed), 14)
    options = Options("params", cost=SMALL, same_stage_children=True)
    try:
        found = plan([graph], 2, options)
    except (InputError, ResultError):
        return
    for users in graph.consumers.values():
        assert len({found.stage_of[0][user] for user in users}) == 1


@pytest.mark.parametrize("seed", range(10))
def test_period_is_never_worse_than_the_baselines(seed: int) -> None:
    graph = random_graph(random.Random(500 + seed), 20)
    graph = replace(graph, inputs=graph.inputs[:1]) if len(graph.inputs) > 1 else graph
    try:
        ours = plan([graph], 3, Options(cost=SMALL))
        contiguous = plan([graph], 3, Options("contiguous", cost=SMALL))
    except (InputError, ResultError):
        return
    assert ours.totals.period_ms <= contiguous.totals.period_ms * (1 + 1e-9)
    cut = greedy(graph, [graph.op_param_bytes(i) for i in range(len(graph.ops))], 3)
    if not broken_rules(graph, cut, 3):
        assert ours.totals.period_ms <= totals_of(graph, cut, 3, "file").period_ms * (1 + 1e-9)


def test_many_cuts_are_left_to_the_integer_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolchain.edgetpu.plan.cuts.down_sets", lambda *_: None)
    graph = random_graph(random.Random(7), 12)
    bounded = plan([graph], 3, Options(cost=SMALL))
    monkeypatch.undo()
    exact = plan([graph], 3, Options(cost=SMALL))
    assert bounded.proofs[0].bound <= exact.totals.period_ms * (1 + 1e-9)
    assert bounded.totals.period_ms >= exact.totals.period_ms * (1 - 1e-9)


def test_greedy_fills_until_the_next_would_pass() -> None:
    graph = random_graph(random.Random(3), 9)
    sizes = [30, 30, 30, 30, 30, 30, 30, 30, 30]
    cut = greedy(graph, sizes, 3)
    order = depth_first_order(graph)
    assert [cut[index] for index in order] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_layers_are_cached_whole_in_order() -> None:
    cost = EdgeTpuCost(cache_bytes=100)
    to_the_byte = replace(cost, whole_layers=False)
    assert cost.first_fit([60, 50, 40], 100)[0] == 50
    assert cost.spill_bytes(150) == 50
    assert to_the_byte.first_fit([60, 50, 40], 100)[0] == 50
    assert cost.first_fit([60, 60, 30], 100)[0] == 60
    assert to_the_byte.first_fit([60, 60, 30], 100)[0] == 50


def test_compiled_sizes() -> None:
    assert compiled_bytes("CONV_2D", [(20, 3, 3, 8), (20,)], 0) == 32 * (72 + 12)
    assert compiled_bytes("DEPTHWISE_CONV_2D", [(1, 3, 3, 8)], 0) == 8 * 48
    assert compiled_bytes("FULLY_CONNECTED", [(10, 100)], 0) == 64 * 112
    assert compiled_bytes("PAD", [(4, 2)], 32) == 32


@pytest.mark.parametrize("text", ["speed", "params,period", "params,params", "greedy,comm", ""])
def test_bad_objectives_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        demand.parse(text)


def test_more_stages_than_operators() -> None:
    graph = random_graph(random.Random(5), 4)
    with pytest.raises(InputError, match="4 operators"):
        plan([graph], 5, Options())


def test_a_late_input_is_named() -> None:
    graph = random_graph(random.Random(1), 6)
    late = replace(graph.ops[-1], inputs=(*graph.ops[-1].inputs, graph.inputs[0]))
    graph = replace(graph, ops=(*graph.ops[:-1], late))
    with pytest.raises(InputError, match="'input'"):
        plan([graph], 2, Options())


def test_the_checker_notices_a_wrong_plan() -> None:
    graph = random_graph(random.Random(2), 8)
    found = plan([graph], 2, Options("params", cost=SMALL))

    def check(stage_of: tuple[int, ...], totals: Totals) -> None:
        cache_bytes = SMALL.cache_bytes
        check_plan([graph], [stage_of], totals, stages=2, balance="file", cache_bytes=cache_bytes)

    check(found.stage_of[0], found.totals)
    with pytest.raises(ResultError, match="communication"):
        check(found.stage_of[0], replace(found.totals, communication_bytes=1 << 20))
    turned = tuple(1 - stage for stage in found.stage_of[0])
    with pytest.raises(ResultError, match="before operator"):
        check(turned, found.totals)


def test_sticks_that_pay_and_models_apart() -> None:
    rng = random.Random(11)
    graphs = [random_graph(rng, 10, "a"), random_graph(rng, 10, "b")]
    graphs = [replace(g, inputs=g.inputs[:1]) for g in graphs if len(g.inputs) == 1] or graphs
    plans = plans_up_to(graphs[:1], 4, Options(cost=SMALL))
    best = best_of(plans)
    assert all(p.totals.period_ms >= 0.94 * best.totals.period_ms for p in plans)
    own = apart(graphs, 2 * len(graphs), Options(cost=SMALL))
    assert own is not None
    assert sum(own.sticks) == 2 * len(graphs)
    assert own.period_ms >= max(p.totals.period_ms for p in own.plans)
    assert apart(graphs, len(graphs) - 1, Options(cost=SMALL)) is None


def test_the_page_shows_the_table_of_solvers() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "edgetpu-plans.md").read_text("utf-8")
    rows = [
        f"| {row.name} | {row.when} | {row.proves} | {row.why} |"
        for row in (*SOLVERS, *RATE_SOLVERS)
    ]
    assert "\n".join(rows) in page
