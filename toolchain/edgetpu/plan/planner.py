"""Plans: which operator of which model runs on which stick, and what is proved about that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice, product

from toolchain.edgetpu.model.cost import EdgeTpuCost, HostCost
from toolchain.edgetpu.model.figures import Figures, HostStage, StageOf, Totals, measure
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.model.rules import Rules, broken_rules, check_plan, check_stages, rules_of
from toolchain.edgetpu.plan import demand as objectives
from toolchain.edgetpu.plan import program as formulation
from toolchain.edgetpu.plan.cuts import depth_first_order, greedy
from toolchain.edgetpu.plan.large import Large, bounded, exact
from toolchain.edgetpu.plan.lattice import (
    Lattice,
    down_sets,
    least_period_with_host,
    prefixes,
    stick_side,
)
from toolchain.edgetpu.plan.lattice import solve as solve_lattice
from toolchain.edgetpu.plan.moves import refine
from toolchain.edgetpu.plan.several import improve, least_joint_period, small_enough
from toolchain.errors import InputError, ResultError
from toolchain.search import Stopwatch, Work

_GAP = 1e-9
_MOST_COMBINATIONS = 256
_MOST_STARTS = 12
_MANY_CUTS = 1000
"""Beyond, only those stages are weighed that a short period may have."""
_MOST_CUTS_WITH_HOST = 250
_MOST_FOR_THE_PROGRAM = 600
"""Units times stages: more are not left to the integer program."""
_NEAR = 1e-3
"""How near its bound a period of several models is no longer searched for."""


@dataclass(frozen=True)
class Options:
    """How to plan. `slack`: how far an objective may worsen for later ones (0.05: 5%).

    `seconds`: most work of the solver for each objective, in seconds that it takes on one core.
    `times_ms`: measured time of each operator of the one model, instead of the cost model's.
    `host`: the host may run a stage, beside the sticks (`period` of one model).
    """

    objective: str = objectives.DEFAULT
    balance: str = "file"
    cost: EdgeTpuCost = field(default_factory=EdgeTpuCost)
    slack: float = 0.0
    same_stage_children: bool = False
    seconds: float = 60.0
    times_ms: tuple[float, ...] | None = None
    host: HostCost | None = None


@dataclass(frozen=True)
class Proof:
    """Value and bound of one objective: bytes, for `period` milliseconds."""

    objective: str
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """(value - bound) / value; 0 where the value is optimal."""
        return max(0.0, (self.value - self.bound) / self.value) if self.value else 0.0

    @property
    def optimal(self) -> bool:
        return self.gap <= _GAP


@dataclass(frozen=True)
class PipelinePlan:
    """Stages of one model, or of several on the same sticks.

    `host`: the stage on the host; `mcu`: that on a microcontroller, `board`.
    """

    graphs: tuple[PipelineGraph, ...]
    stage_of: tuple[StageOf, ...]
    stages: int
    options: Options
    figures: tuple[Figures, ...]
    totals: Totals
    proofs: tuple[Proof, ...]
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

    @property
    def proved_optimal(self) -> bool:
        """Whether every objective is proved optimal; False for a baseline."""
        return bool(self.proofs) and all(proof.optimal for proof in self.proofs)


def plan(graphs: Sequence[PipelineGraph], stages: int, options: Options) -> PipelinePlan:
    """Assign every operator of every model to a stage, each on a stick of its own.

    With `options.host` at most `stages` sticks are used, and one stage more may be on the host.

    Raises InputError, naming the rule and the remedy, if a model cannot have so many stages,
    ResultError if no plan was found.
    """
    names = objectives.parse(options.objective)
    if options.times_ms is not None and (
        len(graphs) != 1 or len(options.times_ms) != len(graphs[0].ops)
    ):
        raise InputError("a profile belongs to one model: it names another number of operators")
    if options.host is not None:
        _check_host(graphs, names, options.host)
    watch = Stopwatch()
    rules = [rules_of(graph, options.same_stage_children) for graph in graphs]
    for graph, rule in zip(graphs, rules, strict=True):
        check_stages(graph, rule, stages)
    models = list(zip(graphs, rules, strict=True))
    proofs: tuple[Proof, ...] = ()
    if names == ("greedy",):
        stage_of = tuple(_greedy(graph, stages, options) for graph in graphs)
    elif names == ("contiguous",):
        stage_of = tuple(_contiguous(*model, stages, options) for model in models)
    elif names == ("period",):
        stage_of, proofs = _period(models, stages, options)
    else:
        stage_of, proofs = _exact(models, stages, names, options)
    host = None
    if options.host is not None:
        with_host = _with_host(models[0], stages, stage_of[0], proofs[0], options)
        stages, stage_of, proofs, host = with_host
    figures, totals = measure(
        graphs, stage_of, stages, options.cost, options.balance, options.times_ms, host
    )
    found = PipelinePlan(
        tuple(graphs),
        stage_of,
        stages,
        options,
        figures,
        totals,
        proofs,
        watch.seconds,
        None if host is None else host.stage,
    )
    check_plan(
        graphs,
        stage_of,
        totals,
        stages=stages,
        balance=options.balance,
        cache_bytes=options.cost.cache_bytes,
        runnable=names != ("greedy",),
        beside=found.beside,
    )
    return found


def _check_host(graphs: Sequence[PipelineGraph], names: tuple[str, ...], host: HostCost) -> None:
    """Raises InputError where the host cannot be part of a plan."""
    if len(graphs) != 1 or names != ("period",):
        raise InputError("the host takes a stage of one model, planned for the period")
    if host.times_ms is not None and len(host.times_ms) != len(graphs[0].ops):
        raise InputError(
            f"the host's times are of {len(host.times_ms)} operators, {graphs[0].name} has "
            f"{len(graphs[0].ops)}: measure this model"
        )


def _with_host(
    model: tuple[PipelineGraph, Rules],
    sticks: int,
    stage_of: StageOf,
    proof: Proof,
    options: Options,
) -> tuple[int, tuple[StageOf, ...], tuple[Proof, ...], HostStage | None]:
    """The best of the plan without the host (`stage_of`), and of those with the host at every place
    among at most `sticks` sticks. Exact where the model has few cuts, else over some of one order.

    A plan with the host is the exact optimum for its place and number of sticks (`lattice.py`).
    """
    graph, rules = model
    assert options.host is not None
    lattice, exact = some_cuts(graph, rules, options)
    best: tuple[float, int, StageOf, HostStage | None] = (proof.value, sticks, stage_of, None)
    stick = stick_side(lattice, proof.value)
    for used in reversed(range(sticks + 1)):
        for place in range(used + 1):
            host = HostStage(place, options.host)
            found = least_period_with_host(lattice, used + 1, host, stick, best[0])
            if found is None:
                continue
            _, totals = measure(
                [graph], [found], used + 1, options.cost, options.balance, options.times_ms, host
            )
            if totals.period_ms < best[0]:
                best = (totals.period_ms, used + 1, found, host)
    value, stages, chosen, at = best
    bound = value if exact else _least_share_ms(graph, sticks, options)
    return stages, (chosen,), (Proof("period", value, min(bound, value)),), at


def some_cuts(graph: PipelineGraph, rules: Rules, options: Options) -> tuple[Lattice, bool]:
    """All cuts of a model, and True; where they are many, some of one order, and False."""
    cuts = down_sets(rules)
    exact = cuts is not None and len(cuts) <= _MANY_CUTS
    if cuts is None or not exact:
        cuts = prefixes(graph, rules, depth_first_order(graph))
        cuts = (*cuts[: -1 : -(-len(cuts) // _MOST_CUTS_WITH_HOST)], cuts[-1])
    return Lattice(graph, rules, cuts, options.cost, options.balance, options.times_ms), exact


def _least_share_ms(graph: PipelineGraph, sticks: int, options: Options) -> float:
    """A bound: every operator at its quickest, evenly over all sticks and the host."""
    assert options.host is not None
    macs = [op.macs for op in graph.ops]
    stick = options.times_ms or [count / options.cost.macs_per_ms for count in macs]
    pairs = zip(stick, options.host.weights_ms(macs), strict=True)
    return sum(min(pair) for pair in pairs) / (sticks + 1)


def _greedy(graph: PipelineGraph, stages: int, options: Options) -> StageOf:
    sizes = [
        op.compiled_bytes if options.balance == "compiled" else graph.op_param_bytes(index)
        for index, op in enumerate(graph.ops)
    ]
    return greedy(graph, sizes, stages)


def _contiguous(
    graph: PipelineGraph, rules: Rules, stages: int, options: Options, objective: str = "params"
) -> StageOf:
    """The best cut into consecutive stages of the depth-first order; where none of that meets the
    rules, of one that has the operators of the first stage first and those of the last last."""

    def rank(index: int) -> tuple[bool, bool, int]:
        unit = rules.unit_of[index]
        return unit in rules.last, unit not in rules.first, unit

    for order in (depth_first_order(graph), sorted(range(len(graph.ops)), key=rank)):
        cuts = prefixes(graph, rules, order)
        lattice = Lattice(graph, rules, cuts, options.cost, options.balance, options.times_ms)
        found = solve_lattice(lattice, stages, (objective,))
        if found is not None:
            return found
    raise ResultError(
        f"{graph.name}: no contiguous cut into {stages} stages meets the runner's rules; "
        "use another objective"
    )


def _start(
    models: Sequence[tuple[PipelineGraph, Rules]],
    stages: int,
    names: tuple[str, ...],
    options: Options,
) -> tuple[tuple[StageOf, ...] | None, int | None, dict[str, int] | None]:
    """A plan to begin with; its largest stage where `params` need not pass it; known optima.

    By exhaustion over cuts where one model has few: the integer program then only holds that plan
    against the formulation; else contiguous, and the program proves.
    """
    best = _by_exhaustion(models, stages, names, options)
    try:
        found = best or tuple(_contiguous(*model, stages, options) for model in models)
    except ResultError:
        return None, None, None
    _, totals = measure([g for g, _ in models], found, stages, options.cost, options.balance)
    optima = {
        "params": totals.max_stage_bytes,
        "spill": totals.spill_bytes,
        "comm": totals.communication_bytes,
    }
    bounding = best is not None or names[0] == "params"
    return found, totals.max_stage_bytes if bounding else None, None if best is None else optima


def _by_exhaustion(
    models: Sequence[tuple[PipelineGraph, Rules]],
    stages: int,
    names: tuple[str, ...],
    options: Options,
) -> tuple[StageOf, ...] | None:
    """The best plan of one model with few cuts; None where there are many, or slack is given."""
    if len(models) != 1 or options.slack:
        return None
    graph, rules = models[0]
    cuts = down_sets(rules)
    if cuts is None:
        return None
    try:
        found = solve_lattice(
            Lattice(graph, rules, cuts, options.cost, options.balance), stages, names
        )
    except OverflowError:  # sums too large to be joined: the integer program does without
        return None
    return None if found is None else (found,)


def _exact(
    models: Sequence[tuple[PipelineGraph, Rules]],
    stages: int,
    names: tuple[str, ...],
    options: Options,
) -> tuple[tuple[StageOf, ...], tuple[Proof, ...]]:
    start, largest, optima = _start(models, stages, names, options)
    solution = formulation.solve(
        models,
        stages,
        names,
        options.cost,
        options.balance,
        slack=options.slack,
        start=start,
        start_params=largest,
        optima=optima,
        seconds=options.seconds,
    )
    if solution is None:
        raise _none_found(models, stages, options)
    proofs = tuple(Proof(s.objective, s.value, s.bound) for s in solution.steps)
    return solution.stage_of, proofs


def _none_found(
    models: Sequence[tuple[PipelineGraph, Rules]], stages: int, options: Options
) -> ResultError:
    names = ", ".join(graph.name for graph, _ in models)
    kept = " with the children of a fan-out together" if options.same_stage_children else ""
    return ResultError(
        f"{names}: no {stages} stages{kept} that meet the runner's rules were found with "
        f"{options.seconds:g} s' worth of work; ask for fewer stages or allow more --seconds"
    )


def _period(
    models: Sequence[tuple[PipelineGraph, Rules]], stages: int, options: Options
) -> tuple[tuple[StageOf, ...], tuple[Proof, ...]]:
    """The least period: by exhaustion over cuts where one model has few, else bounded, by CP-SAT
    or, for large models, by what cuts of each mass leave open.
    """
    if len(models) == 1:
        graph, rules = models[0]
        cuts = down_sets(rules)
        large = Large(graph, rules, options.cost, options.balance, options.times_ms)
        if cuts is not None:
            if len(cuts) > _MANY_CUTS:
                found = exact(large, cuts, stages)
            else:
                found = solve_lattice(_lattice(graph, rules, options), stages, ("period",))
            if found is None:
                raise _none_found(models, stages, options)
            value = _period_of(models, (found,), stages, options)
            return (found,), (Proof("period", value, value),)
        return _one_bounded(large, stages, options)
    return _bounded_period(models, stages, options)


def _one_bounded(
    model: Large, stages: int, options: Options
) -> tuple[tuple[StageOf, ...], tuple[Proof, ...]]:
    """One model with many cuts: the better of two plans and of two bounds where it is small."""
    models = [(model.graph, model.rules)]
    plans: list[tuple[StageOf, ...]] = []
    bounds = [0.0]
    found = bounded(model, stages)
    if found is not None:
        plans.append(found[:1])
        bounds.append(found[1])
    least = min((_period_of(models, s, stages, options) for s in plans), default=math.inf)
    proved = found is not None and Proof("period", least, found[1]).optimal
    if not proved and model.rules.units * stages <= _MOST_FOR_THE_PROGRAM:
        stage_of, proofs = _bounded_period(models, stages, options)
        plans.append(stage_of)
        bounds.append(proofs[0].bound)
    if not plans:
        raise _none_found(models, stages, options)
    best = min(plans, key=lambda s: _period_of(models, s, stages, options))
    value = _period_of(models, best, stages, options)
    return best, (Proof("period", value, min(max(bounds), value)),)


def _period_of(
    models: Sequence[tuple[PipelineGraph, Rules]],
    stage_of: Sequence[StageOf],
    stages: int,
    options: Options,
) -> float:
    graphs = [graph for graph, _ in models]
    _, totals = measure(graphs, stage_of, stages, options.cost, options.balance, options.times_ms)
    return totals.period_ms


def _bounded_period(
    models: Sequence[tuple[PipelineGraph, Rules]], stages: int, options: Options
) -> tuple[tuple[StageOf, ...], tuple[Proof, ...]]:
    """The least period over all combinations of cuts, where these are few enough; else the best of
    all candidates, improved: CP-SAT streams to the byte and so gives a bound."""
    lattices = [_lattice(graph, rules, options) for graph, rules in models]
    starts = _separate(models, lattices, stages, options)
    best = improve(lattices, starts[0], stages) if starts else None
    known = 0.0
    every = all(down_sets(rules) is not None for _, rules in models)
    if best is not None and every and len(models) > 1 and small_enough(lattices):
        work = Work(options.seconds / 2)
        joint = least_joint_period(lattices, stages, best, known, work)
        best, known = joint.stage_of, joint.bound_ms
        value = _period_of(models, best, stages, options)
        if Proof("period", value, known).optimal:
            return best, (Proof("period", value, min(known, value)),)
    solution = formulation.solve(
        models,
        stages,
        ("period",),
        options.cost,
        options.balance,
        start=best,
        seconds=options.seconds,
        times_ms=options.times_ms,
    )
    bound, others = 0.0, starts[1 :: 1 + len(starts) // _MOST_STARTS]
    if solution is not None:
        bound = solution.steps[0].bound / formulation.PICOSECONDS
        others.insert(0, solution.stage_of)
    for found in others:
        if best is not None and _period_of(models, best, stages, options) <= bound * (1 + _NEAR):
            break
        tried = improve(lattices, found, stages)
        best = min(best or tried, tried, key=lambda s: _period_of(models, s, stages, options))
    if best is None:
        raise _none_found(models, stages, options)
    best = refine(models, best, stages, lambda s: _period_of(models, s, stages, options))
    value = _period_of(models, best, stages, options)
    return best, (Proof("period", value, min(max(bound, known), value)),)


def _lattice(graph: PipelineGraph, rules: Rules, options: Options) -> Lattice:
    """All cuts of a model where they are few, else those of one order."""
    cuts = down_sets(rules) or prefixes(graph, rules, depth_first_order(graph))
    return Lattice(graph, rules, cuts, options.cost, options.balance, options.times_ms)


def _separate(
    models: Sequence[tuple[PipelineGraph, Rules]],
    lattices: Sequence[Lattice],
    stages: int,
    options: Options,
) -> list[tuple[StageOf, ...]]:
    """Plans of each model as if it were alone, and Google's where they can run, in every
    combination; the shortest period first."""
    choices: list[list[StageOf]] = []
    for (graph, rules), lattice in zip(models, lattices, strict=True):
        own = [solve_lattice(lattice, stages, (name,)) for name in ("period", "params")]
        for objective in ("period", "params"):
            try:
                own.append(_contiguous(graph, rules, stages, options, objective))
            except ResultError:
                continue
        given = _greedy(graph, stages, options)
        if not broken_rules(graph, given, stages):
            own.append(given)
        choices.append(list(dict.fromkeys(found for found in own if found is not None)))
    combined = islice(product(*choices), _MOST_COMBINATIONS)
    return sorted(combined, key=lambda found: _period_of(models, found, stages, options))
