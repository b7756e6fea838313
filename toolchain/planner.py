"""The path from a model file to a plan: the one place that joins the rooms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from toolchain import arena, partition, passes, schedule
from toolchain.boards import Board, Content, Core
from toolchain.boards import board as find_board
from toolchain.codegen.bounds import check_call, check_moves
from toolchain.codegen.views import moves
from toolchain.cost import Cost, CostModel
from toolchain.cost.analytic import AnalyticCostModel
from toolchain.cost.key import Key, copies_key, operator_key
from toolchain.errors import DoesNotFitError
from toolchain.frontends import load_model
from toolchain.ir import ArenaPlan, Graph, MemoryProblem, Op, Schedule
from toolchain.ir.arena import arena_plan
from toolchain.ir.boundary import Boundary
from toolchain.ir.memory import footprint, peak_bytes
from toolchain.ir.plan import Plan, PlannedOp
from toolchain.memory import arrangement, banks
from toolchain.memory.bank_layout import Layout
from toolchain.memory.firmware_size import (
    code_estimate_bytes,
    firmware_data_bytes,
    firmware_layout,
    weight_bytes,
)
from toolchain.memory.problem import memory_problem, memory_problems
from toolchain.memory.views import View, optional_views
from toolchain.ops import kernel_of, spec_of
from toolchain.ops.check import check
from toolchain.partition import splitters
from toolchain.passes.identity_rewriting import lowest_peak
from toolchain.passes.refuse_float import refuse_float
from toolchain.progress import Report, silent
from toolchain.report.front import FrontRow, Split
from toolchain.report.plan import MemoryNeed

DEFAULT_BOARD = "netduinoplus2"
REWRITE_TRIAL_SECONDS = 2.0
"""Most time to order a graph while rewrites are compared."""


@dataclass(frozen=True)
class PlanOptions:
    """How to plan. `time_limit_seconds` bounds the scheduler and the allocator, each.

    `rewrite`: partition concatenations where that lowers the peak; convolutions that sum in parts
    take about three times the instructions.
    `ram_bytes`: split operators, where that is needed, until arena, data and stack fit into so
    much RAM, at the least cost. `max_slowdown`: split them for the smallest arena that costs no
    more than this fraction of the latency. `splitter` searches for that, for at most
    `split_seconds` of the processor.
    `allow_float`: also models that compute in float32; without it islands of float alone.
    `one_bank`: keep the arena in one piece, even where it then lies in a slow bank or in none.
    """

    scheduler: str = schedule.DEFAULT
    allocator: str = arena.DEFAULT
    time_limit_seconds: float | None = None
    rewrite: bool = True
    ram_bytes: int | None = None
    max_slowdown: float | None = None
    splitter: str = splitters.DEFAULT
    split_seconds: float = partition.DEFAULT_SECONDS
    one_bank: bool = False
    allow_float: bool = False

    @property
    def splits(self) -> bool:
        return self.ram_bytes is not None or self.max_slowdown is not None


@dataclass(frozen=True)
class Latency:
    """Predicted cost of one inference: `counts` per graph operator, in `unit`."""

    counts: tuple[int, ...]
    unit: str
    measured_share: float

    @property
    def total(self) -> int:
        return sum(self.counts)


def plan_model(
    model: str | Path,
    board: str = DEFAULT_BOARD,
    options: PlanOptions | None = None,
    report: Report = silent,
    costs: CostModel | None = None,
) -> Plan:
    """Read a model file and plan it for a board. `costs` (estimates): what splitting is weighed by.

    Raises InputError (and UnsupportedError) for a model that cannot be read or compiled. Whether
    the plan fits is another question: `check_fit`.
    """
    report(f"reading {model}")
    prepared = passes.prepare(load_model(model))
    refuse_float(prepared.graph, allowed=options is not None and options.allow_float)
    return plan_graph(
        prepared.graph, find_board(board), options, prepared.boundaries, report, costs
    )


def plan_graph(
    graph: Graph,
    target: Board,
    options: PlanOptions | None = None,
    boundaries: tuple[Boundary, ...] = (),
    report: Report = silent,
    costs: CostModel | None = None,
) -> Plan:
    """Order and place a graph that is ready to compile, its operators split if `options` say so.

    All answers pass their checkers. Raises DoesNotFitError where no way of splitting that was found
    meets `options.ram_bytes`; it says how much RAM is needed.
    """
    options = options or PlanOptions()
    if options.rewrite:
        graph = rewrite_identities(graph, target.core, options)
    problem = choose_views(graph, target.core)
    report("ordering operators")
    found = schedule.scheduler(options.scheduler).schedule(problem, options.time_limit_seconds)
    plan = replace(_placed(graph, target, problem, found, options, report), boundaries=boundaries)
    if options.splits and not _fits(plan, options):
        whole, plan = plan, _split(plan, options, report, costs)
        if plan.graph is not whole.graph:
            problem = memory_problem(plan.graph, target.core, progressive=True)
    return _over_banks(plan, target, problem, options, report)


def _over_banks(
    plan: Plan, target: Board, problem: MemoryProblem, options: PlanOptions, report: Report
) -> Plan:
    """The plan with its arena spread over banks, where none holds all of it, or a slow one does.

    Not where --ram is met only in one piece.
    """
    if target.is_host or options.one_bank:
        return plan
    try:
        if not banks.faster_bank(target, firmware_layout(target, [plan])):
            return plan
    except DoesNotFitError:
        pass
    report("placing tensors in banks")
    views = len(plan.operators) - plan.calls
    spread = banks.over_banks(
        plan.graph,
        problem,
        plan.schedule.order,
        frozenset(op.name for op in plan.operators if op.is_view),
        target,
        banks.Needs(
            code_estimate_bytes(plan), weight_bytes(plan), firmware_data_bytes(plan) + 4 * views
        ),
        arena.allocator(options.allocator),
        options.time_limit_seconds,
    )
    if spread is None:
        return plan
    made = replace(plan, arena=spread, operators=_planned_ops(plan.graph, target, problem, spread))
    return plan if _fits(plan, options) and not _fits(made, options) else made


def _placed(
    graph: Graph,
    target: Board,
    problem: MemoryProblem,
    found: Schedule,
    options: PlanOptions,
    report: Report,
) -> Plan:
    report("placing tensors")
    allocator = arena.allocator(options.allocator)
    made = arrangement.place(problem, found, allocator, options.time_limit_seconds)
    unsplit = not (options.splits or problem.accesses)
    if options.allocator == arena.DEFAULT and unsplit:
        made = arrangement.compact(problem, made, allocator)
    found = made.schedule
    placed = arena_plan(problem, found.order, made.placement, made.blocks)
    return Plan(
        graph=graph,
        board=target.name,
        core=target.core.name,
        schedule=found,
        arena=placed,
        operators=_planned_ops(graph, target, problem, placed),
        step_bytes=footprint(problem, found.order),
    )


def rewrite_identities(graph: Graph, core: Core, options: PlanOptions) -> Graph:
    """Partition concatenations (SERENITY, 3.3) where that lowers the peak; every byte stays."""
    method = schedule.scheduler(options.scheduler)

    def peak(candidate: Graph) -> int:
        return method.schedule(choose_views(candidate, core), REWRITE_TRIAL_SECONDS).peak_bytes

    return lowest_peak(graph, peak)


def ram_bytes(plan: Plan) -> int:
    """Estimated RAM of the firmware: arena, data and stack."""
    return plan.arena.size_bytes + firmware_data_bytes(plan)


def _fits(plan: Plan, options: PlanOptions) -> bool:
    """Whether nothing more is asked of a plan than it has."""
    return options.ram_bytes is not None and ram_bytes(plan) <= options.ram_bytes


def split_front(
    plan: Plan,
    options: PlanOptions | None = None,
    costs: CostModel | None = None,
    report: Report = silent,
) -> partition.Front:
    """Ways to split the operators of an unsplit plan: peak against predicted slowdown."""
    options = options or PlanOptions()
    target = find_board(plan.board)
    needed = firmware_data_bytes(plan)
    graph = partition.single_outputs(plan.graph, plan.schedule.order)
    task = partition.Task(
        graph,
        memory_problem(graph, target.core),
        tuple(range(len(graph.ops))),
        target.core,
        costs or AnalyticCostModel(),
        options.max_slowdown,
        None if options.ram_bytes is None else options.ram_bytes - needed,
    )
    watch = partition.Watch(options.split_seconds, report)
    return splitters.splitter(options.splitter).front(task, watch)


def front_rows(front: partition.Front) -> tuple[FrontRow, ...]:
    """The front as reports show it."""
    return tuple(
        FrontRow(
            point.peak_bytes,
            front.slowdown(point),
            tuple(Split(s.ops, s.count, s.mode.value) for s in point.schemes),
        )
        for point in front.points
    )


def split_plan(
    plan: Plan, front: partition.Front, point: partition.Point, options: PlanOptions | None = None
) -> Plan:
    """The plan of one point of the front of an unsplit plan."""
    if not point.schemes:
        return plan
    options, target = options or PlanOptions(), find_board(plan.board)
    ordered = partition.single_outputs(plan.graph, plan.schedule.order)
    graph = check(partition.split_all(ordered, point.schemes))
    problem = memory_problem(graph, target.core, progressive=True)
    found = schedule.scheduler("rpo").schedule(problem)
    given = tuple(range(len(graph.ops)))
    peak = peak_bytes(problem, given)
    if peak <= found.peak_bytes:
        found = replace(
            found, order=given, method=f"{plan.schedule.method}, split", peak_bytes=peak
        )
    made = _placed(graph, target, problem, found, options, silent)
    return replace(
        made,
        boundaries=plan.boundaries,
        slowdown=front.slowdown(point),
        search_stopped=front.stopped,
    )


def _split(plan: Plan, options: PlanOptions, report: Report, costs: CostModel | None) -> Plan:
    """The plan that `options` ask for, among the points of the front."""
    front = split_front(plan, options, costs, report)
    most, best = options.max_slowdown, replace(plan, search_stopped=front.stopped)
    if options.ram_bytes is None:
        for made in _plans(plan, front, partition.SmallestArena(front, most), options, report):
            if made.arena.size_bytes < best.arena.size_bytes:
                best = made
        return best
    allowed = options.ram_bytes - firmware_data_bytes(plan)
    choice = partition.LeastSlowdown(front, allowed, most)
    for made in _plans(plan, front, choice, options, report):
        if _fits(made, options) or ram_bytes(made) < ram_bytes(best):
            best = made
    if _fits(best, options):
        return best
    slower = "" if most is None else f" at a slowdown of at most {most:.1%}"
    stopped = f" until the search was stopped {front.stopped}" if front.stopped else ""
    raise DoesNotFitError(
        f"{plan.graph.name} does not fit {options.ram_bytes:,} bytes of RAM on {plan.board}"
        f"{slower}: the least that was found{stopped} is {ram_bytes(best):,} bytes "
        f"(arena {best.arena.size_bytes:,}, slowdown {best.slowdown:.1%}).\n"
        f"What could help: --ram {-(-ram_bytes(best) // 1024)}K, "
        "a smaller input, another --scheduler."
    )


def _plans(
    plan: Plan,
    front: partition.Front,
    choice: partition.Choice,
    options: PlanOptions,
    report: Report,
) -> Iterator[Plan]:
    """The plans of the points that are chosen, in turn. Ctrl-C ends them, unless one ended the
    search already."""
    done = 0
    while (point := choice.next()) is not None:
        most = choice.most
        report(f"placing tensors of way {done + 1} of at most {most} to split", done, most)
        try:
            made = split_plan(plan, front, point, options)
        except KeyboardInterrupt:
            if front.stopped == partition.CTRL_C or not done:
                raise
            return
        done += 1
        choice.learn(point, made.arena.size_bytes)
        yield made


def choose_views(graph: Graph, core: Core) -> MemoryProblem:
    """Lay all views in place, but let those copy that cost more memory than they save.

    A view of a part keeps the whole buffer alive: a small skip connection that is laid in a big
    concat holds its room from the start. Each is tried in turn, in one cheap order.
    """
    problem_of = memory_problems(graph, core)

    def peak(problem: MemoryProblem) -> int:
        return peak_bytes(problem, schedule.scheduler("rpo").schedule(problem, None).order)

    copying: frozenset[View] = frozenset()
    problem = problem_of(copying)
    for view in optional_views(graph):
        other = problem_of(copying | {view})
        if peak(other) < peak(problem):
            problem, copying = other, copying | {view}
    return problem


def _planned_ops(
    graph: Graph, target: Board, problem: MemoryProblem, placed: ArenaPlan
) -> tuple[PlannedOp, ...]:
    return tuple(
        _planned_op(op, scratch, graph, target.core, placed)
        for op, scratch in zip(graph.ops, problem.scratch_bytes, strict=True)
    )


def _planned_op(
    op: Op, scratch_bytes: int, graph: Graph, core: Core, placed: ArenaPlan
) -> PlannedOp:
    """Raises UnsupportedError where its kernel would touch bytes beyond its operands."""
    spec, wanted = spec_of(op.kind), moves(op, graph, placed)
    kernel = kernel_of(op, graph, core)
    if wanted is None:
        check_call(op, graph, kernel, placed.pitches, core)
    else:
        check_moves(op, graph, wanted)
    return PlannedOp(
        name=op.name,
        kind=op.kind,
        macs=spec.macs(op, graph),
        scratch_bytes=scratch_bytes,
        functions=kernel.functions,
        is_view=wanted == (),
    )


def predict_latency(plan: Plan, model: CostModel | None = None) -> Latency:
    """What one inference costs on the plan's board, operator by operator."""
    costs_from = model or AnalyticCostModel()
    core = find_board(plan.board).core
    costs = [_cost(op, plan, costs_from, core) for op in plan.graph.ops]
    total = sum(cost.count for cost in costs)
    measured = sum(cost.count for cost in costs if cost.measured)
    return Latency(
        counts=tuple(cost.count for cost in costs),
        unit=costs_from.unit,
        measured_share=measured / total if total else 0.0,
    )


