"""Splitting operators: what it saves, what it costs, beside MOTES, TinyEngine and HMCOS.

    python -m benchmarks.partition [--part networks|goals|runs|flash|table3] [--only NAME,..]
                                   [--models DIR] [--splitters NAME,..] [--board BOARD]
                                   [--seconds S] [--json FILE] [--factors N,..] [--show]

networks  peak and arena unsplit under three schedulers; the arena split at several slowdowns, and
          the least, by each splitter; the search's time; the published figures
goals     arenas and slowdowns of finished plans, each for its own board, beside what is aimed at
runs      whole networks in QEMU, unsplit and split: bytes compared, slowdown measured
flash     code and tables of the linked firmware, unsplit and split at 5%; lines of C
table3    one convolution in blocks of falling size (MOTES, table 3), counted in QEMU

The networks are the zoo's (`benchmarks.zoo`) and those files of DIR that are there. Slowdowns are
predicted by the cost model, except where the table says measured. Peaks and arenas hold scratch,
inputs and outputs. `partition_published.json` holds the others' figures and where they are from.
FILE gets each row as soon as it is there and keeps the rows of other networks: parts and networks
can be run one at a time, and the tables show them all. With --show nothing is run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import _partition_goals as goals
from benchmarks import zoo
from benchmarks._partition_flash import measure_flash, show_flash
from benchmarks._partition_report import PUBLISHED, aims, show_networks
from benchmarks._partition_runs import measure_runs, measure_table_3, show_runs, show_table_3
from benchmarks._results import json_option, write_results
from toolchain import load_model, passes
from toolchain.boards import board as find_board
from toolchain.ir import Graph
from toolchain.partition import splitters
from toolchain.planner import candidates, plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.progress import Report

SMALLEST = (
    "--part networks --only fomo_face --splitters tinyengine --models {shared}/models",
    "--part goals --only ic_resnet8 --models {shared}/models",
    "--part runs --only fomo_face --models {shared}/models",
    "--part flash --only fomo_face --models {shared}/models",
    "--part table3 --factors 16",
)
SHARED_MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
FILES = {
    "mcunetv2_se_large": "tinyengine_mcunetv2_large_int8.tflite",
    "mcunet_in4": "gw_mcunet_512kb_2mb_imagenet_int8.tflite",
    "mcunet_vww": "tinyengine_mcunet_vww_int8.tflite",
    "fomo_face": "openmv_fomo_face_detection.tflite",
    "ic_resnet8": "mlperf_tiny_ic_resnet8_int8.tflite",
    "vww_mobilenet": "mlperf_tiny_vww_mbv1_025_96_int8.tflite",
    "yamnet_256": "st_yamnet_256_64x96_esc10_int8.tflite",
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
PARTS = ("networks", "goals", "runs", "flash", "table3")
SCHEDULERS = ("rpo", "hmcos", "auto")
BUDGETS = (0.0, 0.01, 0.02, 0.05, 0.1)


def graph_of(name: str, models: Path) -> Graph | None:
    """A network ready to compile; None where its file is absent."""
    if name in zoo.NETWORKS:
        return passes.prepare(zoo.network(name)).graph
    path = models / FILES[name]
    return passes.prepare(load_model(path)).graph if path.is_file() else None


class Searched:
    """The plans of a graph, with the ways to split it that a splitter found."""

    def __init__(self, graph: Graph, board: str, options: PlanOptions) -> None:
        self.found = candidates(graph, find_board(board), options)
        wall, processor = time.perf_counter(), time.process_time()
        ways = self.found.ways
        self.search = {
            "seconds": round(time.perf_counter() - wall, 1),
            "processor_seconds": round(time.process_time() - processor, 1),
            "stopped": ways.stopped,
            "points": len(ways.points),
        }

    def within(self, slowdown: float) -> Any:
        """The smallest arena among the plans that take at most so much more time than the
        quickest.
        """
        begin = time.perf_counter()
        choice = self.found.smallest((1 + slowdown) * self.found.base.count)
        assert choice is not None, "the base is one"
        best = self.found.finished(choice)
        return {
            "arena_bytes": best.arena.size_bytes,
            "peak_bytes": max(best.step_bytes),
            "slowdown": round(best.slowdown, 5),
            "calls": best.calls,
            "seconds": round(time.perf_counter() - begin, 1),
        }


def network_row(
    name: str, graph: Graph, names: Sequence[str], board: str, seconds: float, report: Report
) -> Any:
    """All figures of one network, as the JSON holds them."""
    target = find_board(board)
    row: dict[str, Any] = {"network": name, "operators": len(graph.ops), "unsplit": {}}
    for method in SCHEDULERS:
        report(f"{name}: {method}")
        plan = plan_graph(graph, target, PlanOptions(scheduler=method).unsplit)
        row["unsplit"][method] = {
            "peak_bytes": max(plan.step_bytes),
            "arena_bytes": plan.arena.size_bytes,
        }
    row["split"] = {}
    for splitter in names:
        report(f"{name}: search, {splitter}")
        options = PlanOptions(split_seconds=seconds, splitter=splitter)
        found = Searched(graph, board, options)
        within = []
        for budget in BUDGETS:
            report(f"{name}: {splitter} within {budget:.0%}")
            within.append({"budget": budget, **found.within(budget)})
        least = found.within(float("inf"))
        row["split"][splitter] = {"search": found.search, "within": within, "least": least}
    return row


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=PARTS, help="only this part")
    parser.add_argument("--only", default="", help="only these networks, by comma")
    parser.add_argument("--models", type=Path, default=SHARED_MODELS, metavar="DIR")
    parser.add_argument("--board", default="mps2-an500", help="whose kernels (default mps2-an500)")
    parser.add_argument("--seconds", type=float, default=30.0, help="most for one search")
    parser.add_argument(
        "--splitters", default=",".join(splitters.names()), help="only these, by comma"
    )
    parser.add_argument("--factors", default="", help="table 3 with these alone, by comma")
    json_option(parser)
    parser.add_argument("--show", action="store_true", help="run nothing, show what FILE holds")
    options = parser.parse_args()
    console, log = Console(width=170), Console(stderr=True)
    only = [name for name in options.only.split(",") if name]
    known = (*OF_THE_PAPER, *OTHERS, *RUNS, *goals.NETWORKS)
    for name in only:
        if name not in zoo.NETWORKS and name not in FILES:
            parser.error(f"no network {name!r}; there are: {', '.join(dict.fromkeys(known))}")
    wanted = [name for name in options.splitters.split(",") if name]
    for name in wanted:
        if name not in splitters.names():
            parser.error(f"no splitter {name!r}; there are: {', '.join(splitters.names())}")
    if options.show and options.json is None:
        parser.error("--show needs --json FILE")
    kept = Kept(options.json)

    def graphs(names: Sequence[str]) -> Iterator[tuple[str, Graph]]:
        for name in only or names:
            graph = graph_of(name, options.models)
            if graph is None:
                log.print(f"{name}: no file {options.models / FILES[name]}, left out")
            else:
                yield name, graph

    def report(text: str, done: int | None = None, total: int | None = None) -> None:
        log.print(text, style="dim")

    if options.part in (None, "networks"):
        if not options.show:
            for name, graph in graphs((*OF_THE_PAPER, *OTHERS)):
                row = network_row(name, graph, wanted, options.board, options.seconds, report)
                kept.add("networks", row)
        rows = kept.rows("networks", (*OF_THE_PAPER, *OTHERS))
        show_networks(rows, console)
        console.print(*aims(rows, OF_THE_PAPER), sep="\n", highlight=False)
        console.print(f"All of the zoo: {zoo.OF_ALL}.")
        for name in (row["network"] for row in rows if row["network"] in zoo.NETWORKS):
            console.print(f"{name}: {zoo.NETWORKS[name].differs or 'as published'}")
    if options.part in (None, "goals"):
        if not options.show:
            names = only or goals.NETWORKS
            for row in goals.measure(names, lambda name: graph_of(name, options.models), report):
                kept.add("goals", row)
        goals.show(kept.rows("goals", goals.TITLES), console)
    if options.part in (None, "runs"):
        if not options.show:
            for row in measure_runs(graphs(RUNS), options.board, 0.05, report):
                kept.add("runs", row)
        show_runs(kept.rows("runs", RUNS), options.board, 0.05, console)
    if options.part in (None, "flash"):
        if not options.show:
            compiled = graphs((*RUNS, "fpnas"))
            for row in measure_flash(compiled, options.board, 0.05, options.seconds, report):
                kept.add("flash", row)
        show_flash(kept.rows("flash", (*RUNS, "fpnas")), options.board, 0.05, console)
    if options.part in (None, "table3"):
        published = PUBLISHED["motes"]["table_3"]
        given = [int(factor) for factor in options.factors.split(",") if factor]
        factors = given or [int(factor) for factor in published["factors"]]
        if not options.show:
            for row in measure_table_3(factors, options.board, report):
                kept.add("table_3", row)
        show_table_3(kept.rows("table_3"), published, console)
    return 0


class Kept:
    """Rows by part; those that FILE holds already, and new ones in their place."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._parts: dict[str, list[Any]] = {}
        if file is not None and file.exists():
            self._parts = json.loads(file.read_text("utf-8"))

    def add(self, part: str, row: Any) -> None:
        """Keep a row, in the file too, in place of an older one of the same goal, network or
        factor.
        """
        key = _key(row)
        others = [other for other in self._parts.get(part, []) if _key(other) != key]
        self._parts[part] = [*others, row]
        write_results(self._file, self._parts)

    def rows(self, part: str, names: Sequence[str] = ()) -> list[Any]:
        """All rows, those of `names` in that order first."""
        places = {name: place for place, name in enumerate(names)}
        rows = self._parts.get(part, [])
        return sorted(rows, key=lambda row: places.get(_key(row), len(places)))


def _key(row: Any) -> Any:
    return row.get("goal", row.get("network", row.get("factor")))


if __name__ == "__main__":
    sys.exit(main())
