"""A library generated for one core stops another one's compiler, by features and not by names."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import plan_of
from toolchain.boards import HOST, Core, boards
from toolchain.codegen import generate
from toolchain.kernels import cmsis_nn, runtime_c
from toolchain.ops import forms

COMPILER = "arm-none-eabi-gcc"
M0 = Core("cortex-m0plus")
M3 = Core("cortex-m3")
M4 = Core("cortex-m4", dsp=True, fpu=True)
M7 = Core("cortex-m7", dsp=True, fpu=True)
M55 = Core("cortex-m55", dsp=True, mve=True, fpu=True)
FLAGS = {
    "m0+": "-mcpu=cortex-m0plus",
    "m3": "-mcpu=cortex-m3",
    "m4": "-mcpu=cortex-m4 -mfloat-abi=hard",
    "m4 soft": "-mcpu=cortex-m4 -mfloat-abi=soft",
    "m7": "-mcpu=cortex-m7 -mfloat-abi=hard",
    "m33": "-mcpu=cortex-m33 -mfloat-abi=hard",
    "m33 nodsp": "-mcpu=cortex-m33+nodsp -mfloat-abi=hard",
    "m55": "-mcpu=cortex-m55 -mfloat-abi=hard",
    "m55 nomve": "-mcpu=cortex-m55+nomve -mfloat-abi=hard",
    "m4 big": "-mcpu=cortex-m4 -mfloat-abi=hard -mbig-endian",
}
FITTING = {
    M0: {"m0+", "m3", "m33 nodsp"},
    M3: {"m0+", "m3", "m33 nodsp"},
    M4: {"m4", "m4 soft", "m7", "m33", "m55 nomve"},
    M7: {"m4", "m4 soft", "m7", "m33", "m55 nomve"},
    M55: {"m55"},
    HOST: {"m0+", "m3", "m33 nodsp"},
}

needs_compiler = pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is missing")


@cache
def text(core: Core, kind: str) -> dict[str, str]:
    graph = forms()[kind].sample(np.random.default_rng(2))
    return dict(generate(plan_of(graph, core), core, cmsis_nn.find(), name="net").files)


def stopped(core: Core, compiler: list[str], folder: Path, kind: str = "conv2d") -> str:
    """The errors of compiling what was generated for a core; '' where there is none."""
    for name, content in text(core, kind).items():
        (folder / name).write_text(content, encoding="utf-8")
    own = ["-I", str(folder), "-I", str(runtime_c.INCLUDE)]
    theirs = ["-isystem", str(cmsis_nn.find() / "Include")]
    command = [*compiler, "-std=c99", "-fsyntax-only", *own, *theirs, str(folder / "net.c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "error: #error" in done.stderr, done.stderr
    return "\n".join(re.findall(r"error: #error (.*)", done.stderr))


@needs_compiler
@pytest.mark.parametrize("core", FITTING, ids=lambda core: core.name)
def test_only_cores_with_the_same_features_compile_it(core: Core, tmp_path: Path) -> None:
    for name, flags in FLAGS.items():
        errors = stopped(core, [COMPILER, "-mthumb", *flags.split()], tmp_path)
        assert (not errors) == (name in FITTING[core]), (name, errors)
        if errors:
            assert f"net was generated for {core.name} (" in errors
            assert "thimble compile again with a --board" in errors


@needs_compiler
def test_floats_in_software_stop_what_was_planned_for_an_fpu(tmp_path: Path) -> None:
    for name, flags in FLAGS.items():
        errors = stopped(M4, [COMPILER, "-mthumb", *flags.split()], tmp_path, "conv2d.float32")
        assert (not errors) == (name in FITTING[M4] - {"m4 soft"}), (name, errors)


def test_a_board_s_library_is_not_for_this_machine(tmp_path: Path) -> None:
    assert not stopped(HOST, ["gcc"], tmp_path)
    assert "without the DSP extension" in stopped(M4, ["gcc"], tmp_path)
    assert "without Helium" in stopped(M55, ["gcc"], tmp_path)


@needs_compiler
def test_every_board_s_flags_are_its_core_s(tmp_path: Path) -> None:
    targets = boards().values()
    pairs = {(b.core, b.compiler_flags) for b in targets if not b.is_host}
    assert len(pairs) > 3
    for core, flags in pairs:
        for kind in ("conv2d", "conv2d.float32"):
            assert not stopped(core, [COMPILER, *flags], tmp_path, kind), (core, flags)
