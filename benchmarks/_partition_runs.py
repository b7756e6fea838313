"""What `benchmarks.partition` traces in QEMU: whole networks, and one convolution in blocks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from toolchain.boards import board as find_board
from toolchain.codegen import generate
from toolchain.contact.network import Network
from toolchain.deployment.modelled_time import NoReader, find_reader
from toolchain.device.build import build
from toolchain.device.session import open_board
from toolchain.errors import MissingToolError
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan
from toolchain.ops.spec import Array
from toolchain.partition import Scheme, split
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.progress import Report
from toolchain.report.latency import predict_latency

COPIES = ("slice", "concat", "block_concat")
SEEDS = (1, 2)


@dataclass(frozen=True)
class Counted:
    """Outputs of some seeded inputs, the cycles of the last by a trace, and those of copies."""

    outputs: tuple[Array, ...]
    cycles: int
    copies: int
    ram_bytes: int
    code_bytes: int


def run(plan: Plan, board: str) -> Counted:
    """Compile and run a plan on an emulated board, on inputs that the board makes itself."""
    target = find_board(board)
    sources = generate(plan, target.core, cmsis_nn.find(), name="network")
    with tempfile.TemporaryDirectory(prefix="thimble-") as folder:
        firmware = build([(plan, sources)], target, Path(folder))
        reader = find_reader(firmware)
        if isinstance(reader, NoReader):
            raise MissingToolError(f"nothing can be told in cycles on {board}: {reader.reason}")
        with open_board(firmware, trace=reader.memory) as session:
            done = [session.run_pattern(seed) for seed in SEEDS]
            (last,) = reader.read(session.trace().run(-1)).runs
    kinds = [operator.kind for operator in firmware.model.operators]
    return Counted(
        tuple(output for one in done for output in one.outputs.values()),
        last.total,
        sum(n for kind, n in zip(kinds, last.operators, strict=True) if kind in COPIES),
        firmware.sizes.ram_bytes,
        firmware.sizes.code_bytes,
    )


def measure_runs(
    graphs: Iterable[tuple[str, Graph]], board: str, budget: float, report: Report
) -> Iterator[Any]:
    """Networks whole and split within `budget`: equal bytes, and the slowdown by a trace."""
    target = find_board(board)
    for name, graph in graphs:
        report(f"{name}: planning")
        plans = [
            plan_graph(graph, target, PlanOptions().unsplit),
            plan_graph(graph, target, PlanOptions(max_slowdown=budget)),
        ]
        report(f"{name}: running")
        whole, parts = (run(plan, board) for plan in plans)
        predicted = [predict_latency(plan).total for plan in plans]
        yield {
            "network": name,
            "unsplit_arena_bytes": plans[0].arena.size_bytes,
            "split_arena_bytes": plans[1].arena.size_bytes,
            "unsplit_cycles": whole.cycles,
            "split_cycles": parts.cycles,
            "predicted_cycles": predicted,
            "slowdown": round(parts.cycles / whole.cycles - 1, 5),
            "predicted_slowdown": round(predicted[1] / predicted[0] - 1, 5),
            "copy_cycles": parts.copies,
            "code_bytes": [whole.code_bytes, parts.code_bytes],
            "equal": all(
                np.array_equal(a, b) for a, b in zip(whole.outputs, parts.outputs, strict=True)
            ),
            "compared_bytes": sum(output.nbytes for output in whole.outputs),
        }


def show_runs(rows: Sequence[Any], board: str, budget: float, console: Console) -> None:
    """A line for each network that was run."""
    table = Table(title=f"Run whole on {board} in QEMU, unsplit and split within {budget:.0%}")
    for title in ("network", "arena B", "split", "M cycles", "split"):
        table.add_column(title, justify="left" if title == "network" else "right")
    for title in ("slowdown", "predicted", "off by points", "copies", "code B", "outputs"):
        table.add_column(title, justify="right")
    for row in rows:
        off = 100 * (row["slowdown"] - row["predicted_slowdown"])
        table.add_row(
            row["network"],
            f"{row['unsplit_arena_bytes']:,}",
            f"{row['split_arena_bytes']:,}",
            f"{row['unsplit_cycles'] / 1e6:.2f}",
            f"{row['split_cycles'] / 1e6:.2f}",
            f"{row['slowdown']:.2%}",
            f"{row['predicted_slowdown']:.2%}",
            f"{off:+.2f}",
            f"{row['copy_cycles'] / row['split_cycles']:.2%}",
            "{:,} > {:,}".format(*row["code_bytes"]),
            f"equal, {row['compared_bytes']:,} B" if row["equal"] else "DIFFER",
        )
    console.print(table)


def convolution() -> Graph:
    """The paper's: 3x3 over 32x32x8, 8 channels out."""
    net = Network("table_3", (1, 32, 32, 8))
    return net.graph(net.conv(net.input, 8, 3))


