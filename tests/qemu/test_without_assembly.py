"""Firmware whose kernels have no inner loops in assembly (-DTHIMBLE_NO_ASM)."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import random_inputs, reference_outputs
from toolchain import passes
from toolchain.boards import board
from toolchain.codegen import generate
from toolchain.device import build as build_module
from toolchain.device.build import build
from toolchain.device.session import open_board
from toolchain.frontends import load_model
from toolchain.kernels import cmsis_nn
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.resources import BOARDS

DIGITS = BOARDS.parent / "examples" / "digits" / "digits_int8.tflite"


@pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
def test_the_bytes_are_those_of_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, graph = board("netduinoplus2"), passes.prepare(load_model(DIGITS)).graph
    plan = plan_graph(graph, target, PlanOptions().unsplit)
    sources = generate(plan, target.core, cmsis_nn.find(), name="net")
    flags = (*build_module._COMMON, "-DTHIMBLE_NO_ASM")
    counts = []
    inputs = random_inputs(graph, np.random.default_rng(3))
    for name in ("with", "without"):
        firmware = build([(plan, sources)], target, tmp_path / name)
        monkeypatch.setattr(build_module, "_COMMON", flags)
        with open_board(firmware) as session:
            done = session.run(inputs)
        (want,) = reference_outputs(graph, inputs)
        np.testing.assert_array_equal(done.outputs[graph.outputs[0]], want)
        counts.append(done.count)
    assert counts[1] > 2 * counts[0]
