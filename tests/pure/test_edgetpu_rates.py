"""Plans for rates of requests: against every assignment there is, and against simulation."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.edgetpu import all_plans, random_graph
from toolchain.cli import run
from toolchain.edgetpu.model.figures import EdgeTpuCost, HostCost
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.plan.demand import Demand, Options, demand_of
from toolchain.edgetpu.plan.devices import (
    Part,
    Score,
    Setting,
    Visit,
    estimate_of,
    parts_of,
    score,
)
from toolchain.edgetpu.plan.paths import better
from toolchain.edgetpu.plan.queueing import Bus, Flow, estimate
from toolchain.edgetpu.plan.rates import highest_factor, plan_rates
from toolchain.edgetpu.run.simulate import Arrivals, simulate_plan, simulate_requests
from toolchain.errors import InputError

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
SMALL = EdgeTpuCost(
    cache_bytes=150,
    macs_per_ms=300,
    stream_bytes_per_ms=60,
    in_bytes_per_ms=50,
    out_bytes_per_ms=30,
    hub_bytes_per_ms=80,
)


def every_path(graph: PipelineGraph, setting: Setting) -> Iterator[tuple[tuple[int, Part], ...]]:
    """Each cut into stages that keeps the runner's rules, on each choice of devices."""
    for stages in range(1, setting.devices + 1):
        for stage_of in all_plans(graph, stages):
            parts = parts_of(graph, stage_of, stages, setting, "file")
            for devices in itertools.permutations(range(setting.devices), stages):
                path = []
                for device, part in zip(devices, parts, strict=True):
                    if device == setting.sticks:
                        assert setting.host is not None
                        macs = [graph.ops[i].macs for i in part.operators]
                        time_ms = setting.host.call_ms + sum(setting.host.weights_ms(macs))
                        part = replace(part, fixed_ms=time_ms, streamed_bytes=0)
                    path.append((device, part))
                yield tuple(path)


def least_of_all(graphs: list[PipelineGraph], setting: Setting, demand: Demand) -> Score:
    best = Score(math.inf, math.inf, math.inf)
    for paths in itertools.product(*(list(every_path(graph, setting)) for graph in graphs)):
        found = score(estimate_of(setting, paths, demand.rates_a_ms), demand)
        best = min(best, found)
    return best


@pytest.mark.parametrize("seed", range(40))
def test_the_least_latency_of_all_assignments(seed: int) -> None:
    rng = random.Random(seed)
    models = rng.choice((1, 2, 2))
    most = 6 if models == 1 else 4
    graphs = [random_graph(rng, rng.randint(3, most), f"m{k}") for k in range(models)]
    host = HostCost(rng.choice((50.0, 400.0)), 0.05) if rng.random() < 0.4 else None
    setting = Setting(rng.choice((1, 2, 3) if models == 1 else (1, 2)), SMALL, host)
    rates = tuple(rng.uniform(2, rng.choice((60, 200))) for _ in graphs)
    limits = tuple(rng.choice((None, rng.uniform(10, 60))) for _ in graphs)
    demand = Demand(
        tuple(g.name for g in graphs), rates, limits, rng.choice(("mean", "mean", "worst"))
    )
    options = Options(cost=SMALL, host=host)
    found = plan_rates(graphs, setting.sticks, options, demand)
    assert found.score == pytest.approx(least_of_all(graphs, setting, demand))
    assert found.proved_optimal
    begun = plan_rates(
        graphs, setting.sticks, Options(cost=SMALL, host=host, seconds=0.001), demand
    )
    assert not better(found.score, begun.bound)


@pytest.mark.parametrize("seed", range(20))
def test_bounds_are_below_what_more_flows_give(seed: int) -> None:
    """The queueing model's bound for some of the flows, against the model with all of them."""
    rng = random.Random(seed)
    flows = []
    for model in range(3):
        devices = rng.sample(range(3), rng.randint(1, 3))
        for place, device in enumerate(devices):
            stream, swap = rng.choice((0.0, 4.0)), rng.choice((0.0, 5.0))
            flow = Flow(
                model, device, rng.uniform(0.002, 0.02), rng.uniform(1, 9), stream, swap, ()
            )
            flows.append(
                Flow(*(flow.model, device, 0.01 * (1 + model)), flow.fixed_ms, stream, swap,
                     tuple(devices[:place]))
            )  # fmt: skip
    bus = Bus(1.0)
    whole = estimate(flows, 3, 3, bus)
    if whole.load >= 1:
        return
    for model in range(3):
        for length in range(1, 4):
            own = [flow for flow in flows if flow.model == model][:length]
            others = [flow for flow in flows if flow.model < model]
            part = estimate([*others, *own], 3, 3, bus, least=True)
            for k in range(model + 1):
                assert part.mean_ms[k] <= whole.mean_ms[k] + 1e-9
                assert part.tail_ms[k] <= whole.tail_ms[k] + 1e-9


