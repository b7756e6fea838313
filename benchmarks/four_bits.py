"""Weights of four bits beside weights of eight: cycles and flash, shape by shape.

    .venv/bin/python -m benchmarks.four_bits [--shapes N] [--board BOARD=CHIP ...]
                                             [--json FILE]

Each shape is a model of one operator, once with weights of eight bits and once with the upper four
of these. Both are compiled for an emulated board and traced on the same input; outputs must be the
reference's. Cycles are by the core's timing model: with memories that never wait, and as on CHIP,
at its highest clock. Flash is that of the whole firmware, and of the constants alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks._results import json_option, write_results
from benchmarks.kernels import SAME_3X3, Shape, graph_of
from toolchain.boards import board
from toolchain.codegen import generate
from toolchain.cycles.core_timing import timing_of
from toolchain.cycles.memory_system import MemorySystem
from toolchain.cycles.program import read_program
from toolchain.cycles.reading import read
from toolchain.deployment.modelled_time import NoReader, find_reader
from toolchain.device.build import build
from toolchain.device.compiler import find_tool
from toolchain.device.session import open_board
from toolchain.errors import InputError
from toolchain.ir import Graph, Quantisation
from toolchain.kernels import cmsis_nn
from toolchain.ops import spec_of
from toolchain.ops.interpret import interpret
from toolchain.ops.window import Padding
from toolchain.planner import plan_graph

SMALLEST = ("--shapes 1 --board mps2-an386=stm32l4r5",)
BOARDS = ("mps2-an386=stm32l4r5", "mps2-an505=stm32u575", "mps2-an500=stm32h7a3")
SHAPES = (
    Shape("conv2d", (16, 16), 16, 16),
    Shape("conv2d", (16, 16), 32, 32),
    Shape("conv2d", (16, 16), 64, 64),
    Shape("conv2d", (6, 6), 128, 128),
    Shape("conv2d", (16, 16), 64, 8),
    Shape("conv2d", (16, 16), 3, 16, (3, 3), 1, SAME_3X3),
    Shape("conv2d", (16, 16), 16, 16, (3, 3), 1, SAME_3X3),
    Shape("conv2d", (16, 16), 32, 32, (3, 3), 1, SAME_3X3),
    Shape("conv2d", (8, 8), 64, 64, (3, 3), 1, SAME_3X3),
    Shape("conv2d", (16, 16), 8, 8, (5, 5), 1, Padding(2, 2, 2, 2)),
    Shape("depthwise_conv2d", (16, 16), 32, 32, (3, 3), 1, SAME_3X3),
    Shape("fully_connected", (1, 1), 640, 128),
    Shape("fully_connected", (1, 1), 64, 10),
)


@dataclass(frozen=True)
class Row:
    """A shape on a board and as a chip: its products, and what both widths of weights take."""

    operator: str
    shape: str
    board: str
    chip: str
    macs: int
    four: Run
    eight: Run


@dataclass(frozen=True)
class Run:
    """Cycles with memories that never wait and on the chip; bytes of firmware and constants."""

    core: float
    chip: float
    flash_bytes: int
    weight_bytes: int


def of_four_bits(graph: Graph) -> Graph:
    """The same with the upper four bits of each weight, on a scale sixteen times as coarse."""
    weights = graph.tensors["weights"]
    assert weights.constant is not None
    q = weights.q
    coarse = Quantisation(tuple(16 * scale for scale in q.scales), q.zero_points, q.axis)
    few = replace(weights, quantisation=coarse, constant=weights.constant >> 4)
    return replace(graph, tensors={**graph.tensors, "weights": few})


def measured(graph: Graph, board_name: str, chip: str) -> Run:
    """Raises InputError if no timing model is known of the board's core, or outputs differ."""
    target = board(board_name)
    plan = plan_graph(graph, target)
    rng = np.random.default_rng(1)
    inputs = [
        rng.integers(-128, 128, graph.tensors[name].shape).astype(np.int8) for name in graph.inputs
    ]
    sources = generate(plan, target.core, cmsis_nn.find(), name="kernel")
    with tempfile.TemporaryDirectory() as folder:
        firmware = build([(plan, sources)], target, Path(folder))
        reader, timing = find_reader(firmware, read_as=chip), timing_of(target.core.name)
        if isinstance(reader, NoReader) or timing is None:
            raise InputError(f"{board_name}: there is no timing model of {target.core.name}")
        with open_board(firmware, trace=reader.memory) as session:
            outputs = session.run(inputs).outputs
            cycles = reader.read(session.trace()).runs[-1].operators[0]
        with open_board(firmware, trace=MemorySystem()) as session:
            session.run(inputs)
            trace = session.trace()
        program = read_program(firmware.elf, find_tool("objdump"))
        core = read(trace, program, timing).operator(0).total.cycles.total
    for name, want in zip(graph.outputs, interpret(graph, inputs, {}), strict=True):
        if not np.array_equal(outputs[name], want):
            raise InputError(f"{board_name}: {graph.ops[0]} is not as the reference has it")
    return Run(core, cycles, firmware.sizes.flash_bytes, firmware.sizes.weight_bytes)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--board", action="append", help="BOARD=CHIP, an emulated board")
    parser.add_argument("--shapes", type=int, help="only the first so many")
    json_option(parser)
    wanted = parser.parse_args(argv)
    rows = []
    for pair in wanted.board or BOARDS:
        board_name, chip = pair.split("=")
        table = Table("operator", "outputs", title=f"{board_name}, as {chip}; four bits / eight")
        for title in ("cycles a product", "ratio", f"on {chip}", "ratio", "weights B", "flash B"):
            table.add_column(title, justify="right")
        for shape in SHAPES[: wanted.shapes]:
            graph = graph_of(shape)
            macs = spec_of(shape.kind).macs(graph.ops[0], graph)
            eight, four = (measured(g, board_name, chip) for g in (graph, of_four_bits(graph)))
            operator = f"{shape.kind} {shape.kernel[0]}x{shape.kernel[1]}"
            outputs = f"{shape.size[0]}x{shape.size[1]}, {shape.depth} -> {shape.channels}"
            rows.append(Row(operator, outputs, board_name, chip, macs, four, eight))
            table.add_row(
                operator,
                outputs,
                f"{four.core / macs:.2f} / {eight.core / macs:.2f}",
                f"{four.core / eight.core:.2f}",
                f"{four.chip / macs:.2f} / {eight.chip / macs:.2f}",
                f"{four.chip / eight.chip:.2f}",
                f"{four.weight_bytes:,} / {eight.weight_bytes:,}",
                f"{four.flash_bytes:,} / {eight.flash_bytes:,}",
            )
        Console(width=150).print(table)
    write_results(wanted.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
