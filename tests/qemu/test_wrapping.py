"""Sums that wrap, in the assembly and the vectors of each core."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.qemu.test_operators import QUICK, compare
from tests.support import wrapping
from toolchain.boards import board
from toolchain.ir.merged import merged
from toolchain.planner import plan_graph

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize("name", ("mps2-an386", "mps2-an505", "mps3-an547", "mps2-an385-v6m"))
def test_biases_at_the_ends_of_int32(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(17)
    kinds = ("conv2d", "depthwise_conv2d", "fully_connected", "transpose_conv2d")
    graphs = [wrapping.biased(kind, rng) for kind in kinds for _ in range(6)]
    compare(plan_graph(merged(graphs), board(name), QUICK), rng, tmp_path)
