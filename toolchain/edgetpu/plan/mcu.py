"""A microcontroller as the first or the last stage of a pipeline, behind a slow link.

Its stage takes the inference that a model of its time predicts, and what every byte to and from it
takes on the link. RAM and flash limit which stages it can have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from toolchain.edgetpu.model.figures import HostStage, McuStage, StageOf, measure
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.model.rules import check_plan, rules_of
from toolchain.edgetpu.plan import demand as objectives
from toolchain.edgetpu.plan.lattice import (
    FAR,
    Lattice,
    Side,
    host_side,
    least_of_sides,
    stick_side,
)
from toolchain.edgetpu.plan.planner import Options, PipelinePlan, Proof, plan, some_cuts
from toolchain.errors import InputError, ResultError
from toolchain.search import Stopwatch

PLACES = ("first", "last")
_MOST_MS = 1e12


@dataclass(frozen=True)
class Mcu:
    """A board and its link.

    `weigh`: the milliseconds of an inference of some operators, which are the first or the last of
    the model; infinite where the board cannot have them. `place`: one of `PLACES` where the board
    must have that stage; None where it may have either, or none.
    """

    board: str
    link_bytes_per_ms: float
    weigh: Callable[[tuple[int, ...]], float]
    place: str | None = None


def plan_with_mcu(graph: PipelineGraph, sticks: int, options: Options, mcu: Mcu) -> PipelinePlan:
    """The least period of at most `sticks` sticks, the microcontroller, and `options.host`.

    Exact where the model has few cuts, as with the host. Raises InputError for what cannot be
    planned so, ResultError where the board can have no stage and must.
    """
    if objectives.parse(options.objective) != ("period",):
        raise InputError("a microcontroller takes a stage of a plan for the period")
    watch = Stopwatch()
    rules = rules_of(graph, options.same_stage_children)
    lattice, exact = some_cuts(graph, rules, options)
    known = None if mcu.place else _without(graph, sticks, options)
    limit = _MOST_MS if known is None else known.totals.period_ms
    best: tuple[float, int, StageOf, McuStage, HostStage | None] | None = None
    stick = stick_side(lattice, limit)
    host = None if options.host is None else host_side(lattice, options.host, limit)
    for place in (mcu.place,) if mcu.place else PLACES:
        own, times = _mcu_side(lattice, mcu, place == "first", limit)
        for used in reversed(range(sticks + 1)):
            for at, sides, on_host in _arrangements(used, own, stick, host, place == "first"):
                found = least_of_sides(lattice, sides, limit)
                if found is None:
                    continue
                stages = len(sides)
                operators = tuple(i for i, stage in enumerate(found) if stage == at)
                stage = McuStage(at, times[operators], mcu.link_bytes_per_ms)
                beside = None
                if on_host is not None and options.host is not None:
                    beside = HostStage(on_host, options.host)
                _, totals = measure(
                    [graph], [found], stages, options.cost, options.balance, options.times_ms,
                    beside, stage,
                )  # fmt: skip
                if totals.period_ms < limit:
                    limit = totals.period_ms
                    best = (limit, stages, found, stage, beside)
    if best is None:
        if known is not None:
            return replace(known, seconds=watch.seconds)
        raise ResultError(
            f"{graph.name}: {mcu.board} cannot have the {mcu.place} stage of a pipeline: no cut "
            "leaves it operators that fit its RAM and flash; take another board, or drop the option"
        )
    value, stages, stage_of, stage, beside = best
    return _checked(
        graph, options, watch, mcu, value if exact else 0.0, stages, stage_of, stage, beside
    )


def _without(graph: PipelineGraph, sticks: int, options: Options) -> PipelinePlan | None:
    """The plan without the board; None where the model cannot have so many stages."""
    try:
        return plan([graph], sticks, options) if sticks else None
    except (InputError, ResultError):
        return None


def _checked(
    graph: PipelineGraph,
    options: Options,
    watch: Stopwatch,
    mcu: Mcu,
    bound: float,
    stages: int,
    stage_of: StageOf,
    stage: McuStage,
    beside: HostStage | None,
) -> PipelinePlan:
    figures, totals = measure(
        [graph], [stage_of], stages, options.cost, options.balance, options.times_ms, beside, stage
    )
    found = PipelinePlan(
        (graph,),
        (stage_of,),
        stages,
        options,
        figures,
        totals,
        (Proof("period", totals.period_ms, bound),),
        watch.seconds,
        None if beside is None else beside.stage,
        stage.stage,
        mcu.board,
    )
    check_plan(
        [graph],
        [stage_of],
        totals,
        stages=stages,
        balance=options.balance,
        cache_bytes=options.cost.cache_bytes,
        beside=found.beside,
    )
    return found


def _arrangements(
    used: int, own: Side, stick: Side, host: Side | None, first: bool
) -> Iterator[tuple[int, Sequence[Side], int | None]]:
    """Place of the microcontroller, what each stage is on, and the place of the host, if any."""
    others: list[tuple[list[Side], int | None]] = [([stick] * used, None)]
    if host is not None:
        for place in range(used + 1):
            others.append(([stick] * place + [host] + [stick] * (used - place), place))
    for sides, on_host in others:
        if first:
            yield 0, [own, *sides], None if on_host is None else on_host + 1
        else:
            yield len(sides), [*sides, own], on_host


def _mcu_side(
    lattice: Lattice, mcu: Mcu, first: bool, limit: float
) -> tuple[Side, dict[tuple[int, ...], float]]:
    """The stages at one end of the model, on the board: times, and the inference of each.

    Where some operators do not fit or take too long, more do not either, and are not weighed.
    """
    last = len(lattice.cuts) - 1
    time_ms = np.full((last + 1, last + 1), np.inf)
    streamed = np.full((last + 1, last + 1), FAR)
    moved = lattice.incoming[1] + lattice.outgoing
    times: dict[tuple[int, ...], float] = {}
    too_much: list[frozenset[int]] = []
    ends = range(1, last + 1) if first else range(last - 1, -1, -1)
    for cut in ends:
        begin, end = (0, cut) if first else (cut, last)
        if not lattice.valid[begin, end]:
            continue
        inside = lattice.member[end] & ~lattice.member[begin]
        operators = tuple(int(index) for index in np.flatnonzero(inside))
        if any(some <= set(operators) for some in too_much):
            continue
        taken = mcu.weigh(operators)
        if taken > limit:
            too_much.append(frozenset(operators))
            continue
        whole = McuStage(0, taken, mcu.link_bytes_per_ms).stage_ms(int(moved[begin, end]))
        if whole < inf:
            times[operators] = taken
            time_ms[begin, end], streamed[begin, end] = whole, 0
    return (time_ms, streamed), times
