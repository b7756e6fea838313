"""Schedulers on the published graphs, their ablations, and how `auto` scales.

    python -m benchmarks.schedule GRAPHS_DIR [--time-limit S] [--json FILE]

GRAPHS_DIR holds neutral .json graphs. `schedule_published.json` holds what the papers and a run
of HMCOS's own C++ reached. Times are wall and processor seconds of this process; `cold` is the
wall time of a whole `thimble schedule` command in a fresh process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks._results import json_option, write_results
from benchmarks.random_graphs import FAMILIES
from toolchain.frontends.neutral import read_neutral
from toolchain.ir import MemoryProblem, Schedule
from toolchain.memory.off_chip import off_chip_traffic
from toolchain.schedule import Scheduler, names, scheduler
from toolchain.schedule.ilp import Ilp
from toolchain.schedule.serenity import Serenity

SMALLEST = (
    "{shared}/graphs --match swiftnet_cell_c --only graphs --time-limit 2",
    "{shared}/graphs --match swiftnet_cell_c --only ablations --time-limit 2",
)
PUBLISHED = Path(__file__).with_name("schedule_published.json")
SIZES = (10, 30, 100, 300, 1000, 2000, 5000)
ABLATIONS: dict[str, Scheduler] = {
    "serenity": Serenity(),
    "serenity, no budgeting": Serenity(budgeting=False),
    "serenity, no division": Serenity(divide=False),
    "serenity, neither": Serenity(divide=False, budgeting=False),
    "ilp": Ilp(),
    "ilp, no pruning": Ilp(pruning=False),
    "ilp, no fusion": Ilp(fusion=False),
    "ilp, no partition": Ilp(partition=False),
    "ilp, plain": Ilp(pruning=False, fusion=False, partition=False),
}


def measure(method: Scheduler, problem: MemoryProblem, limit: float) -> tuple[Schedule, Any]:
    """A schedule, and the row that the JSON holds of it."""
    wall, processor = time.perf_counter(), time.process_time()
    found = method.schedule(problem, limit)
    return found, {
        "peak_bytes": found.peak_bytes,
        "lower_bound_bytes": found.lower_bound_bytes,
        "proved_optimal": found.proved_optimal,
        "wall_seconds": round(time.perf_counter() - wall, 4),
        "processor_seconds": round(time.process_time() - processor, 4),
    }


def cold_seconds(path: Path) -> float:
    """Wall time of the whole command in a fresh process."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "toolchain.cli", "schedule", str(path), "--json", "-"]
    subprocess.run(command, check=True, capture_output=True)
    return round(time.perf_counter() - begin, 3)


def graph_rows(paths: list[Path], limit: float) -> list[dict[str, Any]]:
    published = json.loads(PUBLISHED.read_text())
    rows = []
    for path in paths:
        problem = read_neutral(path).memory_problem()
        methods, traffic = {}, {}
        for name in names():
            found, methods[name] = measure(scheduler(name), problem, limit)
            traffic[name] = off_chip_traffic(problem, found.order, 256 * 1024).total_bytes
        rows.append(
            {
                "graph": path.stem,
                "nodes": len(problem.ops),
                "methods": methods,
                "traffic_256_kib_bytes": traffic,
                "auto_cold_seconds": cold_seconds(path),
                "published": published.get(path.stem, {}),
            }
        )
    return rows


def ablation_rows(paths: list[Path], limit: float) -> list[dict[str, Any]]:
    rows = []
    for path in paths:
        problem = read_neutral(path).memory_problem()
        variants = {name: measure(m, problem, limit)[1] for name, m in ABLATIONS.items()}
        rows.append({"graph": path.stem, "variants": variants})
    return rows


def scaling_rows(limit: float) -> list[dict[str, Any]]:
    rows = []
    for family, make in FAMILIES.items():
        for size in SIZES:
            problem = make(size, 0)
            _, row = measure(scheduler("auto"), problem, limit)
            rows.append({"family": family, "nodes": len(problem.ops), **row})
    return rows


