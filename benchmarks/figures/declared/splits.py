"""Networks that are split: arenas, slowdowns, goals and code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from statistics import mean
from typing import Any

from benchmarks._partition_goals import GOALS, NETWORKS, TITLES
from benchmarks._partition_report import PUBLISHED, at, below_hmcos
from benchmarks.figures.figure import Figure, Plot
from benchmarks.figures.markdown import or_dash, table
from benchmarks.figures.rooms import BUILDS, GRAPHS, PLANS, TRACES
from benchmarks.partition import OF_THE_PAPER, RUNS
from benchmarks.picture import picture
from benchmarks.stream import BUILT, FILES
from benchmarks.stream import PUBLISHED as STREAM_PUBLISHED

_NAMES = {
    "ic_resnet8": "ResNet8",
    "vww_mobilenet": "VWW",
    "fomo_face": "FOMO",
    "yamnet_256": "YAMNet-256",
    "mcunet_vww": "mcunet-vww1",
    "mobilenet_v2_224": "MobileNetV2 1.0/224",
    "mcunetv2_se_large": "MCUNetV2-SE",
}


def commands(part: str, networks: tuple[str, ...], options: str = "") -> Mapping[str, str]:
    """`benchmarks.partition`, a network at a time."""
    given = f"--models {{shared}}/models {options}".strip()
    return {name: f"partition --part {part} --only {name} {given}" for name in networks}


def _rows(data: Any, part: str) -> list[Any]:
    return [row for found in data.values() for row in found[part]]


def goals(data: Any) -> str:
    rows = {row["goal"]: row for row in _rows(data, "goals")}
    lines = []
    for title, goal in zip(TITLES, GOALS, strict=True):
        row = rows[title]
        if "error" in row:
            lines.append(
                [_NAMES[goal.network], goal.asked, "-", f"{goal.most_bytes:,}", "", "", ""]
            )
            continue
        lines.append(
            [
                _NAMES[goal.network],
                f"`{goal.asked}`" if goal.by_ram else goal.asked,
                f"{row['arena_bytes']:,}",
                f"{goal.most_bytes:,}{' (met)' if _met(goal, row) else ''}",
                f"{row['slowdown']:.2%}",
                f"{row['lower_bound_bytes']:,}",
                f"{row['calls']:,}",
            ]
        )
    headings = ["network", "asked", "arena B", "goal B", "slowdown", "bound B", "calls"]
    met = sum(_met(goal, rows[title]) for title, goal in zip(TITLES, GOALS, strict=True))
    return f"{table(headings, lines, left=2)}\n\n{met} of {len(GOALS)} goals are met."


def _met(goal: Any, row: Any) -> bool:
    if "error" in row:
        return False
    return bool(row["arena_bytes"] <= goal.most_bytes and row["slowdown"] <= goal.slowdown)


def networks(data: Any) -> str:
    rows = _rows(data, "networks")
    lines = []
    for row in rows:
        five = at(row, 0.05)
        lines.append(
            [
                row["network"],
                f"{row['unsplit']['hmcos']['arena_bytes']:,}",
                *(
                    f"{at(row, 0.0 if n < 1 else 0.01, name)['arena_bytes']:,}"
                    for n, name in enumerate(("auto", "auto", "motes"))
                ),
                f"{five['arena_bytes']:,} ({five['slowdown']:.1%})",
                *(f"{at(row, 0.05, name)['arena_bytes']:,}" for name in ("motes", "tinyengine")),
                f"{below_hmcos(row, 0.05):.0%}",
            ]
        )
    headings = ["network", "unsplit, hmcos", "auto 0%", "auto 1%", "motes 1%", "auto 5% (takes)"]
    shown = table([*headings, "motes 5%", "tinyengine 5%", "below hmcos at 5%"], lines)
    aims = PUBLISHED["motes"]
    saved = [mean(below_hmcos(row, budget) for row in rows) for budget in (0.05, 0.01)]
    limit = PUBLISHED["aims"]["bytes_at_5_percent"]
    fit = sum(at(row, 0.05)["arena_bytes"] <= limit for row in rows)
    return (
        f"{shown}\n\n"
        f"- **On average**, arenas are {saved[0]:.1%} below `hmcos` at 5% "
        f"(MOTES: {aims['mean_below_hmcos_at_5_percent']:.0%}), and {saved[1]:.1%} at 1%.\n"
        f"- **Within 256 KB** at 5% are {fit} of {len(rows)} networks (MOTES: three)."
    )


def runs(data: Any) -> str:
    rows = (
        [
            row["network"],
            f"{row['unsplit_arena_bytes']:,}",
            f"{row['split_arena_bytes']:,}",
            f"{row['slowdown']:.2%}",
            f"{row['predicted_slowdown']:.2%}",
            "{:,} > {:,}".format(*row["code_bytes"]),
            "equal" if row["equal"] else "differ",
        ]
        for row in _rows(data, "runs")
    )
    headings = [
        "network",
        "arena B",
        "split B",
        "slowdown traced",
        "predicted",
        "code B",
        "outputs",
    ]
    return table(headings, rows)


def code(data: Any) -> str:
    rows = []
    for row in _rows(data, "flash"):
        a, b = row["unsplit"], row["split"]
        ratio = b["code_bytes"] / a["code_bytes"]
        rows.append(
            [
                row["network"],
                f"{a['calls']:,} > {b['calls']:,}",
                f"{a['code_bytes']:,} > {b['code_bytes']:,} (x {ratio:.2f})",
                f"{a['lines']:,} > {b['lines']:,}",
            ]
        )
    return table(["network", "calls", "code and tables, bytes", "lines of C"], rows)


def table_3(data: Any) -> str:
    published = PUBLISHED["motes"]["table_3"]
    rows = []
    for row in data["rows"]["table_3"]:
        theirs = published["factors"][str(row["factor"])]
        rows.append(
            [
                row["factor"],
                f"{row['blocks']:,}",
                f"{row['cycles'] / row['unsplit_cycles'] - 1:.1%}",
                f"{row['copy_cycles'] / row['cycles']:.1%}",
                f"{theirs['us'] / published['unsplit_us'] - 1:.1%}",
                f"{theirs['block_concat_us'] / theirs['us']:.1%}",
            ]
        )
    headings = ["side of a tile", "tiles", "overhead", "copies", "MOTES's overhead"]
    unsplit = data["rows"]["table_3"][0]["unsplit_cycles"]
    shown = table([*headings, "its BlockConcat"], rows)
    return f"{shown}\n\nUnsplit, the convolution takes {unsplit:,} cycles."


def stream(data: Any) -> str:
    theirs = _theirs()
    rows = []
    for name, found in ((name, one) for some in data.values() for name, one in some.items()):
        for row in found:
            bytes_of_theirs = theirs.get(name, {}).get(row["limit"])
            first = row is found[0]
            rows.append(
                [
                    name if first else "",
                    f"x {row['limit']}" if row["limit"] else "none",
                    f"{row['arena_bytes']:,}",
                    f"x {row['cycles_factor']:.3f}",
                    f"x {row['products_factor']:.3f}",
                    or_dash(bytes_of_theirs),
                    f"{row['image_bytes']:,}" if first else "",
                    f"{row['unsplit_bytes']:,}" if first else "",
                ]
            )
    headings = ["network", "limit", "arena B", "cycles", "products", "msf-CNN B", "image B"]
    return table([*headings, "unsplit with it B"], rows, left=2)


def picture_values(data: Any) -> Mapping[str, str]:
    before, after = (f"{panel['arena_bytes']:,}" for panel in data["panels"])
    return {"whole": before, "split": after}


def _theirs() -> Mapping[str, Mapping[str, int]]:

    found: Mapping[str, Mapping[str, int]] = json.loads(STREAM_PUBLISHED.read_text())["networks"]
    return found


FIGURES = (
    Figure(
        "arena",
        {
            "panels": "picture {shared}/models/mlperf_tiny_vww_mbv1_025_96_int8.tflite "
            "--board nucleo-l4r5zi"
        },
        PLANS,
        1,
        plots={
            "arena": Plot(
                "The arena of a network before and after its operators are split",
                lambda data: picture(data["panels"]),
            )
        },
        values=picture_values,
    ),
    Figure("goals", commands("goals", NETWORKS), PLANS, 25, tables={"all": goals}),
    Figure("networks", commands("networks", OF_THE_PAPER), PLANS, 120, tables={"all": networks}),
    Figure("split-runs", commands("runs", RUNS), TRACES, 30, tables={"all": runs}),
    Figure("split-code", commands("flash", (*RUNS, "fpnas")), BUILDS, 20, tables={"all": code}),
    Figure(
        "table3",
        {"rows": "partition --part table3"},
        (*TRACES, *GRAPHS),
        3,
        tables={"all": table_3},
    ),
    Figure(
        "stream",
        {name: f"stream {{shared}}/models --only {name}" for name in (BUILT, *FILES)},
        PLANS,
        25,
        tables={"all": stream},
    ),
)
