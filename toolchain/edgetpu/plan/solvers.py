"""Which solver finds the stages of models on devices: a table, with what each row proves and why.

The rows of `SOLVERS` that apply are asked in their order, until one has proved its plan. The best
plan of those asked is kept, with the highest bound. Where models have rates of requests, both rows
of `RATE_SOLVERS` are asked. `docs/edgetpu-plans.md` shows the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from typing import Generic, TypeVar

from toolchain.edgetpu.model.figures import StageOf
from toolchain.edgetpu.model.rules import broken_rules
from toolchain.edgetpu.plan import chains, program
from toolchain.edgetpu.plan.bounds import bound_ms, order_of_least_open
from toolchain.edgetpu.plan.chains import best_chain
from toolchain.edgetpu.plan.cuts import (
    MANY_CUTS,
    Cuts,
    Model,
    cuts_in_order,
    cuts_of,
    depth_first_order,
    greedy,
    measured,
    period_ms,
)
from toolchain.edgetpu.plan.demand import Assigned, Assignment, Options, Proof
from toolchain.edgetpu.plan.devices import Score
from toolchain.edgetpu.plan.latency import Bounded, prove
from toolchain.edgetpu.plan.moves import polish, refine
from toolchain.edgetpu.plan.paths import Search, local_search
from toolchain.edgetpu.plan.several import improve, least_joint_period, small_enough
from toolchain.errors import ResultError
from toolchain.search import Work

_MOST_FOR_THE_PROGRAM = 600
"""Units times stages of one model."""
_MOST_COMBINATIONS = 256
_MOST_STARTS = 12
_NEAR = 1e-3
"""How near its bound a period of several models is no longer searched for."""
_SAME = 1e-12
_MOST_SECONDS = 2.0
"""Limit on moves of a large model's operators between neighbouring stages."""


@dataclass(frozen=True)
class Task:
    """Models for so many sticks. `names`: the objectives in order of priority."""

    models: tuple[Model, ...]
    stages: int
    names: tuple[str, ...]
    options: Options

    @property
    def lists(self) -> bool:
        """Whether `params`, `spill` or `comm` are asked for."""
        return self.names[0] not in ("greedy", "contiguous", "period")

    @property
    def alone(self) -> bool:
        """Whether one model is planned for the period."""
        return self.names == ("period",) and len(self.models) == 1

    @property
    def together(self) -> bool:
        """Whether several models are planned for the period."""
        return self.names == ("period",) and len(self.models) > 1

    @cached_property
    def _listed(self) -> tuple[tuple[Cuts, bool], ...]:
        return tuple(cuts_of(model) for model in self.models)

    @property
    def few_cuts(self) -> bool:
        """Whether all cuts of every model can be listed."""
        return all(whole for _, whole in self._listed)

    @property
    def cuts(self) -> tuple[Cuts, ...]:
        """All cuts of each model where they are few, else those of one order."""
        return tuple(cuts for cuts, _ in self._listed)

    @cached_property
    def starts(self) -> list[Assigned]:
        """Plans of each model as if it were alone, and Google's where they can run, in every
        combination; the shortest period first.
        """
        choices: list[list[StageOf]] = []
        for model, cuts in zip(self.models, self.cuts, strict=True):
            own = [best_chain(cuts, self.stages, (name,)) for name in ("period", "params")]
            own += [_contiguous(model, self.stages, name) for name in ("period", "params")]
            given = _greedy(model, self.stages)
            if not broken_rules(model.graph, given, self.stages):
                own.append(given)
            choices.append(list(dict.fromkeys(one for one in own if one is not None)))
        return sorted(islice(product(*choices), _MOST_COMBINATIONS), key=self.period_ms)

    def period_ms(self, stage_of: Assigned) -> float:
        return period_ms(self.models, stage_of, self.stages)

    def assignment(self, stage_of: Assigned, bound: float) -> Assignment:
        """A plan for the period with a lower bound."""
        value = self.period_ms(stage_of)
        return Assignment(stage_of, (Proof("period", value, min(bound, value)),))


