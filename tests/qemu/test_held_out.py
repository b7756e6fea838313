"""Predicted cycles of kernels on shapes that no fit has seen, held against a trace."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks._cost_fit import errors
from benchmarks._cost_part import HELD_OUT, Part
from benchmarks.cost import FITTED, Bench, core_points
from tests.support.long import mostly_long
from toolchain.boards import Core, board
from toolchain.cost.fitted import fit_of
from toolchain.kernels import cmsis_nn

needs_tools = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
OF_ARM = {"arm_avgpool_s8", "arm_depthwise_conv_3x3_s8"}
OF_HELIUM = {"thimble_convolve_lanes_s8", "thimble_depthwise_windows_lanes_s8"}
FAMILIES = ("average_pool2d", "depthwise_3x3", "pointwise")
MOST = 0.1


@needs_tools
@pytest.mark.parametrize("name", mostly_long(FITTED, ["mps2-an386", "mps3-an547"]))
def test_kernels_take_the_cycles_that_are_predicted(name: str, tmp_path: Path) -> None:
    """It fails where their C has changed and nobody fitted them again."""
    target = board(name)
    kernels = frozenset(OF_HELIUM if target.core.mve else OF_ARM)
    bench = Bench(target, (), cmsis_nn.find(), tmp_path, Console(quiet=True))
    found = bench.samples(Part(FAMILIES, kernels, each=2), HELD_OUT)
    assert set(found) >= kernels
    for core in FITTED[name].cores:
        for kernel in kernels:
            wrong = errors(core_points(found[kernel], core), fit_of(Core(core)).kernels[kernel])
            assert np.abs(wrong).max() <= MOST, (core, kernel)
