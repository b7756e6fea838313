"""Predicted and modelled cycles: beside traces, and beside silicon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from benchmarks.cost import FITTED
from benchmarks.figures.declared.mlperf import MODELS
from benchmarks.figures.figure import Figure
from benchmarks.figures.markdown import millions, short, table
from benchmarks.figures.rooms import TRACES
from benchmarks.predictions import MOST, Errors, markdown

CORES = (
    "cortex-m0plus",
    "cortex-m3",
    "cortex-m4",
    "cortex-m33",
    "cortex-m7",
    "cortex-m55",
    "cortex-m85",
)
TASKS = ("AD", "IC", "KWS", "VWW")


def _errors(data: Any) -> list[Errors]:
    return [Errors(**row) for rows in data.values() for row in rows]


def predictions(data: Any) -> str:
    return markdown(_errors(data))


def worst(data: Any) -> str:
    """Large operators that are off by more than a tenth."""
    rows = [
        [one.model, one.column, name, f"{error:+.0%}"]
        for one in _errors(data)
        for name, error in one.large.items()
        if abs(error) > MOST
    ]
    return table(["model", "core or chip", "operator", "error"], rows, left=3)


def cores(data: Any) -> str:
    """Million cycles of MLPerf Tiny's models on each core, with memories that never wait."""
    found = {(one.model, one.column): one.cycles for one in _errors(data)}
    rows = ([short(m), *(millions(found[m, core]) for core in CORES)] for m in MODELS)
    return table(["model", *(core.replace("cortex-", "").upper() for core in CORES)], rows)


def core_values(data: Any) -> Mapping[str, str]:
    found = {(one.model, one.column): one for one in _errors(data)}
    less = [1 - found[m, "cortex-m33"].cycles / found[m, "cortex-m4"].cycles for m in MODELS]
    means = [
        sum(abs(one.total) for one in of) / len(of)
        for of in ([one for one in found.values() if one.column == core] for core in CORES)
    ]
    return {
        "m33_less": f"{min(less):.0%} to {max(less):.0%}",
        "totals": f"{min(means):.1%} to {max(means):.1%}",
    }


def _software(rows: Sequence[Any]) -> Mapping[tuple[str, str], Mapping[str, Any]]:
    """Rows by model, of each target and software."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        found.setdefault((row["target"], row["software"]), {})[row["model"]] = row
    return found


def arm(data: Any) -> str:
    """CMSIS-NN's kernels on MLPerf Tiny's models, modelled and measured."""
    lines = []
    for (target, software), rows in _software(data["rows"]).items():
        if rows.keys() != set(TASKS) or rows["AD"]["kernels"] != "cmsis-nn":
            continue
        lines.append([f"**{target}: {software}**, measured", *_figures(rows, "published"), ""])
        option = rows["AD"]["optimisation"]
        for name, key in (("core", "core"), ("fetches", "fetch"), ("data", "data")):
            lines.append([f"modelled, {option}: {name}", *_figures(rows, key), ""])
        ratios = [rows[task]["ratio"] for task in TASKS]
        lines.append(
            ["model / measured", *(f"{r:.2f}" for r in ratios), f"{geometric_mean(ratios):.2f}"]
        )
    return table(["CMSIS-NN's kernels", *TASKS, "mean"], lines)


def _figures(rows: Mapping[str, Any], key: str) -> list[str]:
    return [f"{rows[task][key]:.3f}" for task in TASKS]


def ours(data: Any) -> str:
    """Our kernels beside the software of others on the same chip: model / measured."""
    lines = [
        [f"{target}: {software}", *(f"{rows[t]['ratio']:.2f}" if t in rows else "-" for t in TASKS)]
        for (target, software), rows in _software(data["rows"]).items()
        if next(iter(rows.values()))["kernels"] == "auto"
    ]
    return table(["ours beside", *TASKS], lines)


def functions(data: Any) -> str:
    """Single functions of CMSIS-NN."""
    lines = [
        [
            row["model"],
            f"{row['target']}: {row['software']}",
            f"{row['published']:.3f}",
            f"{row['total']:.3f}",
            f"{row['ratio']:.2f}",
        ]
        for row in data["rows"]
        if row["model"] not in TASKS
    ]
    return table(["function", "of", "measured", "model", "model / measured"], lines, left=2)


FIGURES = (
    Figure(
        "predictions",
        {board: f"predictions --boards {board} --models {{shared}}/models" for board in FITTED},
        TRACES,
        60,
        tables={"all": predictions, "worst": worst, "cores": cores},
        values=core_values,
    ),
    Figure(
        "silicon",
        {"rows": "silicon --models {shared}/models"},
        (*TRACES, "toolchain/timing/kernel_shapes.py"),
        10,
        tables={"arm": arm, "ours": ours, "functions": functions},
    ),
)
