"""The path from a model file to a plan: the one place that joins the rooms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from toolchain import arena, partition, passes, schedule
from toolchain.boards import Board, Core
from toolchain.boards import board as find_board
from toolchain.codegen import constant_bytes
from toolchain.cost import CostModel
from toolchain.cost.analytic import AnalyticCostModel
from toolchain.frontends import load_model
from toolchain.ir import Graph, MemoryProblem, Schedule
from toolchain.ir.arena import arena_plan
from toolchain.ir.boundary import Boundary
from toolchain.ir.memory import footprint, peak_bytes
from toolchain.memory import arrangement, banks
from toolchain.memory.firmware_size import firmware_data_bytes, ram_bytes
from toolchain.memory.plan import Plan, planned_ops
from toolchain.memory.problem import cheapest_views, memory_problem
from toolchain.ops.check import check
from toolchain.ops.lowering import Lowered, lower
from toolchain.partition import fitting, splitters
from toolchain.passes.identity_rewriting import lowest_peak
from toolchain.passes.refuse_float import refuse_float
from toolchain.progress import Report, silent
from toolchain.report.front import FrontRow, Split

DEFAULT_BOARD = "netduinoplus2"
REWRITE_TRIAL_SECONDS = 2.0
"""Most work to order a graph while rewrites are compared, in seconds' worth."""


@dataclass(frozen=True)
class PlanOptions:
    """How to plan. `time_limit_seconds` bounds the scheduler and the allocator, each. Limits in
    seconds count work, which takes about so long on one core: no clock changes a plan.

    `rewrite`: partition concatenations where that lowers the peak; convolutions that sum in parts
    take about three times the instructions.
    `ram_bytes`: split operators, where that is needed, until arena, data and stack fit into so
    much RAM, at the least cost. `max_slowdown`: split them for the smallest arena that costs no
    more than this fraction of the latency. `splitter` searches for that, for at most
    `split_seconds`.
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

    def met_by(self, plan: Plan) -> bool:
        """Whether a plan has no more RAM than is asked for."""
        return self.ram_bytes is not None and ram_bytes(plan) <= self.ram_bytes


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
    lowered = lower(graph, target.core)
    problem = choose_views(lowered)
    report("ordering operators")
    found = schedule.scheduler(options.scheduler).schedule(problem, options.time_limit_seconds)
    report("placing tensors")
    plan = replace(_placed(lowered, target, problem, found, options), boundaries=boundaries)
    if options.splits and not options.met_by(plan):
        whole, plan = plan, _split(plan, options, report, costs)
        if plan.graph is not whole.graph:
            problem = memory_problem(plan.lowered, progressive=True)
    return _over_banks(plan, target, problem, options, report)


def rewrite_identities(graph: Graph, core: Core, options: PlanOptions) -> Graph:
    """Partition concatenations (SERENITY, 3.3) where that lowers the peak; every byte stays."""
    method = schedule.scheduler(options.scheduler)

    def peak(candidate: Graph) -> int:
        problem = choose_views(lower(candidate, core))
        return method.schedule(problem, REWRITE_TRIAL_SECONDS).peak_bytes

    return lowest_peak(graph, peak)


def choose_views(lowered: Lowered) -> MemoryProblem:
    """All views in place, but for those that cost more memory than they save in one cheap order."""

    def peak(problem: MemoryProblem) -> int:
        return peak_bytes(problem, schedule.scheduler("rpo").schedule(problem, None).order)

    return cheapest_views(lowered, peak)


def _placed(
    lowered: Lowered, target: Board, problem: MemoryProblem, found: Schedule, options: PlanOptions
) -> Plan:
    """The plan of one order, or of another whose arena is smaller."""
    allocator = arena.allocator(options.allocator)
    made = arrangement.place(problem, found, allocator, options.time_limit_seconds)
    unsplit = not (options.splits or problem.accesses)
    if options.allocator == arena.DEFAULT and unsplit:
        made = arrangement.compact(problem, made, allocator)
    order = made.schedule.order
    placed = arena_plan(problem, order, made.placement, made.blocks)
    plan = Plan(
        lowered=lowered,
        board=target.name,
        schedule=made.schedule,
        arena=placed,
        operators=planned_ops(lowered, placed),
        step_bytes=footprint(problem, order),
    )
    return replace(plan, weight_bytes=constant_bytes(plan))


def _over_banks(
    plan: Plan, target: Board, problem: MemoryProblem, options: PlanOptions, report: Report
) -> Plan:
    """The plan with its arena spread over banks, where none holds all of it, or a slow one does.

    Not where --ram is met only in one piece.
    """
    if target.is_host or options.one_bank or not banks.wants_banks(plan, target):
        return plan
    report("placing tensors in banks")
    allocator = arena.allocator(options.allocator)
    spread = banks.spread_arena(plan, problem, target, allocator, options.time_limit_seconds)
    if spread is None:
        return plan
    made = replace(plan, arena=spread, operators=planned_ops(plan.lowered, spread))
    made = replace(made, weight_bytes=constant_bytes(made))
    return plan if options.met_by(plan) and not options.met_by(made) else made


def split_front(
    plan: Plan,
    options: PlanOptions | None = None,
    costs: CostModel | None = None,
    report: Report = silent,
) -> partition.Front:
    """Ways to split the operators of an unsplit plan: peak against predicted slowdown."""
    options = options or PlanOptions()
    target = find_board(plan.board)
    graph = partition.single_outputs(plan.graph, plan.schedule.order)
    task = partition.Task(
        graph,
        memory_problem(lower(graph, target.core)),
        tuple(range(len(graph.ops))),
        target.core,
        costs or AnalyticCostModel(),
        options.max_slowdown,
        None if options.ram_bytes is None else options.ram_bytes - firmware_data_bytes(plan),
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
    lowered = lower(check(partition.split_all(ordered, point.schemes)), target.core)
    problem = memory_problem(lowered, progressive=True)
    found = schedule.scheduler("rpo").schedule(problem)
    given = tuple(range(len(lowered.graph.ops)))
    peak = peak_bytes(problem, given)
    if peak <= found.peak_bytes:
        found = replace(
            found, order=given, method=f"{plan.schedule.method}, split", peak_bytes=peak
        )
    return replace(
        _placed(lowered, target, problem, found, options),
        boundaries=plan.boundaries,
        slowdown=front.slowdown(point),
        search_stopped=front.stopped,
    )


def _split(plan: Plan, options: PlanOptions, report: Report, costs: CostModel | None) -> Plan:
    """The plan that `options` ask for, among the points of the front."""
    front = split_front(plan, options, costs, report)

    def place(point: partition.Point) -> Plan:
        return split_plan(plan, front, point, options)

    if options.ram_bytes is None:
        return fitting.smallest(plan, front, place, report, options.max_slowdown)
    return fitting.fitting(plan, front, place, report, options.ram_bytes, options.max_slowdown)
