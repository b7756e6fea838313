"""Splitting operators: the ways to do it, and the plan of the one that was requested."""

from __future__ import annotations

from dataclasses import replace

from toolchain import partition, schedule
from toolchain.boards import board as find_board
from toolchain.cost import CostModel
from toolchain.cost.predicted import predicted_model
from toolchain.ir.memory import peak_bytes
from toolchain.memory.firmware_size import firmware_data_bytes
from toolchain.memory.plan import Plan
from toolchain.memory.problem import memory_problem
from toolchain.ops.check import check
from toolchain.ops.lowering import lower
from toolchain.partition import fitting, splitters
from toolchain.planning.options import PlanOptions
from toolchain.planning.placing import place
from toolchain.progress import Report, silent
from toolchain.report.front import FrontRow, Split


def split_front(
    plan: Plan,
    options: PlanOptions | None = None,
    costs: CostModel | None = None,
    report: Report = silent,
    most_calls: int = partition.MOST_CALLS,
) -> partition.Front:
    """Ways to split the operators of an unsplit plan: peak against predicted slowdown.

    `most_calls`: blocks of one region at most.
    """
    options = options or PlanOptions()
    target, preference = find_board(plan.board), plan.lowered.preference
    graph = partition.single_outputs(plan.graph, plan.schedule.order)
    task = partition.Task(
        graph,
        memory_problem(lower(graph, target.core, preference, plan.lowered.forms)),
        tuple(range(len(graph.ops))),
        target.core,
        costs or predicted_model(target),
        options.max_slowdown,
        None if options.ram_bytes is None else options.ram_bytes - firmware_data_bytes(plan),
        preference,
        forms=plan.lowered.forms,
        most_calls=most_calls,
    )
    watch = partition.Watch(options.search_seconds, report)
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
    finer = check(partition.split_all(ordered, point.schemes))
    lowered = lower(finer, target.core, plan.lowered.preference, plan.lowered.forms)
    problem = memory_problem(lowered, progressive=True)
    order = schedule.scheduler("rpo").schedule(problem)
    given = tuple(range(len(lowered.graph.ops)))
    peak = peak_bytes(problem, given)
    if peak <= order.peak_bytes:
        order = replace(
            order, order=given, method=f"{plan.schedule.method}, split", peak_bytes=peak
        )
    return replace(
        place(lowered, target, problem, order, options),
        boundaries=plan.boundaries,
        slowdown=front.slowdown(point),
        search_stopped=front.stopped,
    )


def split(plan: Plan, options: PlanOptions, report: Report, costs: CostModel | None) -> Plan:
    """The plan that `options` ask for, among the points of the front."""
    front = split_front(plan, options, costs, report)

    def made(point: partition.Point) -> Plan:
        return split_plan(plan, front, point, options)

    if options.ram_bytes is None:
        return fitting.smallest(plan, front, made, report, options.max_slowdown)
    return fitting.fitting(plan, front, made, report, options.ram_bytes, options.max_slowdown)
