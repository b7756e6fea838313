"""Splitting operators: what it saves, what it costs, beside MOTES, TinyEngine and HMCOS.

    python -m benchmarks.partition [--part networks|runs|table3] [--only NAME,..] [--models DIR]
                                   [--board BOARD] [--seconds S] [--json FILE]

networks  peak and arena unsplit under three schedulers; the arena split at several slowdowns, and
          the least; the search's time; the published figures
runs      whole networks in QEMU, unsplit and split: bytes compared, slowdown measured
table3    one convolution in blocks of falling size (MOTES, table 3), counted in QEMU

The networks are the zoo's (`benchmarks.zoo`) and those files of DIR that are there. Slowdowns are
predicted by the cost model, except where the table says measured. Peaks and arenas hold scratch,
inputs and outputs. `partition_published.json` holds the others' figures and where they are from.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import zoo
from benchmarks._partition_runs import measure_runs, measure_table_3
from toolchain import load_model, passes
from toolchain.boards import board as find_board
from toolchain.ir import Graph, Plan
from toolchain.partition import Front
from toolchain.planner import PlanOptions, plan_graph, split_front, split_plan

PUBLISHED = json.loads(Path(__file__).with_name("partition_published.json").read_text("utf-8"))
SHARED_MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
FILES = {
    "mcunetv2_se_large": "tinyengine_mcunetv2_large_int8.tflite",
    "mcunet_in4": "gw_mcunet_512kb_2mb_imagenet_int8.tflite",
    "mcunet_vww": "tinyengine_mcunet_vww_int8.tflite",
    "fomo_face": "openmv_fomo_face_detection.tflite",
}
OF_THE_PAPER = (
    "nasnet_a_cifar10",
    "nasnet_a_imagenet",
    "darts_cifar10",
    "darts_imagenet",
    "fpnas",
    "mobilenet_v2_224",
    "mcunetv2_se_large",
    "bert_tiny",
)
OTHERS = (
    "amoebanet_a_cifar10",
    "amoebanet_a_imagenet",
    "randwire",
    "swiftnet_cell_a",
    "mcunet_in4",
    "fomo_face",
)
RUNS = (
    "nasnet_a_cropped",
    "darts_cropped",
    "mobilenet_v2_035_160",
    "bert_tiny_128",
    "randwire_cell",
    "swiftnet_cell_a",
    "fomo_face",
    "mcunet_vww",
)
SCHEDULERS = ("rpo", "hmcos", "auto")
BUDGETS = (0.0, 0.01, 0.02, 0.05, 0.1)
_TRIED = 5
"""Points of the front that are placed for a budget, from the smallest predicted peak on."""

Report = Callable[[str], None]


def graph_of(name: str, models: Path) -> Graph | None:
    """A network ready to compile; None where its file is absent."""
    if name in zoo.NETWORKS:
        return passes.prepare(zoo.network(name)).graph
    path = models / FILES[name]
    return passes.prepare(load_model(path)).graph if path.is_file() else None


@dataclass(frozen=True)
class Searched:
    """The plan as it is, and the ways to split it that the search found."""

    whole: Plan
    front: Front

    def within(self, slowdown: float) -> Plan:
        """The smallest arena among the points that cost at most so much."""
        best = self.whole
        points = [p for p in self.front.points if self.front.slowdown(p) <= slowdown]
        for point in reversed(points[-_TRIED:]):
            if point.peak_bytes >= best.arena.size_bytes:
                break
            made = split_plan(self.whole, self.front, point)
            if made.arena.size_bytes < best.arena.size_bytes:
                best = made
        return best


def network_row(name: str, graph: Graph, board: str, seconds: float, report: Report) -> Any:
    """All figures of one network, as the JSON holds them."""
    target = find_board(board)
    row: dict[str, Any] = {"network": name, "operators": len(graph.ops), "unsplit": {}}
    for method in SCHEDULERS:
        report(f"{name}: {method}")
        plan = plan_graph(graph, target, PlanOptions(scheduler=method))
        row["unsplit"][method] = {
            "peak_bytes": max(plan.step_bytes),
            "arena_bytes": plan.arena.size_bytes,
        }
    report(f"{name}: search")
    wall, processor = time.perf_counter(), time.process_time()
    found = Searched(plan, split_front(plan, PlanOptions(split_seconds=seconds)))
    row["search"] = {
        "seconds": round(time.perf_counter() - wall, 1),
        "stopped": found.front.stopped,
        "points": len(found.front.points),
    }
    row["split"] = []
    for budget in BUDGETS:
        report(f"{name}: within {budget:.0%}")
        made = found.within(budget)
        row["split"].append(
            {
                "budget": budget,
                "arena_bytes": made.arena.size_bytes,
                "peak_bytes": max(made.step_bytes),
                "slowdown": round(made.slowdown, 5),
                "calls": made.calls,
            }
        )
    least = found.within(float("inf"))
    row["least"] = {"arena_bytes": least.arena.size_bytes, "slowdown": round(least.slowdown, 5)}
    row["seconds"] = round(time.perf_counter() - wall, 1)
    row["processor_seconds"] = round(time.process_time() - processor, 1)
    return row


def _at(row: Any, budget: float) -> Any:
    return next(entry for entry in row["split"] if entry["budget"] == budget)


def below_hmcos(row: Any, budget: float) -> float:
    """The share of the unsplit arena under HMCOS's order that splitting saves."""
    saved: float = 1 - _at(row, budget)["arena_bytes"] / row["unsplit"]["hmcos"]["arena_bytes"]
    return saved


