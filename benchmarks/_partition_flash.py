"""What blocks cost in flash: networks compiled unsplit and split, nothing run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from toolchain.boards import board as find_board
from toolchain.codegen import generate
from toolchain.device.build import build
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.memory.firmware_size import code_estimate_bytes
from toolchain.memory.plan import Plan
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.progress import Report

AIM = 1.5
"""Code and tables of a split plan over those of the unsplit one, at most."""


def _compiled(plan: Plan, board: str) -> dict[str, int]:
    """Bytes of the linked firmware apart from the model's constants: code, and tables of blocks."""
    target = find_board(board)
    sources = generate(plan, target.core, cmsis_nn.find(), name="network")
    with tempfile.TemporaryDirectory(prefix="thimble-") as folder:
        sizes = build([(plan, sources)], target, Path(folder)).sizes
    return {
        "calls": len(sources.calls),
        "code_bytes": sizes.code_bytes + sizes.weight_bytes - sources.weight_bytes,
        "estimated_bytes": code_estimate_bytes(plan),
        "weight_bytes": sources.weight_bytes,
        "data_bytes": sizes.data_bytes + sizes.bss_bytes,
        "lines": sources.files["network.c"].count("\n"),
    }


def measure_flash(
    graphs: Iterable[tuple[str, Graph]], board: str, budget: float, seconds: float, report: Report
) -> Iterator[Any]:
    """Networks whole and split within `budget`."""
    target = find_board(board)
    for name, graph in graphs:
        report(f"{name}: compiling")
        options = PlanOptions(max_slowdown=budget, split_seconds=seconds)
        yield {
            "network": name,
            "unsplit": _compiled(plan_graph(graph, target, PlanOptions().unsplit), board),
            "split": _compiled(plan_graph(graph, target, options), board),
        }


def show_flash(rows: Sequence[Any], board: str, budget: float, console: Console) -> None:
    """A line for each network."""
    table = Table(
        title=f"Flash of firmware for {board} apart from constants; split at {budget:.0%}"
    )
    table.add_column("network")
    for title in ("calls", "split", "code + tables B", "split", f"ratio (aim {AIM})", "B a call"):
        table.add_column(title, justify="right")
    for title in ("estimated", "split", "constants B", "split", ".data + .bss B", "split"):
        table.add_column(title, justify="right")
    for title in ("lines of C", "split"):
        table.add_column(title, justify="right")
    for row in rows:
        whole, parts = row["unsplit"], row["split"]
        more = parts["calls"] - whole["calls"]
        growth = parts["code_bytes"] - whole["code_bytes"]
        cells: list[str] = []
        for key in ("calls", "code_bytes"):
            cells += (f"{whole[key]:,}", f"{parts[key]:,}")
        cells.append(f"{parts['code_bytes'] / whole['code_bytes']:.2f}")
        cells.append(f"{growth / more:.1f}" if more else "-")
        for key in ("estimated_bytes", "weight_bytes", "data_bytes", "lines"):
            cells += (f"{whole[key]:,}", f"{parts[key]:,}")
        table.add_row(row["network"], *cells)
    console.print(table)
    console.print("B a call: growth over the calls that the split adds. Nothing of this was run.")
