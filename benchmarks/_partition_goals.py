"""What a network needs within a slowdown, or within a limit of RAM, beside what is aimed at."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.table import Table

from toolchain.boards import board as find_board
from toolchain.errors import DoesNotFitError
from toolchain.ir import Graph
from toolchain.memory.firmware_size import firmware_data_bytes
from toolchain.memory.plan import Plan
from toolchain.planner import candidates
from toolchain.planning.front import Candidates
from toolchain.planning.options import PlanOptions
from toolchain.progress import Report
from toolchain.report.latency import predict_latency

L4, M7 = "nucleo-l4r5zi", "mps2-an500"


@dataclass(frozen=True)
class Goal:
    """An arena of at most `most_bytes` within `slowdown` of the quickest plan.

    `by_ram`: asked by `--ram` alone, for so much arena beside data and stack; or else by
    `--max-slowdown`. `rows`: the input arrives by rows.
    """

    network: str
    board: str
    slowdown: float
    most_bytes: int
    rows: bool = False
    by_ram: bool = False

    @property
    def asked(self) -> str:
        by = f"--ram for {self.most_bytes:,} B" if self.by_ram else f"{self.slowdown:.0%}"
        return f"{by}, by rows" if self.rows else by


GOALS = (
    Goal("ic_resnet8", L4, 0.01, 20_480),
    Goal("ic_resnet8", L4, 0.05, 14_336),
    Goal("vww_mobilenet", L4, 0.01, 28_140),
    Goal("fomo_face", L4, 0.01, 39_424),
    Goal("yamnet_256", L4, 0.01, 39_936),
    Goal("mcunet_vww", L4, 0.01, 20_404, rows=True),
    Goal("mcunet_vww", L4, 0.02, 12_000, rows=True),
    Goal("mcunet_vww", L4, 0.05, 13_376, rows=True),
    Goal("mobilenet_v2_224", M7, 0.03, 185_044),
    Goal("mobilenet_v2_224", M7, 0.03, 185_044, by_ram=True),
    Goal("mcunetv2_se_large", M7, 0.01, 210_000),
    Goal("mcunetv2_se_large", M7, 0.05, 210_000),
)
TITLES = tuple(f"{goal.network}, {goal.asked}" for goal in GOALS)
NETWORKS = tuple(dict.fromkeys(goal.network for goal in GOALS))


def measure(
    names: Sequence[str], graph_of: Callable[[str], Graph | None], report: Report
) -> Iterator[Any]:
    """A row for each goal of these networks, as far as their files are there."""
    for (name, board, rows), goals in groupby(
        (goal for goal in GOALS if goal.network in names),
        key=lambda g: (g.network, g.board, g.rows),
    ):
        graph = graph_of(name)
        if graph is None:
            report(f"{name}: no file, left out")
            continue
        report(f"{name}: search")
        begin = time.process_time()
        found = candidates(graph, find_board(board), PlanOptions(stream_input=rows))
        base = found.base.count
        for goal in goals:
            report(f"{name}: {goal.asked}")
            yield {
                "goal": f"{name}, {goal.asked}",
                "network": name,
                "board": board,
                "base_cycles": base,
                **_figures(_asked(found, goal), base),
                "seconds": round(time.process_time() - begin, 1),
            }
            begin = time.process_time()


def _asked(found: Candidates, goal: Goal) -> Plan | DoesNotFitError:
    """The finished plan; where none fits, the error."""
    options = PlanOptions(stream_input=goal.rows, max_slowdown=goal.slowdown)
    if goal.by_ram:
        ram_bytes = goal.most_bytes + firmware_data_bytes(found.whole)
        options = PlanOptions(stream_input=goal.rows, ram_bytes=ram_bytes)
    try:
        return found.asking(options).asked()
    except DoesNotFitError as error:
        return error


def _figures(plan: Plan | DoesNotFitError, base: int) -> dict[str, Any]:
    if isinstance(plan, DoesNotFitError):
        return {"error": plan.message}
    cycles = predict_latency(plan).total
    return {
        "arena_bytes": plan.arena.size_bytes,
        "lower_bound_bytes": plan.schedule.lower_bound_bytes,
        "cycles": cycles,
        "slowdown": cycles / base - 1,
        "calls": plan.calls,
    }


def show(rows: Sequence[Any], console: Console) -> None:
    """A line for each goal: the finished plan that is asked for, and whether the goal is met."""
    table = Table(title="Arenas of finished plans, beside goals")
    table.add_column("network, asked")
    for title in ("board", "base cycles", "arena B", "goal B", "bound B", "slowdown", "calls", "s"):
        table.add_column(title, justify="right")
    goals = dict(zip(TITLES, GOALS, strict=True))
    for row in rows:
        goal = goals.get(row["goal"])
        if goal is None:
            continue
        begin = row["goal"], row["board"], f"{row['base_cycles']:,}"
        if "error" in row:
            table.add_row(
                *begin, "-", f"{goal.most_bytes:,}", "-", "-", "-", f"{row['seconds']:.0f}"
            )
            console.print(row["error"], style="dim")
            continue
        met = row["arena_bytes"] <= goal.most_bytes and row["slowdown"] <= goal.slowdown
        table.add_row(
            *begin,
            f"{row['arena_bytes']:,}",
            f"{goal.most_bytes:,}{' (met)' if met else ''}",
            f"{row['lower_bound_bytes']:,}",
            f"{row['slowdown']:.2%}",
            f"{row['calls']:,}",
            f"{row['seconds']:.0f}",
        )
    console.print(table)
    console.print(
        "Slowdown: predicted, of the quickest plan. Bound: of every order of these blocks."
    )
