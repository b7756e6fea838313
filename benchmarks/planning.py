"""How long planning takes, and how that grows; and what each request gives.

    python -m benchmarks.planning [--sizes LIST] [--kinds LIST] [--profile] [--json FILE]
    python -m benchmarks.planning MODEL... [--boards LIST] [--json FILE]
    python -m benchmarks.planning MODEL... --fits [--json FILE]

Without models: processor seconds of a default plan and memory at its most, of networks of growing
size: chains of 3x3 convolutions, residual networks, and cells whose branches are concatenated. The
exponent is that of the growth from the size before. `--profile` adds the seconds of each stage, of
which some are parts of others, and the functions that take most; planning then takes twice as long.
With models: arena, predicted time and seconds of each request, all from one set of plans.
`--fits`: instead, how many boards hold each model (`thimble boards --for`), and the processor
seconds and the memory, at its most of all models so far, that finding out took.
"""

from __future__ import annotations

import argparse
import cProfile
import math
import pstats
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks._results import json_option, write_results
from toolchain import passes
from toolchain.boards import board as find_board
from toolchain.boards import boards
from toolchain.codegen import constant_bytes
from toolchain.contact.network import Network
from toolchain.deployment.fitting import fits
from toolchain.errors import DoesNotFitError
from toolchain.frontends import load_model
from toolchain.ir import Graph
from toolchain.planner import candidates, plan_graph
from toolchain.planning import ways
from toolchain.planning.copies import Copies
from toolchain.planning.front import Candidates
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.planning.room import Forms, Room
from toolchain.report.latency import predict_latency

SMALLEST = ("--sizes 4,8 --kinds chain", "{shared}/models/mlperf_tiny_ad_fcae_int8.tflite")
SIDE, CHANNELS = 16, 16
STAGES: dict[str, Callable[..., object]] = {
    "unsplit plan": candidates,
    "search of splits": ways.search,
    "graphs of ways": ways.finer,
    "kernels, and bounds of time": Forms.least,
    "orders of ways": ways.built,
    "places of ways": ways.way_plan,
    "forms beside what is live": Room.__init__,
    "time by arena and flash": Room.count,
    "bytes of constants": constant_bytes,
    "copies of constants": Copies.total,
    "the plan that is asked for": Candidates.finished,
}
REQUESTS = {
    "default": PlanOptions(),
    "0%": PlanOptions(max_slowdown=0.0),
    "1%": PlanOptions(max_slowdown=0.01),
    "2%": PlanOptions(max_slowdown=0.02),
    "5%": PlanOptions(max_slowdown=0.05),
    "20%": PlanOptions(max_slowdown=0.2),
    "--ram 24K": PlanOptions(ram_bytes=24 << 10),
    "--ram 32K": PlanOptions(ram_bytes=32 << 10),
    "--ram 48K": PlanOptions(ram_bytes=48 << 10),
}


def chain(operators: int) -> Graph:
    net = Network("chain", (1, SIDE, SIDE, CHANNELS))
    x = net.input
    for _ in range(operators):
        x = net.conv(x, CHANNELS, 3)
    return net.graph(x)