def graph_table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="Peak bytes; * proved optimal; seconds of processor time in brackets")
    for title in ("graph", "nodes", *names(), "auto cold s", "HMCOS (C++)", "papers R/S/H MiB"):
        table.add_column(title, justify="left" if title == "graph" else "right")
    for row in rows:
        cells = [_cell(row["methods"][name]) for name in names()]
        own = row["published"].get("hmcos_measured", {})
        reached = f"{own['peak_bytes']:,} ({own['seconds']})" if own.get("peak_bytes") else ""
        paper = row["published"].get("paper_peak_mib", {})
        told = " / ".join(str(paper[k]) for k in ("rpo", "serenity", "hmcos") if paper.get(k))
        cold = f"{row['auto_cold_seconds']:.2f}"
        table.add_row(row["graph"], str(row["nodes"]), *cells, cold, reached, told)
    return table


def ablation_table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="Ablations: peak bytes, proof and processor seconds")
    table.add_column("graph")
    for name in ABLATIONS:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(row["graph"], *(_cell(row["variants"][name]) for name in ABLATIONS))
    return table


def scaling_table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="auto on random graphs")
    for title in ("family", "nodes", "peak", "lower bound", "gap", "wall s"):
        table.add_column(title, justify="left" if title == "family" else "right")
    for row in rows:
        gap = row["peak_bytes"] / row["lower_bound_bytes"] - 1
        table.add_row(
            row["family"],
            str(row["nodes"]),
            str(row["peak_bytes"]),
            str(row["lower_bound_bytes"]),
            "proved" if not gap else f"{gap:.1%}",
            f"{row['wall_seconds']:.3f}",
        )
    return table


def _cell(row: dict[str, Any]) -> str:
    star = "*" if row["proved_optimal"] else ""
    return f"{row['peak_bytes']:,}{star} ({row['processor_seconds']:.2f})"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The claims of the README, computed."""
    auto = [row["methods"]["auto"] for row in rows]
    timed = [
        (row["methods"]["auto"]["wall_seconds"], row["published"]["hmcos_measured"]["seconds"])
        for row in rows
        if row["published"].get("hmcos_measured", {}).get("seconds")
    ]
    return {
        "graphs": len(rows),
        "proved": sum(a["proved_optimal"] for a in auto),
        "auto_never_above": all(
            row["methods"]["auto"]["peak_bytes"] <= other["peak_bytes"]
            for row in rows
            for other in row["methods"].values()
        ),
        "slowest_wall_seconds": max(a["wall_seconds"] for a in auto),
        "total_wall_seconds": round(sum(a["wall_seconds"] for a in auto), 3),
        "same_graphs_auto_seconds": round(sum(a for a, _ in timed), 3),
        "same_graphs_hmcos_seconds": round(sum(h for _, h in timed), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", type=Path)
    parser.add_argument("--time-limit", type=float, default=30.0, help="per method and graph")
    parser.add_argument("--match", default="*", help="only graphs whose file name matches")
    json_option(parser)
    parser.add_argument("--only", choices=("graphs", "ablations", "scaling"))
    options = parser.parse_args()
    console = Console(width=240)
    paths = sorted(options.graphs.glob(f"{options.match}.json"))
    if not paths:
        parser.error(f"no .json graphs in {options.graphs}")
    result: dict[str, Any] = {"time_limit_seconds": options.time_limit}
    if options.only in (None, "graphs"):
        result["graphs"] = graph_rows(paths, options.time_limit)
        result["summary"] = summary(result["graphs"])
        console.print(graph_table(result["graphs"]))
        console.print(result["summary"])
    if options.only in (None, "ablations"):
        result["ablations"] = ablation_rows(paths, options.time_limit)
        console.print(ablation_table(result["ablations"]))
    if options.only in (None, "scaling"):
        result["scaling"] = scaling_rows(options.time_limit)
        console.print(scaling_table(result["scaling"]))
    write_results(options.json, result)


if __name__ == "__main__":
    main()
