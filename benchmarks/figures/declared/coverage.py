"""Models, operators and kills: what ran, and whether the bytes were right."""

from __future__ import annotations

from collections import Counter
from typing import Any

from benchmarks.figures.figure import Figure
from benchmarks.figures.markdown import table
from benchmarks.figures.rooms import VERIFIED

BOARDS = {
    "microbit": "Cortex-M0, 16 KB",
    "stm32vldiscovery": "Cortex-M3, 8 KB (STM32F100)",
    "netduino2": "Cortex-M3, 128 KB (STM32F205)",
    "netduinoplus2": "Cortex-M4, 192 KB (STM32F405)",
    "mps2-an385": "Cortex-M3",
    "mps2-an385-v6m": "Cortex-M3 as Armv6-M",
    "mps2-an505": "Cortex-M33",
    "mps2-an521": "Cortex-M33 without DSP and FPU",
    "mps3-an547": "Cortex-M55",
}
SWEEP_BOARDS = ("netduinoplus2", "mps2-an500", "mps2-an505", "mps3-an547")


def reach(data: Any) -> str:
    rows = data["rows"]["models"]
    lines = []
    for row in (row for row in rows if row["verdict"] in ("passed", "differs")):
        theirs = row["tflm_arena_bytes"]
        lines.append(
            [
                row["model"],
                f"{row['differing']:,} of {row['elements']:,}",
                row["reference"],
                f"{row['arena_bytes']:,}",
                f"{theirs:,} ({row['arena_bytes'] / theirs:.2f})" if theirs else "-",
                f"{row['instructions'] / 1e6:,.3f}" if row["instructions"] else "-",
            ]
        )
    others = [row for row in rows if row["verdict"] not in ("passed", "differs")]
    told = "".join(f"\n- {row['verdict']}: `{row['model']}`" for row in others)
    headings = ["model", "differing elements", "reference", "arena B", "TFLM B", "M instructions"]
    return table(headings, lines) + (f"\n\nWithout a result:\n{told}" if told else "")


def cores(data: Any) -> str:
    lines = []
    for board, core in BOARDS.items():
        rows = [row for row in data[board] if row["board"] == board]
        counts = Counter(
            "too big" if row["passed"] is None else "equal" if row["passed"] else "other"
            for row in rows
        )
        lines.append([board, core, *(counts[key] for key in ("equal", "other", "too big"))])
    return table(
        ["board", "core", "models with equal bytes", "other results", "do not fit"], lines, 2
    )


def operators(data: Any) -> str:
    lines = []
    rows = data["rows"]
    for place in ("host", *SWEEP_BOARDS):
        found = [row["places"][place] for row in rows if place in row["places"]]
        cases, tried, differing = (
            sum(one[key] for one in found) for key in ("cases", "bytes", "differing")
        )
        lines.append([place, f"{len(found)}", f"{cases:,}", f"{tried:,}", f"{differing:,}"])
    refused = sum(sum(row["refused"].values()) for row in rows)
    drawn = sum(row["cases"] for row in rows)
    shown = table(["on", "kinds", "cases", "bytes compared", "differing"], lines)
    return f"{shown}\n\nWe or LiteRT refuse {refused:,} of {drawn:,} cases."


def kills(data: Any) -> str:
    found = sorted({key for counts in data["rows"].values() for key in counts})
    rows = ([name, *(counts.get(key, 0) for key in found)] for name, counts in data["rows"].items())
    return table(["kill -9", *found], rows)


FIGURES = (
    Figure(
        "reach",
        {"rows": "reach --no-split --models {shared}/models"},
        VERIFIED,
        25,
        tables={"all": reach},
        exits=(0, 1),
    ),
    Figure(
        "reach-cores",
        {board: f"verify --models {{shared}}/models --runs 1 --boards {board}" for board in BOARDS},
        VERIFIED,
        90,
        tables={"all": cores},
        exits=(0, 1),
    ),
    Figure(
        "operators",
        {"rows": "sweep --cases 100 --board-cases 12 --seed 7"},
        (*VERIFIED, "tests/support"),
        60,
        tables={"all": operators},
        exits=(0, 1),
    ),
    Figure(
        "kills",
        {"rows": "kills --runs 200"},
        ("toolchain/files", "toolchain/deployment"),
        8,
        tables={"all": kills},
    ),
)
