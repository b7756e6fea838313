"""The levels `read` and `plan`: a file through its front end and the passes, then planned."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.fuzz.cases import Case, case
from benchmarks.fuzz.outcome import ACCEPTED, PLANNED, Outcome, of_error, refused, time_limit
from benchmarks.fuzz.pool import Serve
from toolchain import passes
from toolchain.boards import board
from toolchain.errors import DoesNotFitError
from toolchain.frontends import front_end_of
from toolchain.ir.arena import ArenaPart
from toolchain.memory.firmware_size import check_fit, estimated_need
from toolchain.memory.plan import Plan
from toolchain.passes import Prepared
from toolchain.passes.refuse_float import refuse_float
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.report.latency import predict_latency

READ_SECONDS = 20.0
PLAN_SECONDS = 120.0
_BOARDS = ("host", "netduinoplus2", "mps3-an547")
_WHOLE_SHARE, _SPLIT_SHARE = 0.1, 0.06
_SLOWDOWN, _SPLIT_SECONDS = 2.0, 0.2
_TRIAL_SECONDS = 1.0


def prepared_file(data: bytes, suffix: str) -> Prepared:
    """The graph that is ready to compile. Raises as `plan_model`."""
    path = Path("case" + suffix)
    found = passes.prepare(front_end_of(path, data).read(data, path))
    refuse_float(found.graph, allowed=True)
    return found


def read_outcome(found: Case) -> tuple[Outcome, Prepared | None]:
    try:
        with time_limit(READ_SECONDS):
            made = prepared_file(found.data, found.suffix)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return of_error(found.number, error), None
    return Outcome(found.number, ACCEPTED, found.start.split("/")[0]), made


def planned(found: Prepared, name: str, options: PlanOptions) -> Plan:
    """The plan and what is told of it. Raises as `plan_graph`; AssertionError for a wrong plan."""
    plan = plan_graph(found.graph, board(name), options, found.boundaries)
    check_plan(plan)
    predict_latency(plan)
    estimated_need(plan)
    with contextlib.suppress(DoesNotFitError):
        check_fit(plan)
    return plan


def check_plan(plan: Plan) -> None:
    """Raise AssertionError unless the order is possible and all lies in the arena.

    Beside the checkers that every plan has passed (`check_order`, `check_placement`), and from the
    graph alone. That no value is overwritten too early is for the level that runs the C.
    """
    graph, arena = plan.graph, plan.arena
    whole = ArenaPart("", 0, arena.size_bytes)

    def held(offset: int, size: int) -> bool:
        """Within one part, of an arena that lies in several banks."""
        ends = [(part.start_bytes, part.size_bytes) for part in arena.parts or (whole,)]
        return any(start <= offset <= start + length - size for start, length in ends)

    assert sorted(plan.schedule.order) == list(range(len(graph.ops))), "the order is none"
    known = {*graph.sources, *(t.name for t in graph.tensors.values() if t.is_constant)}
    for index in plan.schedule.order:
        op = graph.ops[index]
        assert known.issuperset(op.present_inputs()), f"{op.name} runs too early"
        known.update(op.outputs)
        for name in (*op.present_inputs(), *op.outputs):
            tensor = graph.tensors[name]
            if tensor.is_constant:
                continue
            offset, pitch = arena.offsets[name], arena.pitches.get(name)
            lines = tensor.shape[1] if pitch else 1
            size = (lines - 1) * (pitch or 0) + tensor.size_bytes // lines
            assert held(offset, size), f"{name} lies outside the arena"
            assert offset % min(tensor.dtype.size_bytes, 8) == 0, f"{name} is not aligned"
    for op_name, offset in arena.scratch_offsets.items():
        scratch = next(op.scratch_bytes for op in plan.operators if op.name == op_name)
        assert held(offset, scratch), f"{op_name}: scratch outside the arena"


def plan_options(seed: int, found: Case) -> tuple[str, PlanOptions]:
    """A board and how to plan: mostly quick ways, sometimes split, sometimes all that a user
    gets. A file of invented names is rewritten, and split half of the time."""
    rng = random.Random(f"plan {seed} {found.number}")
    drawn, name = rng.random(), rng.choice(_BOARDS)
    if drawn < _WHOLE_SHARE:
        return name, PlanOptions(time_limit_seconds=_TRIAL_SECONDS, allow_float=True)
    is_split = drawn < (0.5 if found.names else _WHOLE_SHARE + _SPLIT_SHARE)
    return name, PlanOptions(
        scheduler="rpo",
        allocator="greedy-size",
        time_limit_seconds=_TRIAL_SECONDS,
        rewrite=found.names,
        allow_float=True,
        max_slowdown=_SLOWDOWN if is_split else None,
        split_seconds=_SPLIT_SECONDS if is_split else None,
    )


def reader(seed: int) -> Serve:
    """The level `read`."""

    def serve(numbers: Sequence[int], begun: Callable[[int], None]) -> Iterator[Outcome]:
        for number in numbers:
            begun(number)
            yield read_outcome(case(seed, number))[0]

    return serve


def planner(seed: int) -> Serve:
    """The level `plan`: of what is accepted."""

    def serve(numbers: Sequence[int], begun: Callable[[int], None]) -> Iterator[Outcome]:
        for number in numbers:
            begun(number)
            yield outcome_of_plan(case(seed, number), seed)

    return serve


def outcome_of_plan(found: Case, seed: int = 0) -> Outcome:
    """Of one file."""
    outcome, prepared = read_outcome(found)
    return outcome if prepared is None else _plan_outcome(seed, found, prepared)


def _plan_outcome(seed: int, found: Case, prepared: Prepared) -> Outcome:
    number, (name, options) = found.number, plan_options(seed, found)
    try:
        with time_limit(PLAN_SECONDS):
            plan = planned(prepared, name, options)
    except DoesNotFitError as error:
        return refused(number, error)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return of_error(number, error)
    return Outcome(number, PLANNED, plan.schedule.method.split(",")[0])
