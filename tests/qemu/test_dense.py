"""Fully connected layers of joined units in assembly, on the cores that have the DSP extension."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.qemu.test_operators import compare
from tests.support.dense import layers
from tests.support.overlaps import allowed_overlaps, tight_plan
from toolchain.boards import board
from toolchain.ir.merged import merged

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize("board_name", ("mps2-an386", "mps2-an500", "mps2-an505"))
def test_assembly_equals_the_plain_sums(board_name: str, tmp_path: Path) -> None:
    """As close together in the arena as the overlaps allow."""
    rng = np.random.default_rng(8)
    core = board(board_name).core
    cases = [(g, o) for g in layers(80, rng) for o in allowed_overlaps(g.ops[0], g, core)]
    graph, overlaps = merged([g for g, _ in cases]), [o for _, o in cases]
    plan = replace(tight_plan(graph, overlaps, core), board=board_name)
    taken = [f for kernel in plan.lowered.kernels for f in kernel.functions]
    assert taken.count("thimble_fully_connected_joined_s8") >= 80
    compare(plan, rng, tmp_path)
