"""`--pareto`: the ways to split a model and to spend flash on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from toolchain.boards import Board
from toolchain.cost import CostModel
from toolchain.partition.front import Front
from toolchain.planner import plan_model
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.planning.splitting import flash_rows, front_rows, split_front
from toolchain.progress import Report
from toolchain.report.front import FrontRow
from toolchain.report.latency import Latency, predict_latency


@dataclass(frozen=True)
class Choices:
    """`rows` are against the unsplit plan, which takes `unsplit`; `front` is that plan's."""

    front: Front
    rows: tuple[FrontRow, ...]
    unsplit: Latency


def search_choices(
    model: Path, target: Board, options: PlanOptions, costs: CostModel, step: Report
) -> Choices:
    """Split the unsplit plan, and where kernels take more flash, the one without these, too."""
    whole = options.unsplit
    if options.optimise is not Optimise.SIZE and not target.is_host:
        whole = replace(whole, optimise=Optimise.SPEED)
    unsplit = plan_model(model, target.name, whole, step, costs)
    lean = replace(whole, optimise=Optimise.SIZE)
    others = [plan_model(model, target.name, lean, step, costs)] if unsplit.spent.operators else []
    seconds = whole.search_seconds / (1 + len(others))
    searched = replace(whole, split_seconds=seconds)
    fronts = [(p, split_front(p, searched, costs, step)) for p in (unsplit, *others)]
    rows = flash_rows(fronts) if others else front_rows(fronts[0][1])
    return Choices(fronts[0][1], rows, predict_latency(unsplit, costs))