def in_blocks(graph: Graph, rows: int, columns: int) -> Graph:
    """The only operator of `graph` in so many blocks of rows, each in so many of columns."""
    (op,) = graph.ops
    output = op.outputs[0]
    if rows > 1:
        graph = split(graph, Scheme((op.name,), (output, 1), rows))
    if columns > 1:
        for block in [o for o in graph.ops if o.kind == op.kind]:
            graph = split(graph, Scheme((block.name,), (block.outputs[0], 2), columns))
    return graph


def measure_table_3(factors: Sequence[int], board: str, report: Report) -> Iterator[Any]:
    """Blocks of a side of `factor` pixels; and strips of so many rows, which need no copy."""
    target, graph = find_board(board), convolution()
    report("table 3: unsplit")
    whole = run(plan_graph(graph, target, PlanOptions().unsplit), board)
    size = graph.output(graph.ops[0]).shape[1]
    for factor in factors:
        report(f"table 3: factor {factor}")
        count = size // factor
        options = PlanOptions(scheduler="rpo", rewrite=False)
        blocks, strips = (
            run(plan_graph(in_blocks(graph, count, across), target, options), board)
            for across in (count, 1)
        )
        for made in (blocks, strips):
            for want, have in zip(whole.outputs, made.outputs, strict=True):
                np.testing.assert_array_equal(have, want)
        yield {
            "factor": factor,
            "blocks": count * count,
            "unsplit_cycles": whole.cycles,
            "cycles": blocks.cycles,
            "copy_cycles": blocks.copies,
            "strip_cycles": strips.cycles,
            "strip_copy_cycles": strips.copies,
        }


def show_table_3(rows: Sequence[Any], published: Any, console: Console) -> None:
    """A line for each size of the blocks, MOTES's times beside it."""
    unsplit = f", {rows[0]['unsplit_cycles']:,} cycles" if rows else ""
    table = Table(title=f"Table 3: one convolution of 32x32x8{unsplit}")
    for title in ("factor", "blocks", "cycles", "overhead", "BlockConcat", "strips alone"):
        table.add_column(title, justify="right")
    for title in ("MOTES us", "overhead", "BlockConcat"):
        table.add_column(title, justify="right")
    for row in rows:
        whole, theirs = row["unsplit_cycles"], published["factors"][str(row["factor"])]
        table.add_row(
            str(row["factor"]),
            f"{row['blocks']:,}",
            f"{row['cycles']:,}",
            f"{row['cycles'] / whole - 1:.1%}",
            f"{row['copy_cycles'] / row['cycles']:.1%}",
            f"{row['strip_cycles'] / whole - 1:.1%}",
            f"{theirs['us']:,}",
            f"{theirs['us'] / published['unsplit_us'] - 1:.1%}",
            f"{theirs['block_concat_us'] / theirs['us']:.1%}",
        )
    console.print(table)
    console.print("Outputs of all equal the unsplit ones. Strips: rows split, columns whole.")
