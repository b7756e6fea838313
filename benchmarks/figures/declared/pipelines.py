"""Edge TPU pipelines as predicted, and sweeps on many workers."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean
from typing import Any

from benchmarks.figures.figure import Figure
from benchmarks.figures.markdown import or_dash, table
from benchmarks.figures.rooms import PIPELINES, PLANS

MIB = 1 << 20


def _part(part: str) -> Mapping[str, str]:
    return {"rows": f"edgetpu --parts {part} --shared {{shared}}"}


def networks(data: Any) -> str:
    """What each objective's plans are predicted to gain over Google's cut."""
    rows = data["rows"]["networks"]["rows"]
    greedy = {(r["network"], r["sticks"]): r for r in rows if r["objective"] == "greedy"}
    lines = []
    for objective in dict.fromkeys(row["objective"] for row in rows):
        if objective == "greedy":
            continue
        found = [row for row in rows if row["objective"] == objective]
        gains = [
            greedy[row["network"], row["sticks"]]["period_ms"] / row["period_ms"] for row in found
        ]
        seconds = [row["cpu_seconds"] for row in found]
        slower = sum(gain < 1 - 1e-9 for gain in gains)
        lines.append(
            [
                f"`{objective}`",
                f"{sum(row['proved_optimal'] for row in found)} of {len(found)}",
                f"{mean(gains):.2f}",
                f"{max(gains):.2f}",
                f"{slower} of {len(gains)}",
                f"{mean(seconds):.2f}",
                f"{max(seconds):.2f}",
            ]
        )
    headings = ["objective", "proved", "times as fast as Google's cut", "at most", "slower"]
    return table([*headings, "CPU s on average", "at most"], lines)


def large(data: Any) -> str:
    rows = (
        [
            row["model"],
            f"{row['operators']:,}",
            f"{row['param_bytes'] / MIB:.1f}",
            or_dash(row["greedy_ms"], ".2f"),
            or_dash(row["contiguous_ms"], ".2f"),
            f"{row['period_ms']:.2f}",
            f"{row['bound_ms']:.2f}",
            "optimal" if row["proved_optimal"] else f"{row['gap']:.1%}",
            f"{row['cpu_seconds']:.1f}",
        ]
        for row in data["rows"]["large"]["rows"]
    )
    headings = ["model", "operators", "parameters MiB", "greedy", "contiguous", "ours", "bound"]
    return table([*headings, "gap", "CPU s"], rows)


def rates(data: Any) -> str:
    rows = data["rows"]["rates"]["rows"]
    lines = []
    for row in rows:
        others = (row[key] for key in ("all on one", "greedy", "least period"))
        lines.append(
            [
                " + ".join(row["models"]),
                row["sticks"],
                f"{row['rate']:.1f}",
                *("overloaded" if other is None else f"{other:.1f}" for other in others),
                f"**{row['mean_ms']:.1f}**",
                "proved" if row["proved"] else f"{row['bound_ms']:.1f}",
                f"{row['simulated_ms']:.1f}",
                f"{row['p99_ms']:.0f} / {row['simulated_p99_ms']:.0f}",
                f"{row['bears']:.1f}",
                f"{row['host_mean_ms']:.1f}",
            ]
        )
    headings = ["models", "sticks", "requests/s", "on one", "greedy", "least period", "ours"]
    more = ["bound", "simulated", "p99, simulated", "bears/s", "and a host"]
    known = [row["greedy"] / row["mean_ms"] for row in rows if row["greedy"]]
    least = [row["least period"] / row["mean_ms"] for row in rows if row["least period"]]
    off = [abs(row["mean_ms"] / row["simulated_ms"] - 1) for row in rows]
    proved = sum(row["proved"] for row in rows)
    return (
        f"{table([*headings, *more], lines)}\n\n"
        f"- On average, greedy plans take {mean(known):.2f} times as long as ours where they are "
        f"not overloaded ({len(rows) - len(known)} of {len(rows)} are), and plans of the least "
        f"period {mean(least):.2f} times.\n"
        f"- Predicted and simulated means differ by {mean(off):.1%} on average, {max(off):.1%} at "
        "most.\n"
        f"- {proved} of {len(rows)} plans are proved optimal."
    )


def together(data: Any) -> str:
    rows = [row for row in data["rows"]["together"]["rows"] if row["objective"] == "period"]
    lines = (
        [
            " + ".join(row["models"]),
            row["sticks"],
            f"{row['period_ms']:.2f}",
            "optimal" if row["gap"] <= 0 else f"gap {row['gap']:.2%}",
            or_dash(row["apart_ms"], ".2f"),
            f"{row['cpu_seconds']:.1f}",
        ]
        for row in rows
    )
    headings = ["models", "sticks", "together, ms", "proved", "on sticks of their own, ms", "CPU s"]
    return table(headings, lines)


def pools(data: Any) -> str:
    rows = data["rows"]["speeds"]
    first: dict[str, Any] = {}
    lines = []
    for row in rows:
        one = first.setdefault(row["pool"], row)
        cells = [row["pool"], row["workers"]]
        for key in ("plans_seconds", "waiting_seconds"):
            gain = "" if row is one else f" ({one[key] / row[key]:.1f}x)"
            cells.append(f"{row[key]:.1f}{gain}")
        lines.append([*cells, f"{row['overhead_ms']:.2f}"])
    return table(["pool", "workers", "plans, s", "waiting, s", "overhead a task, ms"], lines)


def thousand(data: Any) -> str:
    rows = (
        [
            f"{row['task_seconds']:g} s",
            f"{row['own_ms']:.2f}",
            f"{row['busy_share']:.0%}",
            f"{row['tasks_a_second']:,.0f}",
        ]
        for row in data["rows"]["simulated"]
    )
    headings = ["a task takes", "dispatching a task, ms", "workers are busy", "tasks a second"]
    return table(headings, rows)


def candidates(data: Any) -> str:
    found = data["rows"]["candidates"].items()
    rows = ([name, f"{first:.0f}", f"{later:.0f}"] for name, (first, later) in found)
    return table(["MobileNetV2", "first candidates a second", "later ones"], rows)


FIGURES = (
    Figure(
        "edgetpu-networks",
        _part("networks"),
        PIPELINES,
        5,
        tables={"all": networks},
        exits=(0, 1),
    ),
    Figure("edgetpu-large", _part("large"), PIPELINES, 2, tables={"all": large}, exits=(0, 1)),
    Figure("edgetpu-rates", _part("rates"), PIPELINES, 3, tables={"all": rates}, exits=(0, 1)),
    Figure(
        "edgetpu-together", _part("together"), PIPELINES, 6, tables={"all": together}, exits=(0, 1)
    ),
    Figure(
        "sweeps",
        {"rows": "workers --tasks 24 --dask"},
        (*PLANS, "toolchain/sweep"),
        4,
        tables={"pools": pools, "thousand": thousand, "candidates": candidates},
    ),
)
