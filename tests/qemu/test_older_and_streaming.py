"""Legacy uint8 operators, and models that keep state, on emulated boards with DSP and Helium."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.qemu.test_operators import BOARDS, QUICK, compare
from tests.support.legacy import legacy_sample
from tests.support.states import GRAPHS
from tests.support.tflite_writer import tflite_bytes
from toolchain.boards import board
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir.merged import merged
from toolchain.ops import forms
from toolchain.passes import prepare
from toolchain.planner import plan_graph

KINDS = ("conv2d", "depthwise_conv2d", "fully_connected", "average_pool2d", "resize_bilinear")
SAMPLES = 12

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize("board_name", BOARDS)
def test_legacy_uint8_equals_its_reference(board_name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    samples = [legacy_sample(k, rng) for k in KINDS for _ in range(SAMPLES)]
    files = [tflite_bytes(sample) for sample in samples]
    graphs = [prepare(FRONT_END.read(data, Path("m.tflite"))).graph for data in files]
    compare(plan_graph(merged(graphs), board(board_name), QUICK), rng, tmp_path)


@pytest.mark.parametrize("board_name", BOARDS)
def test_states_and_resets_equal_their_references(board_name: str, tmp_path: Path) -> None:
    """Windows that shift, exchanged states; LSTM and SVDF from run to run, then anew."""
    rng = np.random.default_rng(12)
    recurrent = [
        forms()[kind].sample(rng) for kind in ("lstm", "svdf", "svdf.int8") for _ in range(SAMPLES)
    ]
    graph = merged([*GRAPHS.values(), *recurrent])
    compare(plan_graph(graph, board(board_name), QUICK), rng, tmp_path)
