"""Arenas: MiniMalloc's instances, real models beside TFLM's arena, published graphs.

    python -m benchmarks.arena SHARED_DIR [--part instances|models|graphs] [--only TEXT]
                               [--time-limit S] [--board BOARD] [--json FILE]

SHARED_DIR holds `arena/*.csv`, `models/*` and `graphs/*.json`. `arena_published.json` holds
MiniMalloc's times (its C++, run on such a machine), the arenas that TFLite's allocator makes of
optimal orders, and the HMCOS paper's. TFLM's arenas are measured here by the tflite-micro wheel:
`tensors` is what its planner lays out (its head), `all` what `arena_used_bytes` counts on this
64-bit machine. Ours are those of a board's kernels, scratch included. Times are process seconds.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks._results import json_option, write_results
from toolchain import arena, passes, schedule
from toolchain.boards import board as find_board
from toolchain.errors import ThimbleError
from toolchain.frontends import load_model
from toolchain.frontends.minimalloc import read_buffers
from toolchain.frontends.neutral import read_neutral
from toolchain.ir import MemoryProblem
from toolchain.memory import arrangement
from toolchain.ops.lowering import lower
from toolchain.planning.options import PlanOptions
from toolchain.planning.ordering import choose_views, rewrite_identities

SMALLEST = (
    "{shared} --part instances --only input.12",
    "{shared} --part models --only ad_fcae",
    "{shared} --part graphs --only swiftnet_cell_c",
)
PUBLISHED = Path(__file__).with_name("arena_published.json")
TFLM = """
import sys
from tflite_micro.python.tflite_micro import runtime
data = open(sys.argv[1], "rb").read()
runtime.Interpreter.from_bytes(data, arena_size=1 << 25).print_allocations()
"""


def tflm_bytes(path: Path) -> tuple[int, int] | None:
    """Bytes of tensors, and of all of TFLM's arena; None where it refuses the file."""
    done = subprocess.run(
        [sys.executable, "-c", TFLM, str(path)], capture_output=True, text=True, check=False
    )
    found = dict(
        re.findall(r"Arena allocation (total|head) (\d+) bytes", done.stdout + done.stderr)
    )
    return (int(found["head"]), int(found["total"])) if len(found) == 2 else None


def kinds(problem: MemoryProblem) -> dict[str, MemoryProblem]:
    """The problem with no overlap, with outputs over equal beginnings of inputs, with all."""
    in_place = tuple(o for o in problem.overlaps if o.lead_bytes <= 0)
    return {
        "apart": replace(problem, overlaps=()),
        "in_place": replace(problem, overlaps=in_place),
        "overlap": problem,
    }


def arenas(problem: MemoryProblem, limit: float) -> dict[str, Any]:
    """Peak, TFLite's greedy, ours and the bound."""
    found = schedule.scheduler("auto").schedule(problem, limit)
    greedy = arrangement.place(problem, found, arena.allocator("greedy-breadth"))
    begin = time.process_time()
    method = arena.allocator("exact")
    best = arrangement.place(problem, found, method, limit)
    best = arrangement.compact(problem, best, method)
    return {
        "greedy_bytes": greedy.placement.size_bytes,
        "exact_bytes": best.placement.size_bytes,
        "bound_bytes": max(best.placement.lower_bound_bytes, found.lower_bound_bytes),
        "lowest_peak_bytes": found.lower_bound_bytes,
        "seconds": round(time.process_time() - begin, 3),
    }


def instances(shared: Path, only: str, published: Any, limit: float, console: Console) -> list[Any]:
    """Each at its capacity, beside MiniMalloc; then the smallest arena within the time."""
    table = Table(title="MiniMalloc's instances")
    for title in ("instance", "buffers", "capacity", "ours B", "ours s", "MiniMalloc s"):
        table.add_column(title, justify="right")
    for title in ("smallest B", "bound B", "s"):
        table.add_column(title, justify="right")
    rows = []
    found_here = {n: a for n, a in published["instances"].items() if only in n}
    for name, anchor in found_here.items():
        problem = read_buffers(shared / "arena" / name).problem
        row: dict[str, Any] = {"instance": name, "buffers": len(problem.blocks), **anchor}
        for what, capacity in (("at_capacity", anchor["capacity_bytes"]), ("smallest", None)):
            with console.status(f"{name}: {what}"):
                begin = time.process_time()
                found = arena.allocator("exact").place(problem, limit, capacity)
                row[what] = {
                    "size_bytes": found.size_bytes,
                    "bound_bytes": found.lower_bound_bytes,
                    "seconds": round(time.process_time() - begin, 3),
                }
        rows.append(row)
        at, least = row["at_capacity"], row["smallest"]
        table.add_row(
            name,
            f"{row['buffers']}",
            f"{anchor['capacity_bytes']:,}",
            f"{at['size_bytes']:,}",
            f"{at['seconds']:.2f}",
            f"{anchor['minimalloc_seconds']:.2f}",
            f"{least['size_bytes']:,}",
            f"{least['bound_bytes']:,}{'' if least['size_bytes'] > least['bound_bytes'] else ' ='}",
            f"{least['seconds']:.2f}",
        )
    met = sum(r["at_capacity"]["size_bytes"] <= r["capacity_bytes"] for r in rows)
    console.print(table)
    console.print(
        f"{met} of {len(rows)} within capacity: "
        f"{sum(r['at_capacity']['seconds'] for r in rows):.1f} s in all, "
        f"MiniMalloc {sum(r['minimalloc_seconds'] for r in rows):.1f} s."
    )
    return rows