def _predicted_and_simulated(
    paths: list[list[Visit]], rates: list[float], devices: int, requests: int = 30_000
) -> list[tuple[float, float]]:
    flows = [
        Flow(model, visit.device, rates[model], visit.fixed_ms, visit.stream_ms, visit.swap_ms,
             tuple(before.device for before in path[:place]))
        for model, path in enumerate(paths)
        for place, visit in enumerate(path)
    ]  # fmt: skip
    bus = Bus(1.0)
    found = estimate(flows, len(paths), devices, bus)
    assert found.load < 0.8
    trace = simulate_requests(paths, rates, devices, bus, requests)
    for device, busy in enumerate(found.busy):
        assert trace.busy[device] == pytest.approx(busy, rel=0.05)
    return [(m, s.mean_ms) for m, s in zip(found.mean_ms, trace.models, strict=True)]


def test_what_is_exact_is_what_a_simulation_finds() -> None:
    """A mix on one device, a pipeline of one model, and a device that swaps, all below 80%."""
    mixed = _predicted_and_simulated(
        [[Visit(0, 2.0, 0.0, 0.0)], [Visit(0, 9.0, 0.0, 0.0)]], [0.1, 0.055], 1
    )
    chain = _predicted_and_simulated(
        [[Visit(0, 3.0, 0, 0), Visit(2, 7.0, 0, 0), Visit(1, 5.0, 0, 0)]], [0.1], 3
    )
    swapped = _predicted_and_simulated(
        [[Visit(0, 2.0, 0.0, 4.0)], [Visit(0, 5.0, 0.0, 6.0)]], [0.08, 0.04], 1
    )
    for predicted, simulated in (*mixed, *chain, *swapped):
        assert predicted == pytest.approx(simulated, rel=0.04)


def test_models_that_meet_on_devices_are_within_some_per_cent() -> None:
    errors = []
    for seed in range(12):
        rng = random.Random(seed)
        paths = [
            [Visit(d, rng.uniform(1, 9), 0.0, 0.0) for d in rng.sample(range(3), rng.randint(1, 3))]
            for _ in range(2)
        ]
        rates = [rng.uniform(0.02, 0.04) for _ in paths]
        pairs = _predicted_and_simulated(paths, rates, 3, 12_000)
        errors += [abs(predicted / simulated - 1) for predicted, simulated in pairs]
    assert sum(errors) / len(errors) < 0.03 and max(errors) < 0.15


def test_periodic_requests_do_not_wait_for_each_other() -> None:
    path = [Visit(0, 3.0, 1.0, 0.0), Visit(1, 8.0, 0.0, 0.0)]
    trace = simulate_requests([path], [0.1], 2, Bus(1.0), 500, Arrivals.PERIODIC, [11.0])
    (served,) = trace.models
    assert served.mean_ms == pytest.approx(12.0) and served.worst_ms == pytest.approx(12.0)
    assert served.late == 1.0
    assert trace.busy == pytest.approx((0.4, 0.8), rel=0.03)


def test_sticks_that_stream_at_once_share_the_bus() -> None:
    """Two models whose requests come at the same moment: each has half of the bus."""
    paths = [[Visit(0, 0.0, 10.0, 0.0)], [Visit(1, 0.0, 10.0, 0.0)]]
    trace = simulate_requests(paths, [1e-3, 1e-3], 2, Bus(1.0), 2000)
    assert 10.0 < trace.models[0].mean_ms < 10.5
    assert trace.models[0].worst_ms > 15.0


def test_a_demand_that_cannot_be_met_is_proved() -> None:
    rng = random.Random(5)
    graph = random_graph(rng, 5, "a")
    too_many = plan_rates([graph], 2, Options(cost=SMALL), Demand(("a",), (900.0,), (None,)))
    assert too_many.proved_unmet and too_many.score.load > 1
    factor = highest_factor(too_many)
    assert 0 < factor < 1
    slower = Demand(("a",), (900.0 * factor * 0.99,), (None,))
    assert plan_rates([graph], 2, Options(cost=SMALL), slower).met
    too_soon = plan_rates([graph], 2, Options(cost=SMALL), Demand(("a",), (1.0,), (0.1,)))
    assert too_soon.proved_unmet and too_soon.score.late > 1
    assert highest_factor(too_soon) == 0


