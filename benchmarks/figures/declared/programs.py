"""What starting and planning take, and small benchmarks of kernels and weights."""

from __future__ import annotations

from typing import Any

from benchmarks._plot import scatter
from benchmarks.figures.figure import Figure, Plot
from benchmarks.figures.markdown import table
from benchmarks.figures.rooms import BUILDS, GRAPHS, PLANS, TRACES

_CHIPS = {
    "mps2-an386": ("Cortex-M4", "STM32L4R5"),
    "mps2-an505": ("Cortex-M33", "STM32U575"),
    "mps2-an500": ("Cortex-M7", "STM32H7A3"),
}
_KERNEL_BOARDS = {
    "Cortex-M4": "netduinoplus2",
    "Cortex-M33": "mps2-an505",
    "Cortex-M55": "mps3-an547",
}
_FITTED = ("ic_resnet8", "kws_dscnn", "vww_mbv1_025_96", "ad_fcae")


def _two(value: float) -> str:
    """Two digits, and no sign of what rounds to nothing."""
    return f"{round(value, 2) + 0.0:.2f}"


def start(data: Any) -> str:
    rows = ([f"`{row['command']}`", _two(row["more_processor_seconds"])] for row in data["rows"])
    return table(["command", "processor s"], rows)


def growth(data: Any) -> str:
    rows = (
        [
            row["kind"],
            f"{row['operators']:,}",
            f"{row['seconds']:.1f}",
            f"{row['megabytes']:.0f}",
            "-" if row["exponent"] is None else f"{row['exponent']:.2f}",
        ]
        for row in _grown(data)
    )
    return table(["network", "operators", "processor s", "MB", "exponent"], rows)


def growth_plot(data: Any) -> str:
    series: dict[str, list[tuple[float, float, bool]]] = {}
    for row in _grown(data):
        series.setdefault(row["kind"], []).append((row["operators"], row["seconds"], True))
    return scatter("planning: processor seconds by size", "operators", "seconds", series)


def _grown(data: Any) -> list[Any]:
    return [row for rows in data.values() for row in rows]


def fits(data: Any) -> str:
    rows = (
        [row["model"], f"{row['hold_it']} of {row['boards']}", f"{row['seconds']:.1f}"]
        for row in data["rows"]
    )
    return table(["model", "boards that hold it", "processor s"], rows)


def requests(data: Any) -> str:
    rows = []
    for row in (row for some in data.values() for row in some):
        if "error" in row:
            rows.append([row["model"], row["asked"], "does not fit", "-", "-", "-"])
            continue
        slowdown = "-" if row["slowdown"] is None else f"{row['slowdown']:.2%}"
        cells = f"{row['arena_bytes']:,}", f"{row['time']:,}", slowdown, f"{row['seconds']:.1f}"
        rows.append([row["model"], row["asked"], *cells])
    headings = ["model", "asked", "arena B", "predicted cycles", "slowdown", "processor s"]
    return table(headings, rows, left=2)


def flash(data: Any) -> str:
    rows = (
        [row["model"], row["board"], f"{row['linked_bytes']:,}", f"{row['error']:+.1%}"]
        for row in data["rows"]
    )
    return table(["model", "board", "linked B", "error of the estimate"], rows, left=2)


def four_bits(data: Any) -> str:
    shapes: dict[str, list[str]] = {}
    flash: dict[str, str] = {}
    for row in data["rows"]:
        name = f"{row['operator'].replace('_', ' ')}, {row['shape']}"
        four, eight, macs = row["four"], row["eight"], row["macs"]
        for where in ("core", "chip"):
            ratio = four[where] / eight[where]
            text = f"{four[where] / macs:.2f} / {eight[where] / macs:.2f} ({ratio:.2f})"
            shapes.setdefault(name, []).append(text)
        flash.setdefault(name, f"{four['flash_bytes']:,} / {eight['flash_bytes']:,}")
    boards = dict.fromkeys(row["board"] for row in data["rows"])
    headings = [title for board in boards for title in _CHIPS[board]]
    rows = ([name, *cells, flash[name]] for name, cells in shapes.items())
    return table(["layer", *headings, "flash B"], rows)


def kernels(data: Any) -> str:
    rows = []
    for number, first in enumerate(next(iter(data.values()))):
        cells = []
        for found in data.values():
            row = found[number]
            ours, theirs, macs = row["thimble"], row["cmsis_nn"], row["macs"] or 1
            ratio = ours["cycles"] / theirs["cycles"]
            cells.append(
                f"{ours['cycles'] / macs:.2f} / {theirs['cycles'] / macs:.2f} ({ratio:.2f})"
            )
        outputs = f" -> {first['outputs']}" if first["outputs"] else ""
        shape = f"{first['input']}{outputs}, {first['kernel']}"
        rows.append([f"{first['operator'].replace('_', ' ')} {shape}", *cells])
    return table(["operator, input, kernel/stride", *data], rows)


FIGURES = (
    Figure("start", {"rows": "start --runs 7"}, ("toolchain", "thimble"), 1, tables={"all": start}),
    Figure(
        "planning-growth",
        {
            kind: f"planning --kinds {kind} --sizes {sizes}"
            for kind, sizes in {
                "chain": "10,30,100,300,1000",
                "residual": "10,30,100,300",
                "cells": "10,30,100,300",
            }.items()
        },
        (*PLANS, *GRAPHS),
        10,
        tables={"table": growth},
        plots={"planning-growth": Plot("Planning time against operators", growth_plot)},
    ),
    Figure(
        "planning-fits",
        {
            "rows": "planning --fits "
            + " ".join(f"{{shared}}/models/mlperf_tiny_{name}_int8.tflite" for name in _FITTED)
        },
        PLANS,
        2,
        tables={"all": fits},
    ),
    Figure(
        "planning-requests",
        {
            name: f"planning {{shared}}/models/mlperf_tiny_{name}_int8.tflite"
            for name in ("ic_resnet8", "vww_mbv1_025_96")
        },
        PLANS,
        2,
        tables={"all": requests},
    ),
    Figure("flash", {"rows": "flash --models {shared}/models"}, BUILDS, 2, tables={"all": flash}),
    Figure("four-bits", {"rows": "four_bits"}, TRACES, 5, tables={"all": four_bits}),
    Figure(
        "kernels",
        {core: f"kernels --board {board}" for core, board in _KERNEL_BOARDS.items()},
        (*BUILDS, "toolchain/cycles"),
        4,
        tables={"all": kernels},
    ),
)
