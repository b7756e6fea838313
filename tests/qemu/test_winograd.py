"""Winograd's convolutions in assembly, on the cores that have the DSP extension."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.qemu.test_operators import compare
from tests.support.host import plan_of
from tests.support.long import mostly_long
from tests.support.split_graphs import in_tiles
from tests.support.winograd import all_by, convolution, convolutions
from toolchain.boards import board
from toolchain.ir.merged import merged
from toolchain.ops.convolution.kernels.thimble_convolve_winograd_s8 import FORMS
from toolchain.ops.window import Padding

BOARDS = ("mps2-an386", "mps2-an500", "mps2-an505")

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize("tile", tuple(FORMS))
@pytest.mark.parametrize("board_name", mostly_long(BOARDS, ["mps2-an505"]))
def test_assembly_equals_the_plain_sums(board_name: str, tile: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(tile)
    graphs = convolutions(10, rng, tile)
    large = convolution((13, 17), 64, 8, rng, padding=Padding(1, 1, 1, 1))
    tiled = in_tiles(convolution((12, 13), 8, 6, rng, padding=Padding(1, 1, 1, 1)), 2, 2)
    graph, core = merged([*graphs, large, tiled]), board(board_name).core
    plan = plan_of(graph, core, spread=True, forms=all_by(graph, tile))
    plan = replace(plan, board=board_name)
    taken = [f for kernel in plan.lowered.kernels for f in kernel.functions]
    assert taken.count(FORMS[tile].function) >= len(graphs) + 5
    compare(plan, rng, tmp_path)
