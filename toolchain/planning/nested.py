"""Branches and bodies of loops, planned before the graph around them: each has an arena of its own.

The inner arena is scratch of the operator that holds the graph. Schedulers, allocators and
splitters of the graph around it see one operator.
"""

from __future__ import annotations

from dataclasses import replace

from toolchain import arena, schedule
from toolchain.boards import Core
from toolchain.ir import Graph
from toolchain.ir.arena import arena_plan
from toolchain.memory import arrangement
from toolchain.ops.control.body import Body, Layout, hollow, with_bodies
from toolchain.ops.lowering import Lowered, lower
from toolchain.planning.options import PlanOptions
from toolchain.planning.ordering import choose_views


def lay_out(graph: Graph, core: Core, options: PlanOptions) -> Graph:
    """The graph with a layout of every graph in it.

    Raises UnsupportedError where an operator inside has no kernel on this core.
    """
    if not any(op.attributes.nested for op in graph.ops):
        return graph
    return graph.with_ops(
        with_bodies(op, lambda body: _planned(body, core, options)) for op in graph.ops
    )


def _planned(body: Body, core: Core, options: PlanOptions) -> Body:
    graph = lay_out(body.graph, core, options)
    kernels = lower(graph, core, options.kernels).kernels
    problem = choose_views(Lowered(hollow(body, graph), core, kernels, options.kernels))
    limit = options.time_limit_seconds
    ordered = schedule.scheduler(options.scheduler).schedule(problem, limit)
    allocator = arena.allocator(options.allocator)
    made = arrangement.place(problem, ordered, allocator, limit)
    if options.allocator == arena.DEFAULT:
        made = arrangement.compact(problem, made, allocator)
    order = made.schedule.order
    placed = arena_plan(problem, order, made.placement, made.blocks)
    scratch = tuple(kernel.scratch_bytes for kernel in kernels)
    layout = Layout(order, placed, scratch, options.kernels)
    return replace(body, graph=graph, layout=layout)