def _greedy(model: Model, stages: int) -> StageOf:
    compiled = model.balance == "compiled"
    sizes = [
        op.compiled_bytes if compiled else model.graph.op_param_bytes(index)
        for index, op in enumerate(model.graph.ops)
    ]
    return greedy(model.graph, sizes, stages)


def _contiguous(model: Model, stages: int, objective: str = "params") -> StageOf | None:
    """The best cut into consecutive stages of the depth-first order; where none of that meets the
    rules, of one that has the operators of the first stage first and those of the last last.
    """
    rules = model.rules

    def rank(index: int) -> tuple[bool, bool, int]:
        unit = rules.unit_of[index]
        return unit in rules.last, unit not in rules.first, unit

    count = len(model.graph.ops)
    for order in (depth_first_order(model.graph), sorted(range(count), key=rank)):
        stage_of = best_chain(cuts_in_order(model, order), stages, (objective,))
        if stage_of is not None:
            return stage_of
    return None


def _by_google(task: Task, _: Assignment | None) -> Assignment:
    return Assignment(tuple(_greedy(model, task.stages) for model in task.models), ())


def _by_one_order(task: Task, _: Assignment | None) -> Assignment:
    assigned = []
    for model in task.models:
        own = _contiguous(model, task.stages)
        if own is None:
            raise ResultError(
                f"{model.graph.name}: no contiguous cut into {task.stages} stages meets the "
                "runner's rules; use another objective"
            )
        assigned.append(own)
    return Assignment(tuple(assigned), ())


def _by_objectives(task: Task, _: Assignment | None) -> Assignment | None:
    """A list of objectives, by the integer program. Where the plan comes from weighing all cuts of
    one model, the program only holds it against the formulation; else it begins with a contiguous
    plan, and proves.
    """
    best = _best_of_all_cuts(task)
    own = (_contiguous(model, task.stages) for model in task.models) if best is None else best
    start = tuple(one for one in own if one is not None)
    known, largest, optima = start if len(start) == len(task.models) else None, None, None
    if known is not None:
        totals = measured(task.models, known, task.stages)[1]
        if best is not None or task.names[0] == "params":
            largest = totals.max_stage_bytes
        if best is not None:
            optima = {
                "params": totals.max_stage_bytes,
                "spill": totals.spill_bytes,
                "comm": totals.communication_bytes,
            }
    return program.solve(
        task.models,
        task.stages,
        task.names,
        slack=task.options.slack,
        start=known,
        start_params=largest,
        optima=optima,
        seconds=task.options.seconds,
    )


def _best_of_all_cuts(task: Task) -> Assigned | None:
    """The best plan of one model with few cuts; None where there are many, or slack is given."""
    if len(task.models) != 1 or task.options.slack or not task.few_cuts:
        return None
    try:
        best = best_chain(task.cuts[0], task.stages, task.names)
    except OverflowError:  # sums too large to be joined: the integer program does without
        return None
    return None if best is None else (best,)


def _by_all_cuts(task: Task, _: Assignment | None) -> Assignment | None:
    best = best_chain(task.cuts[0], task.stages, ("period",))
    return None if best is None else task.assignment((best,), float("inf"))


def _by_listed_stages(task: Task, _: Assignment | None) -> Assignment | None:
    model, cuts = task.models[0], task.cuts[0]
    start = _least_share_ms(model, task.stages)
    for order in _orders(model):
        some = chains.quick_period(cuts_in_order(model, order), task.stages, start)
        if some is not None:
            start = some[1] * (1 + _SAME)
            break
    least = chains.least_period(cuts, task.stages, start)
    return None if least is None else task.assignment((cuts.stage_of(least[0]),), float("inf"))


def _least_share_ms(model: Model, stages: int) -> float:
    return model.cost.call_ms + sum(model.weights_ms) / stages