def test_more_requests_than_a_plan_bears_grow_without_end() -> None:
    graph = random_graph(random.Random(7), 4, "a")
    found = plan_rates([graph], 1, Options(cost=SMALL), Demand(("a",), (5.0,), (None,)))
    edge = highest_factor(found) * 5.0
    below = plan_rates([graph], 1, Options(cost=SMALL), Demand(("a",), (edge * 0.9,), (None,)))
    above = plan_rates([graph], 1, Options(cost=SMALL), Demand(("a",), (edge * 1.2,), (None,)))
    assert below.met and not above.met
    calm, wild = simulate_plan(below, 8000), simulate_plan(above, 8000)
    assert wild.busy[0] > 0.99 > calm.busy[0]
    assert wild.models[0].mean_ms > 20 * calm.models[0].mean_ms


@pytest.mark.parametrize(
    ("rates", "deadlines", "objective", "said"),
    [
        ("a=1", None, "mean", "no rate for b"),
        ("a=1,b=0", None, "mean", "above 0"),
        ("a=1,b=x", None, "mean", "'x' is no number"),
        ("a=1,c=2", None, "mean", "no model 'c'; there are a, b"),
        ("a=1,a=2", None, "mean", "a stands twice"),
        ("a=1,2", None, "mean", "'2' names no model"),
        ("3", "a=-5ms", "mean", "a deadline is a time above 0"),
        ("3", "a=5min", "mean", "is no number"),
        ("3", None, "period", "the objective is mean or worst"),
    ],
)
def test_demands_that_are_none(
    rates: str, deadlines: str | None, objective: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        demand_of(("a", "b"), rates, deadlines, objective)


def test_deadlines_in_their_units() -> None:
    found = demand_of(("a", "b", "c"), "2", "a=100ms,b=0.5s", "mean")
    assert found.rates == (2.0, 2.0, 2.0) and found.deadlines_ms == (100.0, 500.0, None)


COMMAND = ["edgetpu", "plan", str(DIGITS), str(DIGITS), "-n", "2", "--requests", "2000"]


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plan.json"
    asked = ["--rate", "digits_int8=20,digits_int8_2=40", "--deadline", "digits_int8=5ms"]
    assert run([*COMMAND, *asked, "--json", str(file)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "proved optimal under the queueing model" in out and "all on one" in out
    told = json.loads(file.read_text())
    assert told["met"] and told["proved_optimal"]
    first = told["models"][0]
    assert first["simulated"]["mean_ms"] == pytest.approx(first["mean_ms"], rel=0.05)
    assert run(["edgetpu", "simulate", str(file), "--json", "-", "--requests", "5000"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["models"][1]["mean_ms"] == pytest.approx(told["models"][1]["mean_ms"], rel=0.05)
    page = tmp_path / "plan.html"
    assert run([*COMMAND, *asked, "--html", str(page), "--quiet"]) == 0
    text = page.read_text()
    assert "99th percentile" in text and "digits_int8_2" in text and "all on one" in text
    assert run([*COMMAND, *asked, "--fail-on", "models.p99_ms > 0.001"]) == 3
    damaged = json.loads(file.read_text())
    damaged["models"][0]["stages"][0]["device"] = 9
    file.write_text(json.dumps(damaged))
    assert run(["edgetpu", "simulate", str(file)]) == 2
    assert "models[0]: stages[0]" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--rate", "5000"], 1, "is overloaded"),
        (["--rate", "9", "--deadline", "0.01ms"], 1, "takes at least with nobody else there"),
        (["--rate", "9", "--objective", "params"], 2, "the objective is mean or worst"),
        (["--objective", "worst"], 2, "add --rate"),
        (["--deadline", "5ms"], 2, "give the rates of requests"),
        (["--rate", "9", "--slack", "5%"], 2, "for plans of a period"),
        (["--rate", "9", "--picture", "a.svg"], 2, "for plans of a period"),
    ],
)
def test_what_the_command_refuses(
    more: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*COMMAND, *more]) == code
    assert said in " ".join(capsys.readouterr().err.split())
