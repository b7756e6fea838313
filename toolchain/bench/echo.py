"""The firmware that echoes: its output is its input."""

from __future__ import annotations

from pathlib import Path

from toolchain.boards import board as find_board
from toolchain.codegen import generate
from toolchain.device.build import build
from toolchain.device.firmware import Firmware, load_firmware
from toolchain.errors import InputError
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.kernels import cmsis_nn
from toolchain.ops.movement.reshape import Reshape
from toolchain.planner import plan_graph

ECHO_BYTES = 512


def echo_firmware(board_name: str, folder: Path) -> Firmware:
    """Build the echo firmware, if it is not in `folder` yet.

    It is the same everywhere: it can be flashed once and tested from many places.
    """
    if (folder / "firmware.json").exists():
        return load_firmware(folder)
    target = find_board(board_name)
    if target.is_host:
        raise InputError("the host has no firmware")
    quantisation = Quantisation((1.0,), (0,))
    tensors = [
        Tensor("input", (1, ECHO_BYTES), DType.INT8, quantisation),
        Tensor("output", (ECHO_BYTES,), DType.INT8, quantisation),
    ]
    op = Op("reshape", "echo", ("input",), ("output",), Reshape((ECHO_BYTES,)))
    plan = plan_graph(Graph.build("echo", tensors, [op], ["input"], ["output"]), target)
    sources = generate(plan, target.core, cmsis_nn.find())
    return build([(plan, sources)], target, folder)