def _orders(model: Model) -> tuple[Sequence[int], ...]:
    return tuple(range(len(model.graph.ops))), depth_first_order(model.graph)


def _by_orders(task: Task, _: Assignment | None) -> Assignment | None:
    """The best of three orders, polished, with a bound of its own; the third order goes through the
    cuts that leave the fewest bytes open.
    """
    model, stages = task.models[0], task.stages
    best: StageOf | None = None
    period = _least_share_ms(model, stages)
    for given in (*_orders(model), None):
        order = order_of_least_open(model, period) if given is None else given
        some = cuts_in_order(model, order)
        least = chains.quick_period(some, stages, period)
        if least is None:
            continue
        if best is None or least[1] < period * (1 - _SAME):
            best, period, known = some.stage_of(least[0]), least[1], some
    if best is None:
        return None
    least = chains.least_period(known, stages, period * (1 + _SAME))
    if least is not None and least[1] < period * (1 - _SAME):
        best = known.stage_of(least[0])
    best = polish(model, best, stages, Work(_MOST_SECONDS))
    return task.assignment((best,), bound_ms(model, stages, task.period_ms((best,))))


def _in_turn(task: Task, _: Assignment | None) -> Assignment | None:
    if not task.starts:
        return None
    return task.assignment(improve(task.cuts, task.starts[0], task.stages), 0.0)


def _by_combinations(task: Task, known: Assignment | None) -> Assignment | None:
    if known is None:
        return None
    work = Work(task.options.seconds / 2)
    return least_joint_period(task.cuts, task.stages, known.stage_of, work)


