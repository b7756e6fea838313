"""From an order to a plan: every tensor gets its place, in one piece of RAM or in several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from toolchain import arena
from toolchain.arena import Allocator
from toolchain.boards import Board
from toolchain.codegen import constant_bytes
from toolchain.ir import MemoryProblem, Schedule
from toolchain.ir.arena import arena_plan
from toolchain.ir.memory import footprint
from toolchain.memory import arrangement, banks
from toolchain.memory.plan import Plan, planned_ops
from toolchain.ops.lowering import Lowered
from toolchain.packages import SOLVER
from toolchain.planning.options import PlanOptions
from toolchain.progress import Report


def place(
    lowered: Lowered,
    target: Board,
    problem: MemoryProblem,
    schedule: Schedule,
    options: PlanOptions,
    allocator: Allocator,
    *,
    others: bool = True,
) -> Plan:
    """The plan of one order, or, with `others`, of another order whose arena is smaller.

    `allocator`: that of the options.
    """
    made = arrangement.place(problem, schedule, allocator, options.time_limit_seconds)
    unsplit = not problem.accesses
    if others and options.allocator == arena.DEFAULT and unsplit:
        made = arrangement.compact(problem, made, allocator)
    order = made.schedule.order
    placed = arena_plan(problem, order, made.placement, made.blocks)
    return Plan(
        lowered=lowered,
        board=target.name,
        schedule=made.schedule,
        arena=placed,
        operators=planned_ops(lowered, placed),
        step_bytes=footprint(problem, order),
    )


def over_banks(
    plan: Plan,
    target: Board,
    problem: Callable[[], MemoryProblem],
    options: PlanOptions,
    report: Report,
) -> Plan:
    """The plan with its arena spread over banks, if none holds all of it, or only a slow one does.

    Not spread if only one piece meets --ram, nor where an input arrives by rows, nor without
    CP-SAT: the report says so, and `check_fit` where one piece does not fit.
    """
    one_piece = options.one_bank or bool(SOLVER.missing)
    if one_piece or not banks.may_spread(plan, target):
        return plan
    report("placing tensors in banks")
    allocator = arena.allocator(options.allocator)
    spread = banks.spread_arena(plan, problem(), target, allocator, options.time_limit_seconds)
    if spread is None:
        return plan
    made = replace(plan, arena=spread, operators=planned_ops(plan.lowered, spread))
    made = replace(made, weight_bytes=constant_bytes(made))
    return plan if options.met_by(plan) and not options.met_by(made) else made
