"""Float32 operators on floating-point units: the same bits as NumPy, near LiteRT."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.qemu.test_operators import QUICK, compare
from tests.support.floats import mixed, network
from tests.support.long import mostly_long
from tests.support.tflite_writer import tflite_bytes
from toolchain.boards import board
from toolchain.deployment.verification import verify_model
from toolchain.ir import DType
from toolchain.ir.merged import merged
from toolchain.ops import forms
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions

BOARDS = ("mps2-an500", "netduinoplus2", "mps3-an547")
KINDS = [name for name, form in forms().items() if form.dtypes == {DType.FLOAT32}]

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize("board_name", mostly_long(BOARDS[:2], BOARDS[:1]))
def test_operators_give_the_same_bits_everywhere(board_name: str, tmp_path: Path) -> None:
    """`compare` holds them against their references, which know no core."""
    target = board(board_name)
    assert target.core.fpu
    rng = np.random.default_rng(3)
    graph = merged([forms()[kind].sample(rng) for kind in KINDS])
    compare(plan_graph(graph, target, QUICK), rng, tmp_path)


@pytest.mark.parametrize("board_name", mostly_long(BOARDS, BOARDS[2:]))
def test_networks_are_near_litert(board_name: str, tmp_path: Path) -> None:
    for graph in (mixed(), network()):
        model = tmp_path / f"{graph.name}.tflite"
        model.write_bytes(tflite_bytes(graph))
        options = PlanOptions(allow_float=graph.name == "floats")
        result = verify_model(model, board_name, runs=5, options=options)
        assert result.passed
        assert result.tolerance == 1
        if graph.name == "mixed":
            assert result.differing == 0
