"""Plans for models with rates of requests: paths through devices, what is predicted and proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.edgetpu.model.figures import Figures, StageFigures, StageOf
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.model.rules import check_stages
from toolchain.edgetpu.plan.cuts import MANY_CUTS, Cuts, Model, cuts_of
from toolchain.edgetpu.plan.demand import Demand, Options, Proof
from toolchain.edgetpu.plan.devices import (
    Place,
    Score,
    Setting,
    Stages,
    Table,
    Visit,
    estimate_of,
    parts_of,
    places_of,
    score,
)
from toolchain.edgetpu.plan.latency import Least, least_alone
from toolchain.edgetpu.plan.paths import Search, better, local_search
from toolchain.edgetpu.plan.planner import check_times, model_of
from toolchain.edgetpu.plan.planner import plan as plan_period
from toolchain.edgetpu.plan.queueing import Estimate
from toolchain.edgetpu.plan.solvers import RateTask, routed
from toolchain.errors import InputError, ThimbleError
from toolchain.search import Stopwatch

NODES_A_SECOND = 1000
"""Nodes of the exact search that one core weighs in a second (no clock is read)."""
_STEPS = 30
_FACTOR_STEPS = 10
_MOST_FACTOR = 1e3


@dataclass(frozen=True)
class Routes:
    """Every model's path through devices, to be simulated and shown, from a plan or its JSON.

    `predicted`: by model, mean and 99th percentile of latency, ms; infinite without end.
    """

    setting: Setting
    demand: Demand
    paths: tuple[tuple[Visit, ...], ...]
    predicted: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class RatePlan(Routes):
    """Every model's stages, what the queueing model predicts of it, and what is proved.

    `bound`: no plan has a lower score under the queueing model, or with `all_cuts` False none of
    the cuts of one order. `alone`: what each model cannot go below with all devices to itself.
    """

    graphs: tuple[PipelineGraph, ...]
    places: tuple[tuple[Place, ...], ...]
    estimate: Estimate
    bound: Score
    all_cuts: bool
    nodes: int
    alone: tuple[Least, ...]
    seconds: float

    @property
    def stage_of(self) -> tuple[StageOf, ...]:
        """The stage of each operator of each model, by the order of its stages."""
        assigned = []
        for graph, places in zip(self.graphs, self.places, strict=True):
            own = {i: number for number, p in enumerate(places) for i in p.part.operators}
            assigned.append(tuple(own[index] for index in range(len(graph.ops))))
        return tuple(assigned)

    @property
    def figures(self) -> tuple[Figures, ...]:
        """The stages of every model, with what each streams beside the others of its stick."""
        return tuple(
            tuple(_figures(graph, self.setting, place) for place in path)
            for graph, path in zip(self.graphs, self.places, strict=True)
        )

    @property
    def score(self) -> Score:
        return score(self.estimate, self.demand)

    @property
    def gap(self) -> float:
        """(objective - bound) / objective, where the demand is met; 0 for an optimal plan."""
        value, bound = self.score.objective_ms, self.bound.objective_ms
        return Proof(self.demand.objective, value, bound).gap

    @property
    def met(self) -> bool:
        """Whether no device is overloaded and every deadline is met."""
        return self.score.met

    @property
    def proved_optimal(self) -> bool:
        return self.all_cuts and not better(self.bound, self.score)

    @property
    def proved_unmet(self) -> bool:
        """Whether it is proved that no plan meets the demand."""
        return self.all_cuts and not self.bound.met


def _figures(graph: PipelineGraph, setting: Setting, place: Place) -> StageFigures:
    part = place.part
    return StageFigures(
        part.operators,
        part.param_bytes,
        setting.cost.spill_bytes(part.param_bytes),
        place.streamed_bytes,
        part.in_bytes,
        part.out_bytes,
        sum(graph.ops[index].macs for index in part.operators),
        setting.alone_ms(place),
    )


def plan_rates(
    graphs: Sequence[PipelineGraph], sticks: int, options: Options, demand: Demand
) -> RatePlan:
    """The plan with the least latency under the queueing model, if none meets the demand the one
    that misses it least.

    Exact where `options.seconds` worth of work suffices, else the best found, with a bound. Raises
    InputError for measured times of another model.
    """
    watch = Stopwatch()
    setting = Setting(sticks, options.cost, options.host)
    tables, whole = tables_of(graphs, setting, options)
    search = Search(setting, tables, demand)
    bounded = routed(RateTask(search, int(NODES_A_SECOND * options.seconds)))
    paths = search.paths(bounded.plan)
    rates = demand.rates_a_ms
    places = tuple(map(tuple, places_of(setting, paths, rates)))
    predicted = estimate_of(setting, paths, rates)
    return RatePlan(
        setting,
        demand,
        tuple(tuple(map(setting.visit, path)) for path in places),
        tuple(zip(predicted.mean_ms, predicted.tail_ms, strict=True)),
        tuple(graphs),
        places,
        predicted,
        bounded.bound,
        whole,
        bounded.nodes,
        tuple(least_alone(table, rate) for table, rate in zip(tables, rates, strict=True)),
        watch.seconds,
    )


def tables_of(
    graphs: Sequence[PipelineGraph], setting: Setting, options: Options
) -> tuple[list[Table], bool]:
    """The stages of every model, and whether these are all that there are."""
    check_times(graphs, options)
    measured = None if setting.host is None else setting.host.times_ms
    if measured is not None and (len(graphs) != 1 or len(measured) != len(graphs[0].ops)):
        raise InputError("the host's profile is of one model, and of another: give its speed")
    tables, whole = [], True
    for graph in graphs:
        model = model_of(graph, options)
        cuts, listed = Cuts(model, (0, (1 << model.rules.units) - 1)), True
        if _can_be_cut(model):
            cuts, listed = cuts_of(model, MANY_CUTS)
        whole = whole and listed
        tables.append(Table(cuts, setting))
    return tables, whole


def _can_be_cut(model: Model) -> bool:
    try:
        check_stages(model.graph, model.rules, 2)
    except InputError:
        return False
    return True


def highest_factor(plan: RatePlan, model: int | None = None) -> float:
    """By how much all rates, or those of one model, may be multiplied on this plan's paths until a
    device is overloaded or a deadline missed; 0 where even few requests miss one.
    """
    paths = [tuple((place.device, place.part) for place in path) for path in plan.places]

    def holds(factor: float) -> bool:
        demand = plan.demand.scaled(factor, model)
        predicted = estimate_of(plan.setting, paths, demand.rates_a_ms)
        return score(predicted, demand).met

    low, high = 1e-6, _MOST_FACTOR
    if not holds(low):
        return 0.0
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def highest_planned(plan: RatePlan, options: Options) -> float:
    """The largest factor on all rates, at most 1, for which a plan was found that meets the demand.

    At least what the plan itself bears; 0 where none was found.
    """
    tables, _ = tables_of(plan.graphs, plan.setting, options)
    low, high = min(1.0, highest_factor(plan)), 1.0
    starts: list[tuple[Stages, ...]] = []
    for _ in range(_FACTOR_STEPS):
        middle = (low + high) / 2
        search = Search(plan.setting, tables, plan.demand.scaled(middle))
        tried = local_search(search, starts)
        starts = [tried]
        if search.score(tried).met:
            low = middle
        else:
            high = middle
    return low


@dataclass(frozen=True)
class Baseline:
    """Another way to place the models, and its latency under the same demand."""

    name: str
    estimate: Estimate
    score: Score


def baselines(plan: RatePlan, options: Options) -> tuple[Baseline, ...]:
    """All models whole on one stick; Google's cut over all sticks; the plan of the least period."""
    graphs, setting, demand = plan.graphs, plan.setting, plan.demand
    whole = tuple((0,) * len(graph.ops) for graph in graphs)
    assigned: list[tuple[str, tuple[StageOf, ...], int]] = [("all on one", whole, 1)]
    for name, objective in (("greedy", "greedy"), ("least period", "period")):
        try:
            asked = Options(objective, options.balance, options.cost, seconds=options.seconds / 6)
            cut = plan_period(graphs, setting.sticks, asked)
        except ThimbleError:
            continue
        assigned.append((name, cut.stage_of, cut.stages))
    others = []
    for name, stage_of, stages in assigned:
        paths = [
            tuple(enumerate(parts_of(graph, own, stages, setting, options.balance)))
            for graph, own in zip(graphs, stage_of, strict=True)
        ]
        predicted = estimate_of(setting, paths, demand.rates_a_ms)
        others.append(Baseline(name, predicted, score(predicted, demand)))
    return tuple(others)
