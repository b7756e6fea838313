"""The convolution family on every core that differs: assembly and Helium against NumPy."""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.qemu.test_operators import compare
from tests.support.convolutions import convolutions
from tests.support.merge import merged
from toolchain.boards import board
from toolchain.planner import plan_graph

BOARDS = ("netduinoplus2", "mps2-an500", "mps3-an547")
KINDS = ("conv2d", "depthwise_conv2d", "fully_connected", "transpose_conv2d", "batch_matmul")

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize("board_name", BOARDS)
def test_convolutions_equal_their_references(board_name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(zlib.crc32(board_name.encode()))
    graphs = [graph for kind in KINDS for graph in convolutions(kind, 9, rng)]
    compare(plan_graph(merged(graphs), board(board_name)), rng, tmp_path)
