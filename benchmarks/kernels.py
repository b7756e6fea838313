"""Our kernels beside CMSIS-NN's, shape by shape, on an emulated board.

    .venv/bin/python -m benchmarks.kernels [--board BOARD] [--shapes N] [--json FILE]

Each shape runs twice on the same input: with `--kernels thimble` and with `--kernels cmsis-nn`.
Both outputs are compared with the reference: `differ` counts CMSIS-NN's elements that are not
equal; ours must all be. CMSIS-NN rounds fully connected layers twice, LiteRT once.

Instructions are counted. Cycles are those of the core's timing model for what QEMU executed
(`toolchain/cycles/`), with memories that never wait; `ratio` is ours by CMSIS-NN's. `bound` is what
the multiplications and loads that our kernel executed take if nothing else were between them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks._results import json_option, write_results
from toolchain.boards import Board, board
from toolchain.codegen import generate
from toolchain.cycles.core_timing import timing_of
from toolchain.cycles.issue_bound import issue_bound
from toolchain.cycles.memory_system import MemorySystem
from toolchain.cycles.program import read_program
from toolchain.cycles.reading import SectionTotal, read
from toolchain.device.build import build
from toolchain.device.compiler import find_tool
from toolchain.device.session import open_board
from toolchain.errors import InputError
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.kernels import cmsis_nn
from toolchain.ops import spec_of
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.elementwise.multiplication import Mul
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.normalisation.softmax_s8 import Softmax
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.preference import Preference
from toolchain.ops.window import UNPADDED, Padding, Window
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions

SMALLEST = ("--shapes 1",)
M4 = "netduinoplus2"
SAME_3X3 = Padding(1, 1, 1, 1)
_WEIGHTED = ("conv2d", "depthwise_conv2d", "fully_connected")
_POOLS = ("average_pool2d", "max_pool2d")


@dataclass(frozen=True)
class Shape:
    """`depthwise` and pools have as many outputs as inputs; a fully connected layer is 1x1 of size
    1x1; add, mul and softmax have no channels and no window.
    """

    kind: str
    size: tuple[int, int]
    depth: int
    channels: int = 0
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    padding: Padding = UNPADDED


SHAPES = (
    Shape("conv2d", (32, 32), 3, 16, (3, 3), 1, SAME_3X3),
    Shape("conv2d", (49, 10), 1, 64, (10, 4), 2, Padding(4, 1, 5, 1)),
    Shape("conv2d", (32, 32), 16, 16, (3, 3), 1, SAME_3X3),
    Shape("conv2d", (8, 8), 64, 64, (3, 3), 1, SAME_3X3),
    Shape("conv2d", (48, 48), 8, 16),
    Shape("conv2d", (25, 5), 64, 64),
    Shape("conv2d", (6, 6), 128, 128),
    Shape("conv2d", (16, 16), 32, 64, (1, 1), 2),
    Shape("depthwise_conv2d", (48, 48), 8, 8, (3, 3), 1, SAME_3X3),
    Shape("depthwise_conv2d", (48, 48), 16, 16, (3, 3), 2, Padding(0, 0, 1, 1)),
    Shape("depthwise_conv2d", (25, 5), 64, 64, (3, 3), 1, SAME_3X3),
    Shape("depthwise_conv2d", (6, 6), 128, 128, (3, 3), 1, SAME_3X3),
    Shape("depthwise_conv2d", (20, 20), 32, 32, (5, 5), 1, Padding(2, 2, 2, 2)),
    Shape("depthwise_conv2d", (10, 10), 48, 48, (7, 7), 1, Padding(3, 3, 3, 3)),
    Shape("fully_connected", (1, 1), 640, 128),
    Shape("fully_connected", (1, 1), 128, 128),
    Shape("average_pool2d", (25, 5), 64, 64, (25, 5)),
    Shape("max_pool2d", (16, 16), 32, 32, (2, 2), 2),
    Shape("add", (32, 32), 16),
    Shape("mul", (32, 32), 16),
    Shape("softmax", (16, 16), 12),
)


def graph_of(shape: Shape) -> Graph:
    """One operator with random weights and scales as a trained network has them."""
    if shape.kind in _WEIGHTED:
        return _weighted(shape)
    x_shape = (1, *shape.size, shape.depth)
    q = Quantisation((0.05,), (-10,))
    x, names = Tensor("x", x_shape, DType.INT8, q), ["x"]
    tensors = [x]
    if shape.kind in _POOLS:
        stride, (height, width) = shape.stride, shape.kernel
        window = Window(shape.kernel, (stride, stride), (1, 1), shape.padding)
        y = Tensor("y", (1, *window.output_size(*shape.size), shape.depth), DType.INT8, q)
        attributes: Pool2D | Sum | Mul | Softmax = Pool2D(
            height, width, stride, stride, shape.padding
        )
    elif shape.kind == "softmax":
        y = Tensor("y", x_shape, DType.INT8, Quantisation((1 / 256,), (-128,)))
        attributes = Softmax()
    else:
        tensors.append(Tensor("x2", x_shape, DType.INT8, Quantisation((0.07,), (3,))))
        names.append("x2")
        y = Tensor("y", x_shape, DType.INT8, Quantisation((0.09,), (-20,)))
        attributes = Sum() if shape.kind == "add" else Mul()
    op = Op(shape.kind, shape.kind, tuple(names), ("y",), attributes)
    return Graph.build("kernel", [*tensors, y], [op], names, ["y"])


def _weighted(shape: Shape) -> Graph:
    rng = np.random.default_rng(0)
    taps = shape.kernel[0] * shape.kernel[1]
    x_q, y_q = Quantisation((0.05,), (-128,)), Quantisation((0.05,), (-128,))
    stride = (shape.stride, shape.stride)
    window = Window(shape.kernel, stride, (1, 1), shape.padding)
    x_shape: tuple[int, ...] = (1, *shape.size, shape.depth)
    y_shape: tuple[int, ...] = (1, *window.output_size(*shape.size), shape.channels)
    axis, w_shape = 0, (shape.channels, *shape.kernel, shape.depth)
    attributes: Conv2D | DepthwiseConv2D | FullyConnected = Conv2D(stride, (1, 1), shape.padding)
    if shape.kind == "depthwise_conv2d":
        axis, w_shape = 3, (1, *shape.kernel, shape.channels)
        attributes = DepthwiseConv2D(stride, (1, 1), shape.padding)
    elif shape.kind == "fully_connected":
        x_shape, y_shape, attributes = (1, shape.depth), (1, shape.channels), FullyConnected()
    depth = taps * (1 if shape.kind == "depthwise_conv2d" else shape.depth)
    scales = tuple(float(np.float32(s)) for s in rng.uniform(0.5, 1.5, shape.channels) / depth / 9)
    w_q = Quantisation(scales, (0,) * len(scales), axis)
    weights = rng.integers(-127, 128, w_shape).astype(np.int8)
    if shape.kind == "fully_connected":
        w_q, weights = Quantisation(scales[:1], (0,)), weights.reshape(shape.channels, -1)
    tensors = [
        Tensor("x", x_shape, DType.INT8, x_q),
        Tensor("weights", weights.shape, DType.INT8, w_q, weights),
        Tensor(
            "bias",
            (shape.channels,),
            DType.INT32,
            None,
            rng.integers(-3000, 3000, shape.channels).astype(np.int32),
        ),
        Tensor("y", y_shape, DType.INT8, y_q),
    ]
    op = Op(shape.kind, shape.kind, ("x", "weights", "bias"), ("y",), attributes)
    return Graph.build("kernel", tensors, [op], ["x"], ["y"])


@dataclass(frozen=True)
class Run:
    """One run of a kernel: what it executed, the least cycles of its multiplications and loads, and
    how many elements of its output are not the reference's.
    """

    executed: SectionTotal
    bound: int
    differing: int

    @property
    def cells(self) -> tuple[str, str]:
        """Instructions and cycles."""
        return f"{self.executed.instructions:,}", f"{round(self.executed.cycles.total):,}"


def measured(graph: Graph, target: Board, preference: Preference) -> Run:
    """The run of a graph's one operator on `target`. Raises InputError if no timing model is known
    of its core.
    """
    timing = timing_of(target.core.name)
    if timing is None:
        raise InputError(f"{target.name}: there is no timing model of {target.core.name}")
    plan = plan_graph(graph, target, PlanOptions(kernels=preference).unsplit)
    sources = generate(plan, target.core, cmsis_nn.find(), name="kernel")
    rng, (op,) = np.random.default_rng(1), graph.ops
    given = {
        name: rng.integers(-128, 128, graph.tensors[name].shape).astype(np.int8)
        for name in graph.inputs
    }
    held = {t.name: t.constant for t in graph.tensors.values() if t.constant is not None}
    with tempfile.TemporaryDirectory() as folder:
        firmware = build([(plan, sources)], target, Path(folder))
        with open_board(firmware, trace=MemorySystem()) as session:
            run = session.run(list(given.values()))
            trace = session.trace()
        reading = read(trace, read_program(firmware.elf, find_tool("objdump")), timing)
    wanted = spec_of(op.kind).reference(op, graph, [{**held, **given}[n] for n in op.inputs])[0]
    differing = int((run.outputs["y"] != wanted).sum())
    section = reading.operator(0)
    return Run(section.total, issue_bound(section.lines.values(), reading.core), differing)


def _row(shape: Shape, macs: int, ours: Run, theirs: Run) -> dict[str, Any]:
    """The figures of one shape; cycles are with memories that never wait."""
    row: dict[str, Any] = {
        "operator": shape.kind,
        "input": f"{shape.size[0]}x{shape.size[1]}x{shape.depth}",
        "kernel": f"{shape.kernel[0]}x{shape.kernel[1]}/{shape.stride}",
        "outputs": shape.channels,
        "macs": macs,
    }
    for name, run in (("thimble", ours), ("cmsis_nn", theirs)):
        row[name] = {
            "instructions": run.executed.instructions,
            "cycles": run.executed.cycles.total,
            "bound_cycles": run.bound,
            "differing": run.differing,
        }
    return row


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--board", default=M4, help="an emulated board")
    parser.add_argument("--shapes", type=int, help="only the first so many")
    json_option(parser)
    wanted = parser.parse_args(argv)
    rows = []
    target = board(wanted.board)
    table = Table("operator", "input", "kernel", "outputs", title=f"on {target.name}")
    for title in ("instr.", "cycles", "per MAC", "bound"):
        table.add_column(f"Thimble\n{title}", justify="right")
    for title in ("instr.", "cycles", "per MAC"):
        table.add_column(f"CMSIS-NN\n{title}", justify="right")
    for title in ("ratio\ninstr.", "ratio\ncycles", "differ"):
        table.add_column(title, justify="right")
    for shape in SHAPES[: wanted.shapes]:
        graph = graph_of(shape)
        macs = spec_of(shape.kind).macs(graph.ops[0], graph)
        ours, theirs = (
            measured(graph, target, one) for one in (Preference.THIMBLE, Preference.CMSIS_NN)
        )
        if ours.differing:
            raise SystemExit(f"{shape}: {ours.differing} elements of ours are not the reference's")
        row = _row(shape, macs, ours, theirs)
        rows.append(row)
        table.add_row(
            shape.kind,
            row["input"],
            row["kernel"],
            str(shape.channels or "-"),
            *ours.cells,
            f"{ours.executed.cycles.total / macs:.2f}" if macs else "-",
            f"{ours.bound / macs:.2f}" if macs else "-",
            *theirs.cells,
            f"{theirs.executed.cycles.total / macs:.2f}" if macs else "-",
            f"{ours.executed.instructions / theirs.executed.instructions:.2f}",
            f"{ours.executed.cycles.total / theirs.executed.cycles.total:.2f}",
            str(theirs.differing),
        )
    Console(width=150).print(table)
    write_results(wanted.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