def _cost(op: Op, plan: Plan, costs_from: CostModel, core: Core) -> Cost:
    """What lies in place costs nothing; what only copies costs copies."""
    wanted = moves(op, plan.graph, plan.arena)
    if wanted is None:
        return costs_from.cost(op, plan.graph, core)
    if not wanted:
        return Cost(0, measured=True)
    return costs_from.copies([move.size_bytes for move in wanted], core)


def kernel_keys(plan: Plan) -> tuple[Key | None, ...]:
    """Under what each operator of the graph is measured; None for one that emits no code."""
    core = find_board(plan.board).core
    keys: list[Key | None] = []
    for op in plan.graph.ops:
        wanted = moves(op, plan.graph, plan.arena)
        if wanted is None:
            keys.append(operator_key(op, plan.graph, core))
        else:
            keys.append(copies_key([move.size_bytes for move in wanted]) if wanted else None)
    return tuple(keys)


def estimated_need(plan: Plan) -> MemoryNeed:
    """RAM and flash of the firmware before it is linked."""
    code = code_estimate_bytes(plan)
    return MemoryNeed(
        ram_bytes=plan.arena.size_bytes + firmware_data_bytes(plan),
        flash_bytes=code + weight_bytes(plan),
        code_bytes=code,
        estimated=True,
    )


def check_fit(plan: Plan) -> Layout | None:
    """The banks that hold each part of the firmware; None on the host, which has no limit.

    Before compiling the code's size is an estimate. Raises DoesNotFitError: by how much, which
    step holds the peak, what could help.
    """
    target = find_board(plan.board)
    if target.is_host:
        return None
    try:
        return firmware_layout(target, [plan])
    except DoesNotFitError as error:
        step = plan.peak_step
        lines = [f"{plan.graph.name} does not fit {plan.board}: {error}"]
        if plan.schedule.order:
            op = plan.graph.ops[plan.schedule.order[step]]
            lines.append(
                f"The peak of {plan.step_bytes[step]:,} bytes is at step {step}, "
                f"{op.kind} {op.name!r}."
            )
        banks = [m.name for m in target.memories if Content.ARENA in m.holds]
        if len(banks) > 1:
            lines.append(f"Nor was a way found to spread the arena over {' and '.join(banks)}.")
        lines.append(
            "What could help: a board with more memory (`thimble boards`), a smaller input or "
            "narrower layers around that step, another --scheduler, splitting operators (--ram)."
        )
        raise DoesNotFitError("\n".join(lines)) from error
