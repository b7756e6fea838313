"""Plans that spend flash on quicker kernels compute what their references do, split or not."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.qemu.test_operators import compare
from tests.support.long import mostly_long
from tests.support.winograd import chain
from toolchain.boards import board
from toolchain.ir.merged import merged
from toolchain.memory.firmware_size import ram_bytes
from toolchain.planner import plan_graph
from toolchain.planning.options import Optimise, PlanOptions

BOARDS = ("mps2-an386", "mps2-an500", "mps2-an505")

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize("name", mostly_long(BOARDS, ["mps2-an500"]))
def test_chosen_kernels_in_room_that_is_left(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    graph = merged([chain(9, (8, 24, 16, 8), rng), chain(12, (16, 16, 10, 8), rng)])
    plan = plan_graph(graph, board(name), PlanOptions(optimise=Optimise.SPEED))
    assert plan.spent.operators >= 4
    compare(plan, rng, tmp_path)


@pytest.mark.parametrize("name", mostly_long(BOARDS, ["mps2-an500"]))
def test_chosen_kernels_in_blocks(name: str, tmp_path: Path) -> None:
    """Blocks of one operator by different kernels, too: a lone row is no tile's height."""
    rng = np.random.default_rng(6)
    graph, target = chain(20, (8, 48, 16, 16), rng), board(name)
    whole = plan_graph(graph, target, PlanOptions(optimise=Optimise.SIZE).unsplit)
    options = PlanOptions(ram_bytes=int(0.85 * ram_bytes(whole)), split_seconds=1.0)
    plan = plan_graph(graph, target, options)
    blocks = [op for op in plan.graph.ops if op.part_of and op.kind == "conv2d"]
    taken = [k for k in plan.lowered.kernels if "winograd" in k.name]
    assert blocks and len(taken) > plan.spent.operators
    compare(plan, rng, tmp_path)