def residual(operators: int) -> Graph:
    net = Network("residual", (1, SIDE, SIDE, CHANNELS))
    x = net.input
    for _ in range(max(operators // 3, 1)):
        x = net.add(x, net.conv(net.conv(x, 2 * CHANNELS, 3), CHANNELS, 3))
    return net.graph(x)


def cells(operators: int) -> Graph:
    net = Network("cells", (1, SIDE, SIDE, CHANNELS))
    x = net.input
    for _ in range(max(operators // 6, 1)):
        left = net.conv(net.depthwise(x, 3), CHANNELS, 1)
        right = net.conv(net.depthwise(x, 5), CHANNELS, 1)
        x = net.conv(net.concat([left, right]), CHANNELS, 1)
    return net.graph(x)


KINDS: dict[str, Callable[[int], Graph]] = {"chain": chain, "residual": residual, "cells": cells}


@dataclass(frozen=True)
class Grown:
    """A default plan of a network of so many operators: processor seconds, memory at its most, and
    the exponent of the growth from the size before, None at the first.
    """

    kind: str
    operators: int
    seconds: float
    megabytes: float
    exponent: float | None


def measured(kind: str, sizes: list[int], board: str, profile: bool) -> Iterator[Grown]:
    """A network of each size."""
    before: tuple[int, float] | None = None
    for size in sizes:
        graph = passes.prepare(KINDS[kind](size)).graph
        profiler, begin = cProfile.Profile(time.process_time), time.process_time()
        if profile:
            profiler.enable()
        plan_graph(graph, find_board(board))
        profiler.disable()
        seconds, count = time.process_time() - begin, len(graph.ops)
        power = None
        if before is not None and count > before[0]:
            power = math.log(seconds / before[1]) / math.log(count / before[0])
        before = count, seconds
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        yield Grown(kind, count, seconds, most, power)
        if profile:
            stats = pstats.Stats(profiler, stream=sys.stderr)
            print(*_stages(stats, seconds), sep="\n", file=sys.stderr)
            stats.sort_stats("tottime").print_stats(25)


def _stages(stats: pstats.Stats, seconds: float) -> Iterator[str]:
    """A line for each stage: its seconds, and their share of all."""
    spent: dict[tuple[str, int, str], float] = {
        function: cumulated for function, (_, _, _, cumulated, _) in stats.stats.items()
    }
    for stage, function in STAGES.items():
        code = function.__code__
        took = spent.get((code.co_filename, code.co_firstlineno, code.co_name), 0.0)
        yield f"{took:8.2f} s {took / seconds:6.1%}  {stage}"


def requests(model: Path, board: str) -> Iterator[dict[str, Any]]:
    """A row for each request; `error` where nothing fits. `unsplit_bytes`: 0 for a whole plan."""
    graph = passes.prepare(load_model(model)).graph
    begin = time.process_time()
    found = candidates(graph, find_board(board))
    for name, options in REQUESTS.items():
        row: dict[str, Any] = {"model": model.stem, "board": board, "asked": name}
        try:
            plan = found.asking(options).asked()
        except DoesNotFitError as error:
            row["error"] = error.message.partition(": ")[2]
        else:
            row |= {
                "arena_bytes": plan.arena.size_bytes,
                "unsplit_bytes": plan.unsplit_bytes,
                "time": predict_latency(plan).total,
                "slowdown": plan.slowdown,
            }
        yield {**row, "seconds": round(time.process_time() - begin, 2)}
        begin = time.process_time()
    whole = plan_graph(graph, find_board(board), PlanOptions(optimise=Optimise.SIZE).unsplit)
    yield {
        "model": model.stem,
        "board": board,
        "asked": "--no-split, size",
        "arena_bytes": whole.arena.size_bytes,
        "unsplit_bytes": 0,
        "time": predict_latency(whole).total,
        "slowdown": None,
        "seconds": round(time.process_time() - begin, 2),
    }


def requests_table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(title=f"{rows[0]['model']} on {rows[0]['board']}")
    for title in ("asked", "arena B", "without splits", "time", "slowdown", "seconds"):
        table.add_column(title, justify="left" if title == "asked" else "right")
    for row in rows:
        if "error" in row:
            table.add_row(row["asked"], row["error"])
            continue
        table.add_row(
            row["asked"],
            f"{row['arena_bytes']:,}",
            f"{row['unsplit_bytes']:,}" if row["unsplit_bytes"] else "-",
            f"{row['time']:,}",
            "-" if row["slowdown"] is None else f"{row['slowdown']:.2%}",
            f"{row['seconds']:.1f}",
        )
    return table


def fitting(models: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """A row for each model: boards, those that hold it, processor seconds, MB at most so far."""
    targets = [board for board in boards().values() if not board.is_host]
    for model in models:
        begin = time.process_time()
        held = [fit for fit in fits(model, targets, PlanOptions()) if not fit.why_not]
        seconds = time.process_time() - begin
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        yield {
            "model": model.stem,
            "boards": len(targets),
            "hold_it": len(held),
            "seconds": round(seconds, 2),
            "megabytes": round(most),
        }


def fitting_table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="boards --for")
    for title in ("model", "boards", "hold it", "seconds", "MB"):
        table.add_column(title, justify="left" if title == "model" else "right")
    for row in rows:
        table.add_row(*map(str, row.values()))
    return table


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--boards", default="nucleo-l4r5zi", help="by comma")
    parser.add_argument("--sizes", default="10,30,100", help="operators, by comma")
    parser.add_argument("--kinds", default=",".join(KINDS), help="by comma")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--fits", action="store_true", help="which boards hold each model")
    json_option(parser)
    given = parser.parse_args()
    console, names = Console(width=120), given.boards.split(",")
    if given.fits:
        fitted = list(fitting(given.models))
        console.print(fitting_table(fitted))
        write_results(given.json, fitted)
        return 0
    if given.models:
        asked = []
        for model in given.models:
            for board in names:
                rows = list(requests(model, board))
                console.print(requests_table(rows))
                asked += rows
        write_results(given.json, asked)
        return 0
    table = Table(title=f"Planning for {names[0]}")
    for title in ("network", "operators", "seconds", "MB", "exponent"):
        table.add_column(title, justify="left" if title == "network" else "right")
    sizes = [int(size) for size in given.sizes.split(",")]
    grown = []
    for kind in given.kinds.split(","):
        for one in measured(kind, sizes, names[0], given.profile):
            growth = "-" if one.exponent is None else f"{one.exponent:.2f}"
            cells = f"{one.operators:,}", f"{one.seconds:.1f}", f"{one.megabytes:.0f}", growth
            table.add_row(kind, *cells)
            grown.append(one)
    console.print(table)
    write_results(given.json, grown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
