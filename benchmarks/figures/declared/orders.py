"""Orders and arenas: schedulers on published graphs, allocators beside other tools."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean
from typing import Any

from benchmarks._plot import scatter
from benchmarks.figures.figure import Figure, Plot
from benchmarks.figures.markdown import or_dash, table
from benchmarks.figures.rooms import ARENAS, ORDERS, PLANS
from benchmarks.schedule import ABLATIONS

METHODS = {"rpo": "RPO", "kahn": "Kahn", "serenity": "SERENITY", "hmcos": "HMCOS", "ilp": "ILP"}
_ABLATED = (
    "swiftnet_cell_a",
    "swiftnet_cell_b",
    "swiftnet_cell_c",
    "swiftnet_full",
    "darts_cifar10",
    "hrnet_w18_small_v1_224",
)
_READS = (*ORDERS, "toolchain/frontends/neutral.py")


def _peak(row: Any) -> str:
    return f"{row['peak_bytes']:,}{'*' if row['proved_optimal'] else ''}"


def graphs(data: Any) -> str:
    lines = []
    for row in data["rows"]["graphs"]:
        methods, own = row["methods"], row["published"].get("hmcos_measured", {})
        theirs = f"{own['peak_bytes']:,}, {own['seconds']}" if own.get("peak_bytes") else ""
        seconds = f"{methods['auto']['processor_seconds']:.2f}"
        cells = (_peak(methods[name]) for name in (*METHODS, "auto"))
        lines.append([row["graph"], row["nodes"], *cells, seconds, theirs])
    headings = ["graph", "nodes", *METHODS.values(), "`auto`", "s", "HMCOS's C++: peak, s"]
    found = data["rows"]["summary"]
    total = sum(row["methods"]["auto"]["processor_seconds"] for row in data["rows"]["graphs"])
    return (
        f"{table(headings, lines)}\n\n"
        f"`*` proved optimal. `auto` proves {found['proved']} of {found['graphs']} in "
        f"{total:.1f} s of processor time together. On the graphs for which HMCOS's own C++ "
        f"finishes, `auto` takes {found['same_graphs_auto_seconds']:.1f} s and HMCOS's C++ "
        f"{found['same_graphs_hmcos_seconds']:.0f} s."
    )


def ablations(data: Any) -> str:
    lines = []
    for row in (row for found in data.values() for row in found["ablations"]):
        cells = (row["variants"][name] for name in ABLATIONS)
        lines.append(
            [row["graph"], *(f"{_peak(one)} ({one['processor_seconds']:.2f})" for one in cells)]
        )
    return table(["graph", *ABLATIONS], lines)


def scaling(data: Any) -> str:
    lines = []
    for row in data["rows"]["scaling"]:
        gap = row["peak_bytes"] / row["lower_bound_bytes"] - 1
        proved = "proved" if not gap else f"{gap:.1%}"
        lines.append(
            [row["family"], f"{row['nodes']:,}", proved, f"{row['processor_seconds']:.2f}"]
        )
    return table(["family", "operators", "gap", "processor s"], lines)


def scaling_plot(data: Any) -> str:
    series: dict[str, list[tuple[float, float, bool]]] = {}
    for row in data["rows"]["scaling"]:
        point = (row["nodes"], max(row["processor_seconds"], 1e-3), row["proved_optimal"])
        series.setdefault(row["family"], []).append(point)
    title = "auto: processor time to the proof (filled) or to the limit (empty)"
    return scatter(title, "operators", "seconds", series)


def instances(data: Any) -> str:
    lines = []
    for row in data["rows"]["instances"]:
        at, least = row["at_capacity"], row["smallest"]
        smallest = min(at["size_bytes"], least["size_bytes"])
        lines.append(
            [
                row["instance"].partition(".")[0],
                f"{row['buffers']:,}",
                f"{row['capacity_bytes']:,}",
                f"{at['size_bytes']:,}",
                f"{at['seconds']:.2f}",
                f"{row['minimalloc_seconds']:.2f}",
                f"{smallest:,}",
                "proved" if smallest == least["bound_bytes"] else f"{least['bound_bytes']:,}",
            ]
        )
    headings = ["instance", "buffers", "capacity B", "within it B", "s", "MiniMalloc s"]
    return table([*headings, "smallest found B", "bound B"], lines)


def _proved(rows: Any) -> str:
    found = [row["overlap"] for row in rows]
    proved = sum(one["exact_bytes"] == one["bound_bytes"] for one in found)
    equal = sum(one["exact_bytes"] == one["lowest_peak_bytes"] for one in found)
    return (
        f"{proved} of {len(found)} arenas are proved smallest for their order; {equal} equal the "
        "lowest peak of any order."
    )


def models(data: Any) -> str:
    rows = data["rows"]["models"]
    lines = []
    for row in rows:
        ours, theirs = row["overlap"]["exact_bytes"], row["tflm"]
        cells = ["-", "-", "-"]
        if theirs:
            every = theirs["all_bytes"]
            cells = [f"{theirs['tensors_bytes']:,}", f"{every:,}", f"{ours / every:.2f}"]
        lines.append([row["model"], f"{row['apart']['greedy_bytes']:,}", f"{ours:,}", *cells])
    known = [(row["overlap"]["exact_bytes"], row["tflm"]) for row in rows if row["tflm"]]
    every = 1 - mean(ours / theirs["all_bytes"] for ours, theirs in known)
    tensors = 1 - mean(ours / theirs["tensors_bytes"] for ours, theirs in known)
    headings = ["model", "greedy, nothing shared B", "ours B", "TFLM, tensors B", "TFLM, all B"]
    return (
        f"{table([*headings, 'ours / all'], lines)}\n\n{_proved(rows)} On the {len(known)} models "
        f"that TFLM runs, ours are {every:.1%} below its arena on average, and {tensors:.1%} below "
        "the bytes that its planner needs for tensors alone."
    )


def published(data: Any) -> str:
    rows = data["rows"]["graphs"]
    lines = []
    for row in rows:
        ours = row["in_place"]["exact_bytes"]
        paper = row.get("paper_arena_mib", {}).get("hmcos")
        theirs = None if paper is None else round(paper * 2**20)
        ratio = "-" if theirs is None else f"{ours / theirs:.2f}"
        tflite = row.get("tflite_arena_bytes")
        lines.append([row["graph"], f"{ours:,}", or_dash(tflite), or_dash(theirs), ratio])
    headings = ["graph", "ours, in place B", "TFLite's B", "HMCOS's paper B", "ours / HMCOS"]
    return f"{table(headings, lines)}\n\n{_proved(rows)}"


def _arena(part: str) -> Mapping[str, str]:
    return {"rows": f"arena {{shared}} --part {part} --time-limit 10"}


FIGURES = (
    Figure(
        "schedulers",
        {"rows": "schedule {shared}/graphs --only graphs --time-limit 4"},
        _READS,
        8,
        tables={"all": graphs},
    ),
    Figure(
        "ablations",
        {
            name: f"schedule {{shared}}/graphs --only ablations --time-limit 5 --match {name}"
            for name in _ABLATED
        },
        _READS,
        3,
        tables={"all": ablations},
    ),
    Figure(
        "schedule-scaling",
        {"rows": "schedule {shared}/graphs --only scaling --time-limit 30"},
        _READS,
        8,
        tables={"all": scaling},
        plots={"schedule-scaling": Plot("Time against operators", scaling_plot)},
    ),
    Figure(
        "arena-instances",
        _arena("instances"),
        (*ARENAS, "toolchain/frontends/minimalloc.py"),
        3,
        tables={"all": instances},
    ),
    Figure("arena-models", _arena("models"), PLANS, 12, tables={"all": models}),
    Figure(
        "arena-graphs",
        _arena("graphs"),
        (*ARENAS, "toolchain/frontends/neutral.py"),
        10,
        tables={"all": published},
    ),
)
