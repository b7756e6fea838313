"""Splits that cost next to nothing: part of every plan, unless refused."""

from __future__ import annotations

import math
from dataclasses import replace

from toolchain.boards import Board
from toolchain.cost import CostModel
from toolchain.cost.predicted import predicted_model
from toolchain.ir import Graph
from toolchain.memory.firmware_size import estimated_need
from toolchain.memory.plan import NEARLY_FREE, Plan
from toolchain.partition import CTRL_C, Front, SmallestArena
from toolchain.planning.options import PlanOptions
from toolchain.planning.room import spend_room
from toolchain.planning.splitting import split_front, split_plan
from toolchain.progress import Report
from toolchain.report.latency import predict_latency
from toolchain.search import Work

_LEAST_BYTES, _LEAST_SHARE = 1024, 0.05
"""The least saving, in bytes and as a share of the arena: blocks take flash, and longer C."""
_MOST_CALLS = 500
"""The most blocks of one region that is split."""
_NS_AN_OPERATOR = 600_000
"""Nanoseconds for an operator, to build a finer graph and choose its kernels."""
_MORE_BYTES = (0, 128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
"""Bytes by which the arena of a split network is made larger in turn, for scratch of quicker
kernels."""


def nearly_free(
    plan: Plan,
    allowed_bytes: int,
    target: Board,
    options: PlanOptions,
    report: Report,
    costs: CostModel | None,
) -> Plan:
    """The plan with the smallest arena that was found for at most NEARLY_FREE of its cost.

    It is the given, unsplit plan where too little would be saved or the code of the blocks would
    not fit the flash, and on the host, where memory is not scarce (but for an input that arrives by
    rows: then blocks run as they do on a board). If the arena of the given plan is larger than
    `allowed_bytes`, the cost of fitting them may be spent, and NEARLY_FREE beside.
    """
    size_bytes = plan.arena.size_bytes
    worth_bytes = int(size_bytes - max(_LEAST_BYTES, _LEAST_SHARE * size_bytes))
    most_bytes = worth_bytes if size_bytes <= allowed_bytes else allowed_bytes
    plenty = target.is_host and plan.graph.pushed is None
    if plenty or _ends_bytes(plan.graph) > most_bytes:
        return plan
    front = split_front(plan, options.for_nearly_free, costs, report, most_calls=_MOST_CALLS)
    if front.stopped == CTRL_C:
        raise KeyboardInterrupt  # nobody asked for this search
    most = NEARLY_FREE + (0 if size_bytes <= allowed_bytes else _least(front, allowed_bytes))
    smallest = _smallest(plan, front, most, options, report, costs or predicted_model(target))
    whole_flash, flash = (estimated_need(made).flash_bytes for made in (plan, smallest))
    room = target.chip_flash_bytes if options.flash_bytes is None else options.flash_bytes
    too_long = whole_flash <= room < flash
    if smallest.arena.size_bytes > most_bytes or too_long:
        return replace(plan, search_stopped=front.stopped)
    return smallest


def _ends_bytes(graph: Graph) -> int:
    """Bytes that no split saves: all inputs, or all outputs, are live together."""
    return max(
        sum(graph.tensors[name].size_bytes for name in names)
        for names in (graph.sources, graph.outputs)
    )


def _least(front: Front, most_bytes: int) -> float:
    """The least slowdown of a point whose peak is no more than that; 0 if there is none."""
    fitting = (front.slowdown(p) for p in front.points if p.peak_bytes <= most_bytes)
    return min(fitting, default=0.0)


def _smallest(
    plan: Plan,
    front: Front,
    most: float,
    options: PlanOptions,
    report: Report,
    costs: CostModel,
) -> Plan:
    """The plan with the smallest arena for a slowdown of at most `most`, as far as work is left to
    place the points of the front.

    A smaller arena has less room for the scratch of kernels that are quicker with more of it. So
    plans are compared with the kernels that each has room for, and a split network may have a
    larger arena than its tensors need.
    """
    choice, work = SmallestArena(front, most), Work(options.nearly_free_seconds)
    best, cost = plan, _cost(plan, costs)
    while not work.over and (point := choice.next()) is not None:
        report("placing tensors of operators in blocks")
        asked = options.time_limit_seconds
        seconds = min(math.inf if asked is None else asked, work.left_seconds / 2)
        limited = replace(options.for_nearly_free, time_limit_seconds=seconds)
        made = split_plan(plan, front, point, limited)
        choice.learn(point, made.arena.size_bytes)
        work.spend_seconds(made.arena.work_seconds)
        work.spend(_NS_AN_OPERATOR * len(made.graph.ops))
        for more_bytes in _MORE_BYTES:
            size_bytes = made.arena.size_bytes + more_bytes
            if size_bytes >= best.arena.size_bytes:
                break
            roomy = replace(made, arena=replace(made.arena, size_bytes=size_bytes))
            work.spend(_NS_AN_OPERATOR * len(made.graph.ops))
            slowdown = _cost(roomy, costs) / cost - 1
            if slowdown <= most:
                best = replace(roomy, slowdown=max(0.0, slowdown))
                break
    return best


def _cost(plan: Plan, costs: CostModel) -> float:
    """The cost of the plan with the kernels that its arena has room for."""
    return predict_latency(spend_room(plan, costs, 0), costs).total
