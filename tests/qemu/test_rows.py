"""Inputs that arrive by rows, on emulated boards: a few rows at a time, bit-exact with LiteRT."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.zoo_mobile import mobilenet_v2
from tests.support.long import mostly_long
from tests.support.tflite_writer import tflite_bytes
from toolchain.deployment.verification import verify_model
from toolchain.planning.options import PlanOptions

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)

SIZE = 48
RUNS = 6
"""The firmware pushes all rows of a frame at once, or 1, 2 or 7 at a time, by the first byte."""


@pytest.mark.parametrize(
    "board", mostly_long(["netduinoplus2", "mps2-an500", "mps3-an547"], ["mps2-an500"])
)
def test_rows_give_what_litert_computes_of_the_whole_image(board: str, tmp_path: Path) -> None:
    model = tmp_path / "mobilenet.tflite"
    model.write_bytes(tflite_bytes(mobilenet_v2("mobilenet", 0.35, SIZE, 4)))
    options = PlanOptions(stream_input=True, max_slowdown=0.3, split_seconds=2)
    done = verify_model(model, board, runs=RUNS, options=options)
    assert done.differing == 0
    assert done.elements == RUNS * 4
    plan, sizes = done.compiled.plan, done.compiled.sizes
    assert sum(op.kind == "input_rows" for op in plan.graph.ops) > 4
    assert sizes is not None
    assert sizes.pushed_bytes == SIZE * SIZE * 3
    assert done.memory is not None
    assert done.memory.arena_bytes <= plan.arena.size_bytes == sizes.arena_bytes