def _arena_columns(table: Table) -> None:
    for title in ("greedy", "exact", "in place", "overlap", "bound"):
        table.add_column(title, justify="right")


def _arena_cells(row: dict[str, Any]) -> list[str]:
    proved = row["overlap"]["exact_bytes"] == row["overlap"]["bound_bytes"]
    return [
        f"{row['apart']['greedy_bytes']:,}",
        *(f"{row[kind]['exact_bytes']:,}" for kind in ("apart", "in_place", "overlap")),
        "=" if proved else f"{row['overlap']['bound_bytes']:,}",
    ]


def _met(rows: list[Any], console: Console) -> None:
    for kind in ("apart", "in_place", "overlap"):
        equal = sum(row[kind]["exact_bytes"] == row[kind]["lowest_peak_bytes"] for row in rows)
        proved = sum(row[kind]["exact_bytes"] == row[kind]["bound_bytes"] for row in rows)
        console.print(
            f"{kind}: {proved} of {len(rows)} arenas proved smallest for their order, "
            f"{equal} equal to the lowest peak of any order."
        )


def models(shared: Path, only: str, limit: float, board: str, console: Console) -> list[Any]:
    """Every model that can be compiled, beside TFLM."""
    core = find_board(board).core
    table = Table(title=f"models on {board}, arena B")
    table.add_column("model", no_wrap=True)
    _arena_columns(table)
    for title in ("TFLM tensors", "TFLM all", "of tensors", "of all"):
        table.add_column(title, justify="right")
    rows = []
    files = [p for p in (shared / "models").iterdir() if p.suffix in (".tflite", ".onnx")]
    for path in sorted(p for p in files if only in p.name):
        try:
            graph = passes.prepare(load_model(path)).graph
        except ThimbleError:
            continue
        with console.status(path.name):
            graph = rewrite_identities(graph, core, PlanOptions().scheduler)
            problem = choose_views(lower(graph, core))
            row: dict[str, Any] = {"model": path.name, "tflm": None}
            row |= {kind: arenas(p, limit) for kind, p in kinds(problem).items()}
            theirs = tflm_bytes(path) if path.suffix == ".tflite" else None
        cells = ["-"] * 4
        if theirs is not None:
            row["tflm"] = {"tensors_bytes": theirs[0], "all_bytes": theirs[1]}
            ours = row["overlap"]["exact_bytes"]
            cells = [f"{value:,}" for value in theirs]
            cells += [f"{ours / value:.3f}" for value in theirs]
        rows.append(row)
        table.add_row(path.name, *_arena_cells(row), *cells)
    console.print(table)
    _met(rows, console)
    known = [(r["overlap"]["exact_bytes"], r["tflm"]) for r in rows if r["tflm"]]
    if known:
        tensors = statistics.mean(ours / theirs["tensors_bytes"] for ours, theirs in known)
        every = statistics.mean(ours / theirs["all_bytes"] for ours, theirs in known)
        console.print(
            f"Mean over {len(known)} models that TFLM runs: {1 - tensors:.1%} below its tensors, "
            f"{1 - every:.1%} below all of its arena (aim: 25%)."
        )
    return rows


def graphs(shared: Path, only: str, published: Any, limit: float, console: Console) -> list[Any]:
    """Every neutral graph, beside TFLite's allocator and the HMCOS paper."""
    table = Table(title="graphs, arena B (greedy: TFLite's, on our order; nothing in place)")
    table.add_column("graph", no_wrap=True)
    _arena_columns(table)
    for title in ("TFLite's, in place", "HMCOS paper", "of HMCOS"):
        table.add_column(title, justify="right")
    rows = []
    for path in sorted(p for p in (shared / "graphs").glob("*.json") if only in p.name):
        problem = read_neutral(path).memory_problem()
        with console.status(path.name):
            row: dict[str, Any] = {"graph": path.stem}
            row |= {kind: arenas(p, limit) for kind, p in kinds(problem).items()}
        row |= published["graphs"].get(path.stem, {})
        paper = row.get("paper_arena_mib", {}).get("hmcos")
        rows.append(row)
        table.add_row(
            path.stem,
            *_arena_cells(row),
            f"{row['tflite_arena_bytes']:,}" if "tflite_arena_bytes" in row else "-",
            f"{paper * 2**20:,.0f}" if paper else "-",
            f"{row['overlap']['exact_bytes'] / (paper * 2**20):.3f}" if paper else "-",
        )
    console.print(table)
    _met(rows, console)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("shared", type=Path)
    parser.add_argument("--part", choices=("instances", "models", "graphs"))
    parser.add_argument("--only", default="", help="whose name contains this")
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--board", default="netduinoplus2")
    json_option(parser)
    chosen = parser.parse_args()
    published = json.loads(PUBLISHED.read_text())
    console = Console(width=170)
    result: dict[str, Any] = {}
    if chosen.part in (None, "instances"):
        result["instances"] = instances(
            chosen.shared, chosen.only, published, chosen.time_limit, console
        )
    if chosen.part in (None, "models"):
        result["models"] = models(
            chosen.shared, chosen.only, chosen.time_limit, chosen.board, console
        )
    if chosen.part in (None, "graphs"):
        result["graphs"] = graphs(chosen.shared, chosen.only, published, chosen.time_limit, console)
    write_results(chosen.json, result)
    late = [
        r
        for r in result.get("instances", ())
        if r["at_capacity"]["size_bytes"] > r["capacity_bytes"]
    ]
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