def published_of(name: str) -> str:
    """One line of what others reached."""
    parts = []
    if name in PUBLISHED["hmcos"]:
        parts.append(f"HMCOS {PUBLISHED['hmcos'][name]['peak_bytes'] // 4:,} (float32 / 4)")
    motes = PUBLISHED["motes"]["networks"].get(name)
    if motes is not None:
        size = f"{motes['split_bytes']:,}" if "split_bytes" in motes else ""
        share = f"{motes['share_of_hmcos']:.0%} of HMCOS" if "share_of_hmcos" in motes else ""
        parts.append(f"MOTES {size}{share} at {motes['slowdown']:.0%}")
    if name in PUBLISHED["tinyengine"]:
        entry = PUBLISHED["tinyengine"][name]
        patched = (f"{p['bytes']:,} at {p['slowdown']:.1%}" for p in entry["patched"])
        parts.append("; ".join([f"TinyEngine {entry['unsplit_bytes']:,}", *patched]))
    return "; ".join(parts) or "no published bytes"


def show_networks(rows: Sequence[Any], console: Console) -> None:
    table = Table(title="Bytes of the arena; unsplit: of the peak, then of the arena")
    table.add_column("network")
    for title in (*SCHEDULERS, *(f"within {b:.0%}" for b in BUDGETS), "least", "below hmcos at 5%"):
        table.add_column(title, justify="right")
    table.add_column("search, all s (cpu s)", justify="right")
    for row in rows:
        search, split = row["search"], (*row["split"], row["least"])
        took = f"{search['seconds']:.0f}, {row['seconds']:.0f} ({row['processor_seconds']:.0f})"
        table.add_row(
            row["network"],
            *(f"{u['peak_bytes']:,}\n{u['arena_bytes']:,}" for u in row["unsplit"].values()),
            *(f"{e['arena_bytes']:,}\n{e['slowdown']:.2%}" for e in split),
            f"{below_hmcos(row, 0.05):.0%}",
            f"{took}\nstopped" if search["stopped"] else took,
            end_section=True,
        )
    console.print(table)
    for row in rows:
        console.print(f"{row['network']}: {published_of(row['network'])}", highlight=False)


