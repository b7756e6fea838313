"""Plans: which operator of which model runs on which stick, and what is proved about that.

`solvers.py` says which solver is asked; here its plan is completed with the devices beside the
sticks and with its figures, and checked. Models with rates of requests: `rates.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from toolchain.edgetpu.model.figures import (
    Figures,
    HostStage,
    McuStage,
    Totals,
)
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.model.rules import check_plan, check_stages, rules_of
from toolchain.edgetpu.plan.beside import Mcu, least_beside, least_share_ms
from toolchain.edgetpu.plan.cuts import Model, measured, some_cuts
from toolchain.edgetpu.plan.demand import Assignment, Options, Proof, parse
from toolchain.edgetpu.plan.solvers import Task, solved
from toolchain.errors import InputError, ResultError
from toolchain.progress import Report, silent
from toolchain.search import Stopwatch

PAYS = 0.05
"""A stick is worthwhile if it shortens the period by at least this share."""
_MOST_MS = 1e12


@dataclass(frozen=True)
class PipelinePlan(Assignment):
    """Stages of one model, or of several on the same sticks.

    `host`: the stage on the host; `mcu`: that on a microcontroller, `board`.
    """

    graphs: tuple[PipelineGraph, ...]
    stages: int
    options: Options
    figures: tuple[Figures, ...]
    totals: Totals
    seconds: float
    host: int | None = None
    mcu: int | None = None
    board: str = ""

    @property
    def beside(self) -> tuple[int, ...]:
        """The stages that are on no stick."""
        return tuple(stage for stage in (self.host, self.mcu) if stage is not None)

    @property
    def sticks(self) -> int:
        """How many sticks it uses."""
        return self.stages - len(self.beside)


def plan(graphs: Sequence[PipelineGraph], stages: int, options: Options) -> PipelinePlan:
    """Assign every operator of every model to a stage, each on a stick of its own.

    With `options.host` at most `stages` sticks are used, and one stage more may be on the host.

    Raises InputError, naming the rule and the remedy, if a model cannot have so many stages,
    ResultError if no plan was found.
    """
    names = parse(options.objective)
    check_times(graphs, options)
    if options.host is not None:
        _check_host(graphs, names, options)
    watch = Stopwatch()
    models = tuple(model_of(graph, options) for graph in graphs)
    for model in models:
        check_stages(model.graph, model.rules, stages)
    assignment, host = solved(Task(models, stages, names, options)), None
    if options.host is not None:
        assignment, stages, host = _with_host(models[0], stages, assignment, options)
    return _finished(models, assignment, stages, options, watch, host)


def model_of(graph: PipelineGraph, options: Options) -> Model:
    """A graph with its rules, weighed as the options say."""
    rules = rules_of(graph, options.same_stage_children)
    return Model(graph, rules, options.cost, options.balance, options.times_ms)


def check_times(graphs: Sequence[PipelineGraph], options: Options) -> None:
    """Raises InputError for measured times of several models, or of another one."""
    if options.times_ms is not None and (
        len(graphs) != 1 or len(options.times_ms) != len(graphs[0].ops)
    ):
        raise InputError("a profile belongs to one model: it names another number of operators")


def _check_host(graphs: Sequence[PipelineGraph], names: tuple[str, ...], options: Options) -> None:
    """Raises InputError where the host cannot be part of a plan."""
    if len(graphs) != 1 or names != ("period",):
        raise InputError("the host takes a stage of one model, planned for the period")
    times = None if options.host is None else options.host.times_ms
    if times is not None and len(times) != len(graphs[0].ops):
        raise InputError(
            f"the host's times are of {len(times)} operators, {graphs[0].name} has "
            f"{len(graphs[0].ops)}: measure this model"
        )


def _with_host(
    model: Model, sticks: int, assignment: Assignment, options: Options
) -> tuple[Assignment, int, HostStage | None]:
    """The best of the plan without the host, and of those with it at every place among at most
    `sticks` sticks. Exact where the model has few cuts, else over some of one order.
    """
    assert options.host is not None
    cuts, exact = some_cuts(model)
    value = assignment.proofs[0].value
    better = least_beside(cuts, sticks, value, options.host)
    value = value if better is None else better.period_ms
    bound = value if exact else min(least_share_ms(model, sticks, options.host), value)
    proofs = (Proof("period", value, bound),)
    if better is None:
        return Assignment(assignment.stage_of, proofs), sticks, None
    return Assignment((better.stage_of,), proofs), better.stages, better.host


def plan_with_mcu(graph: PipelineGraph, sticks: int, options: Options, mcu: Mcu) -> PipelinePlan:
    """The least period of at most `sticks` sticks, the microcontroller, and `options.host`.

    Exact where the model has few cuts, as with the host. Raises InputError for what cannot be
    planned so, ResultError where the board can have no stage and must.
    """
    if parse(options.objective) != ("period",):
        raise InputError("a microcontroller takes a stage of a plan for the period")
    watch = Stopwatch()
    model = model_of(graph, options)
    cuts, exact = some_cuts(model)
    known = None if mcu.place else _possible(graph, sticks, options)
    limit = _MOST_MS if known is None else known.totals.period_ms
    best = least_beside(cuts, sticks, limit, options.host, mcu)
    if best is None:
        if known is not None:
            return replace(known, seconds=watch.seconds)
        raise ResultError(
            f"{graph.name}: {mcu.board} cannot have the {mcu.place} stage of a pipeline: no cut "
            "leaves it operators that fit its RAM and flash; take another board, or drop the option"
        )
    proof = Proof("period", best.period_ms, best.period_ms if exact else 0.0)
    assignment = Assignment((best.stage_of,), (proof,))
    return _finished(
        [model], assignment, best.stages, options, watch, best.host, best.mcu, mcu.board
    )


def _possible(graph: PipelineGraph, sticks: int, options: Options) -> PipelinePlan | None:
    """The plan of one model; None where it cannot have so many stages."""
    try:
        return plan([graph], sticks, options)
    except (InputError, ResultError):
        return None


def _finished(
    models: Sequence[Model],
    assignment: Assignment,
    stages: int,
    options: Options,
    watch: Stopwatch,
    host: HostStage | None,
    mcu: McuStage | None = None,
    board: str = "",
) -> PipelinePlan:
    """A plan with its figures, checked."""
    figures, totals = measured(models, assignment.stage_of, stages, host, mcu)
    result = PipelinePlan(
        assignment.stage_of,
        assignment.proofs,
        tuple(model.graph for model in models),
        stages,
        options,
        figures,
        totals,
        watch.seconds,
        None if host is None else host.stage,
        None if mcu is None else mcu.stage,
        board,
    )
    check_plan(
        result.graphs,
        assignment.stage_of,
        totals,
        stages=stages,
        balance=options.balance,
        cache_bytes=options.cost.cache_bytes,
        runnable=options.objective.strip() != "greedy",
        beside=result.beside,
    )
    return result


def plans_up_to(
    graphs: Sequence[PipelineGraph],
    most: int,
    options: Options,
    report: Report = silent,
) -> tuple[PipelinePlan, ...]:
    """A plan for 1, 2, ... sticks, as far as the models can be cut."""
    plans = []
    for stages in range(1, most + 1):
        report(f"{stages} of {most} sticks")
        try:
            plans.append(plan(graphs, stages, options))
        except (InputError, ResultError):
            if stages == 1:
                raise
            break
    return tuple(plans)


def best_of(plans: Sequence[PipelinePlan]) -> PipelinePlan:
    """The fewest sticks after which no larger number shortens the period by `PAYS`."""
    best = plans[0]
    for candidate in plans[1:]:
        if candidate.totals.period_ms < best.totals.period_ms * (1 - PAYS):
            best = candidate
    return best


@dataclass(frozen=True)
class Apart:
    """Models on sticks of their own: the number for each, and the time in which all give a
    result.
    """

    sticks: tuple[int, ...]
    plans: tuple[PipelinePlan, ...]
    period_ms: float


def apart(graphs: Sequence[PipelineGraph], stages: int, options: Options) -> Apart | None:
    """The best way to give each model its own sticks, with one hub for all; None with too few."""
    if stages < len(graphs):
        return None

    @cache
    def own(number: int, sticks: int) -> PipelinePlan | None:
        return _possible(graphs[number], sticks, options)

    best: Apart | None = None
    for sticks in _shares(stages, len(graphs)):
        plans = [own(number, count) for number, count in enumerate(sticks)]
        present = tuple(one for one in plans if one is not None)
        if len(present) != len(graphs):
            continue
        streamed = sum(one.totals.streamed_bytes for one in present)
        period = options.cost.period_ms([one.totals.period_ms for one in present], streamed)
        if best is None or period < best.period_ms:
            best = Apart(sticks, present, period)
    return best


def _shares(stages: int, models: int) -> list[tuple[int, ...]]:
    """Every way to give `models` models at least one of `stages` sticks each, all given out."""
    if models == 1:
        return [(stages,)]
    return [
        (first, *rest)
        for first in range(1, stages - models + 2)
        for rest in _shares(stages - first, models - 1)
    ]
