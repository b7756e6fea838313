"""Our convolution kernels beside CMSIS-NN's, shape by shape, in instructions on a Cortex-M4.

    .venv/bin/python -m benchmarks.kernels [--shapes N]

Each shape runs twice in QEMU's netduinoplus2 on the same input: with Thimble's kernel, and with the
CMSIS-NN function that its wrapper chooses on this core. Both outputs are compared with the
reference: `differ` counts CMSIS-NN's elements that are not equal; ours must all be. Fully connected
layers have no column for CMSIS-NN: its kernel rounds twice, LiteRT once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from toolchain.boards import Board, board
from toolchain.codegen import generate
from toolchain.device.build import build
from toolchain.device.session import open_board
from toolchain.ir import DType, Graph, Op, Quantisation, Sources, Tensor
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan
from toolchain.ops import spec_of
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.window import UNPADDED, Padding, Window
from toolchain.planner import plan_graph

SMALLEST = ("--shapes 1",)
M4 = "netduinoplus2"
SAME_3X3 = Padding(1, 1, 1, 1)


@dataclass(frozen=True)
class Shape:
    """`depthwise` has as many outputs as inputs; a fully connected layer is 1x1 of size 1x1."""

    kind: str
    size: tuple[int, int]
    depth: int
    channels: int
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
)


def graph_of(shape: Shape) -> Graph:
    """One operator with random weights and scales as a trained network has them."""
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


def _as_on_m4(sources: Sources, shape: Shape) -> Sources:
    """Without the check that the compiler's core has Helium: CMSIS-NN's functions run on both.

    Helium's lowering names the general depthwise kernel; an M4's wrapper has one for 3x3.
    """
    files = {
        name: text.replace("#error", "#pragma message") for name, text in sources.files.items()
    }
    sources = replace(sources, files=files)
    if shape.kind != "depthwise_conv2d" or shape.kernel != (3, 3):
        return sources
    names = ("arm_depthwise_conv_s8_opt", "arm_depthwise_conv_3x3_s8")
    files = {name: text.replace(*names) for name, text in sources.files.items()}
    used = (*sources.cmsis_nn, f"Source/ConvolutionFunctions/{names[1]}.c")
    return replace(sources, files=files, cmsis_nn=used)


def _apart(plan: Plan) -> Plan:
    """The input, the output and the scratch of its one operator, one behind the other.

    Where an output may lie over the input is another matter on a core with Helium.
    """
    graph, (op,) = plan.graph, plan.graph.ops
    sizes = {"x": graph.tensors["x"].size_bytes, "y": graph.tensors["y"].size_bytes}
    starts = list(accumulate((-(-size // 8) * 8 for size in sizes.values()), initial=0))
    arena = replace(
        plan.arena,
        size_bytes=starts[-1] + plan.operators[0].scratch_bytes,
        offsets=dict(zip(sizes, starts, strict=False)),
        scratch_offsets={op.name: starts[-1]},
    )
    return replace(plan, arena=arena)


def measured(graph: Graph, shape: Shape, target: Board) -> tuple[int, int]:
    """Instructions of one run on an M4, with the kernels that `target`'s core asks for, and how
    many elements of its output are not the reference's."""
    plan = _apart(plan_graph(graph, target))
    sources = generate(plan, target.core, cmsis_nn.find(), name="kernel")
    if target.core.mve:
        sources = _as_on_m4(sources, shape)
    rng = np.random.default_rng(1)
    x = rng.integers(-128, 128, graph.tensors["x"].shape).astype(np.int8)
    op = graph.ops[0]
    given = [t.constant if t.constant is not None else x for t in map(graph.tensors.get, op.inputs)]
    with (
        tempfile.TemporaryDirectory() as folder,
        open_board(build([(plan, sources)], board(M4), Path(folder))) as session,
    ):
        run = session.run([x])
        count = session.operator_counts()[0].count
    wanted = spec_of(op.kind).reference(op, graph, given)[0]
    return count, int((run.outputs["y"] != wanted).sum())


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", type=int, help="only the first so many")
    wanted = parser.parse_args(argv)
    own = board(M4)
    cmsis = replace(own, core=replace(own.core, mve=True))
    table = Table("operator", "input", "kernel", "outputs", "MACs")
    for title in ("Thimble", "per MAC", "CMSIS-NN", "ratio", "differ"):
        table.add_column(title, justify="right")
    for shape in SHAPES[: wanted.shapes]:
        graph = graph_of(shape)
        macs = spec_of(shape.kind).macs(graph.ops[0], graph)
        ours, differing = measured(graph, shape, own)
        if differing:
            raise SystemExit(f"{shape}: {differing} elements of ours differ from the reference")
        row = [
            shape.kind,
            f"{shape.size[0]}x{shape.size[1]}x{shape.depth}",
            f"{shape.kernel[0]}x{shape.kernel[1]}/{shape.stride}",
            str(shape.channels),
            f"{macs:,}",
            f"{ours:,}",
            f"{ours / macs:.2f}",
        ]
        if shape.kind == "fully_connected":
            row += ["-", "-", "-"]
        else:
            theirs, differing = measured(graph, shape, cmsis)
            row += [f"{theirs:,}", f"{ours / theirs:.2f}", str(differing)]
        table.add_row(*row)
    Console(width=110).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