def aims(rows: Sequence[Any]) -> Iterator[str]:
    """Each aim beside what was reached, over the paper's networks that were run."""
    wanted = PUBLISHED["aims"]
    ours = [row for row in rows if row["network"] in OF_THE_PAPER]
    if not ours:
        return
    for budget in BUDGETS:
        saved = mean(below_hmcos(row, budget) for row in ours)
        also = f" (aim {wanted['below_hmcos_at_5_percent']:.0%})" if budget == 0.05 else ""
        yield f"within {budget:.0%}: {saved:.1%} below hmcos on average of {len(ours)}{also}"
    limit = wanted["bytes_at_5_percent"]
    fit = [row["network"] for row in ours if _at(row, 0.05)["arena_bytes"] <= limit]
    above = [row["network"] for row in ours if row["network"] not in fit]
    rest = f"; not: {', '.join(above)}" if above else ""
    yield f"{len(fit)} of {len(ours)} within {limit:,} B at 5% (aim: all; MOTES: three){rest}"
    for row in ours:
        name = row["network"]
        if name == "nasnet_a_imagenet":
            share = 1 - below_hmcos(row, 0.01)
            aim = wanted["nasnet_a_imagenet_share_at_1_percent"]
            yield f"{name}: {share:.0%} of hmcos at 1% (aim {aim:.0%}; MOTES 60%)"
        motes = PUBLISHED["motes"]["networks"].get(name, {}).get("split_bytes")
        if motes is not None:
            size = _at(row, 0.1)["arena_bytes"]
            yield f"{name}: {size:,} B at 10% (MOTES: {motes:,})"
    slowest = max(ours, key=lambda row: float(row["seconds"]))
    yield (
        f"longest search, with placement for all budgets: {slowest['network']}, "
        f"{slowest['seconds']:.0f} s, {slowest['processor_seconds']:.0f} s of the processor "
        f"(aim {wanted['search_seconds']} s)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=("networks", "runs", "table3"), help="only this part")
    parser.add_argument("--only", default="", help="only these networks, by comma")
    parser.add_argument("--models", type=Path, default=SHARED_MODELS, metavar="DIR")
    parser.add_argument("--board", default="mps2-an500", help="whose kernels (default mps2-an500)")
    parser.add_argument("--seconds", type=float, default=90.0, help="most for one search")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there, too")
    options = parser.parse_args()
    console, log = Console(width=170), Console(stderr=True)
    only = [name for name in options.only.split(",") if name]
    known = (*OF_THE_PAPER, *OTHERS, *RUNS)
    for name in only:
        if name not in zoo.NETWORKS and name not in FILES:
            parser.error(f"no network {name!r}; there are: {', '.join(dict.fromkeys(known))}")

    def graphs(names: Sequence[str]) -> Iterator[tuple[str, Graph]]:
        for name in only or names:
            graph = graph_of(name, options.models)
            if graph is None:
                log.print(f"{name}: no file {options.models / FILES[name]}, left out")
            else:
                yield name, graph

    def report(text: str) -> None:
        log.print(text, style="dim")

    done: dict[str, Any] = {}
    if options.part in (None, "networks"):
        rows = [
            network_row(name, graph, options.board, options.seconds, report)
            for name, graph in graphs((*OF_THE_PAPER, *OTHERS))
        ]
        show_networks(rows, console)
        done["networks"], done["aims"] = rows, list(aims(rows))
        console.print(*done["aims"], sep="\n", highlight=False)
        console.print(f"All of the zoo: {zoo.OF_ALL}.")
        for name in (row["network"] for row in rows if row["network"] in zoo.NETWORKS):
            console.print(f"{name}: {zoo.NETWORKS[name].differs or 'as published'}")
    if options.part in (None, "runs"):
        done["runs"] = measure_runs(graphs(RUNS), options.board, 0.05, console, report)
    if options.part in (None, "table3"):
        done["table_3"] = measure_table_3(
            PUBLISHED["motes"]["table_3"], options.board, console, report
        )
    if options.json is not None:
        options.json.write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
