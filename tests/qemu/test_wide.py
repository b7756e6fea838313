"""A network of int16 activations and int8 weights against LiteRT, by `verify_model`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.tflite_writer import tflite_bytes
from tests.support.wide import network
from toolchain.deployment.verification import verify_model
from toolchain.ir import DType

BOARDS = ("host", "netduinoplus2", "mps3-an547")

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize("board_name", BOARDS)
def test_network_equals_litert(board_name: str, tmp_path: Path) -> None:
    model = tmp_path / "wide.tflite"
    model.write_bytes(tflite_bytes(network()))
    result = verify_model(model, board=board_name, runs=10)
    assert (result.differing, result.elements) == (0, 50)
    (end,) = result.compiled.plan.inputs
    assert end.tensor.dtype is DType.INT16, "the caller converts"