def _by_program(task: Task, known: Assignment | None) -> Assignment | None:
    """CP-SAT streams to the byte and so gives a bound; its plan and other starts are improved."""
    start = known if task.together else _in_turn(task, None)
    best = None if start is None else start.stage_of
    solution = program.solve(
        task.models, task.stages, ("period",), start=best, seconds=task.options.seconds
    )
    bound, others = 0.0, task.starts[1 :: 1 + len(task.starts) // _MOST_STARTS]
    if solution is not None:
        bound = solution.proofs[0].bound
        others.insert(0, solution.stage_of)
    for other in others:
        if best is not None and task.period_ms(best) <= bound * (1 + _NEAR):
            break
        tried = improve(task.cuts, other, task.stages)
        best = min(best or tried, tried, key=task.period_ms)
    if best is None:
        return None
    return task.assignment(refine(task.models, best, task.stages), bound)


@dataclass(frozen=True)
class RateTask:
    """Models with rates on their devices. `most_nodes`: that are weighed for a proof."""

    search: Search
    most_nodes: int


Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Solver(Generic[Asked, Answer]):
    """A row: when it is asked, what it proves, and why it is the choice there.

    `solve` takes what is asked and the best answer of the rows before.
    """

    name: str
    when: str
    proves: str
    why: str
    applies: Callable[[Asked], bool]
    solve: Callable[[Asked, Answer | None], Answer | None]


SOLVERS: tuple[Solver[Task, Assignment], ...] = (
    Solver(
        "Google's cut",
        "`greedy`",
        "nothing",
        "a baseline: what Edge TPU Compiler does with `--num_segments`",
        lambda task: task.names == ("greedy",),
        _by_google,
    ),
    Solver(
        "one order",
        "`contiguous`",
        "nothing",
        "a baseline: the best cut of the depth-first order",
        lambda task: task.names == ("contiguous",),
        _by_one_order,
    ),
    Solver(
        "objectives",
        "a list of `params`, `spill`, `comm`",
        "each objective, within the work limit",
        "the integer program has slack, several models and any number of cuts",
        lambda task: task.lists,
        _by_objectives,
    ),
    Solver(
        "all cuts",
        f"`period`, one model of at most {MANY_CUTS:,} cuts",
        "the optimum",
        "every pair of cuts fits one matrix",
        lambda task: task.alone and task.few_cuts and len(task.cuts[0]) <= MANY_CUTS,
        _by_all_cuts,
    ),
    Solver(
        "listed stages",
        "`period`, one model whose cuts can be listed",
        "the optimum",
        "only stages that fit a period known to be reachable are listed, out of millions",
        lambda task: task.alone and task.few_cuts and len(task.cuts[0]) > MANY_CUTS,
        _by_listed_stages,
    ),
    Solver(
        "three orders",
        "`period`, one model of more cuts",
        "a bound",
        "cuts of an order are listed in seconds for thousands of operators",
        lambda task: task.alone and not task.few_cuts,
        _by_orders,
    ),
    Solver(
        "in turn",
        "`period`, several models",
        "nothing",
        "a good plan in little time, from which the next rows begin",
        lambda task: task.together,
        _in_turn,
    ),
    Solver(
        "combinations",
        "`period`, several models, whose combinations of cuts can be listed",
        "the optimum, within the work limit",
        "exact where a layer is cached whole, which the integer program is not",
        lambda task: task.together and task.few_cuts and small_enough(task.cuts),
        _by_combinations,
    ),
    Solver(
        "integer program",
        "`period`, several models, or a small one of more cuts: at most "
        f"{_MOST_FOR_THE_PROGRAM} units times stages",
        "a bound, with parameters that stream to the byte",
        "the better bound for small models with many cuts; for large ones it finds none in time",
        lambda task: (
            task.together
            or (
                task.alone
                and not task.few_cuts
                and task.models[0].rules.units * task.stages <= _MOST_FOR_THE_PROGRAM
            )
        ),
        _by_program,
    ),
)


RATE_SOLVERS: tuple[Solver[RateTask, Bounded], ...] = (
    Solver(
        "local search",
        "`mean` or `worst`, with rates of requests",
        "nothing",
        "models in turn on the quickest path that others leave, then small moves: a second",
        lambda task: True,
        lambda task, _: Bounded(local_search(task.search), Score(0.0, 0.0, 0.0), 0),
    ),
    Solver(
        "branch and bound",
        "`mean` or `worst`, with rates of requests",
        "the optimum under the queueing model, within the work limit",
        "latency is no sum over stages, so a shortest chain of cuts does not exist",
        lambda task: True,
        lambda task, known: known and prove(task.search, known.plan, task.most_nodes),
    ),
)


def routed(task: RateTask) -> Bounded:
    """The paths of the least latency, as far as the rows of `RATE_SOLVERS` find and prove it."""
    bounded: Bounded | None = None
    for solver in RATE_SOLVERS:
        if solver.applies(task):
            bounded = solver.solve(task, bounded)
    assert bounded is not None
    return bounded


def solved(task: Task) -> Assignment:
    """The best plan of the rows of `SOLVERS` that apply. Raises ResultError where there is none."""
    best: Assignment | None = None
    for solver in SOLVERS:
        if not solver.applies(task):
            continue
        best = _better(best, solver.solve(task, best))
        if best is not None and best.proved_optimal:
            break
    if best is None:
        raise _none_found(task)
    return best


def _better(one: Assignment | None, other: Assignment | None) -> Assignment | None:
    """The plan of the shorter period, with the higher of the two bounds."""
    if one is None or other is None:
        return one or other
    (ours,), (theirs,) = one.proofs, other.proofs
    value = min(ours.value, theirs.value)
    proof = Proof("period", value, min(max(ours.bound, theirs.bound), value))
    return Assignment((other if theirs.value < ours.value else one).stage_of, (proof,))


def _none_found(task: Task) -> ResultError:
    names = ", ".join(model.graph.name for model in task.models)
    together = task.options.same_stage_children
    kept = " with the children of a fan-out together" if together else ""
    return ResultError(
        f"{names}: no {task.stages} stages{kept} that meet the runner's rules were found with "
        f"{task.options.seconds:g} s' worth of work; ask for fewer stages or allow more --seconds"
    )
