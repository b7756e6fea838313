"""Predicted cycles of kernels on shapes that no fit has seen, held against a trace."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks._cost_fit import errors
from benchmarks._cost_part import HELD_OUT, Part
from benchmarks.cost import Bench, core_points
from toolchain.boards import board
from toolchain.cost.fitted import fit_of
from toolchain.kernels import cmsis_nn

needs_tools = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
FAMILIES = ("average_pool2d", "depthwise_3x3")
KERNELS = frozenset({"arm_avgpool_s8", "arm_depthwise_conv_3x3_s8"})
MOST = 0.1


@needs_tools
def test_kernels_take_the_cycles_that_are_predicted(tmp_path: Path) -> None:
    """It fails where their C has changed and nobody fitted them again."""
    target = board("mps2-an386")
    bench = Bench(target, (), cmsis_nn.find(), tmp_path, Console(quiet=True))
    found = bench.samples(Part(FAMILIES, KERNELS, each=2), HELD_OUT)
    fit = fit_of(target.core).kernels
    assert set(found) >= KERNELS
    for name in KERNELS:
        wrong = errors(core_points(found[name], target.core.name), fit[name])
        assert np.abs(wrong).max() <= MOST, name
