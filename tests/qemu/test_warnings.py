"""Our C for Cortex-M: no warning from the cross compiler, kernels and generated code alike."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import plan_of
from tests.support.long import mostly_long
from toolchain.boards import Core
from toolchain.codegen import generate
from toolchain.kernels import cmsis_nn, runtime_c
from toolchain.ops import forms

COMPILER = "arm-none-eabi-gcc"
HELIUM = "-mcpu=cortex-m55 -mfloat-abi=hard"
CORES = {
    "-mcpu=cortex-m3": Core("cortex-m3"),
    "-mcpu=cortex-m4 -mfloat-abi=hard": Core("cortex-m4", dsp=True, fpu=True),
    HELIUM: Core("cortex-m55", dsp=True, mve=True, fpu=True),
}
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wundef", "-Wcast-align", "-Wshadow", "-Werror"]
SAMPLES = 2

pytestmark = pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is missing")


def check(cpu: str, files: list[Path], include: list[Path]) -> None:
    command = [COMPILER, *cpu.split(), "-mthumb", "-std=c99", *WARNINGS, "-fsyntax-only"]
    for folder in include:
        command += ["-I", str(folder)]
    command += ["-isystem", str(cmsis_nn.find() / "Include")]
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]


@pytest.mark.parametrize("cpu", mostly_long(CORES, [HELIUM]), ids=lambda cpu: CORES[cpu].name)
def test_generated_code(tmp_path: Path, cpu: str) -> None:
    core = CORES[cpu]
    for kind, spec in forms().items():
        rng = np.random.default_rng(7)
        for index in range(SAMPLES):
            graph = spec.sample(rng)
            name = f"{kind}_{index}"
            sources = generate(plan_of(graph, core), core, cmsis_nn.find(), name=name)
            for file_name, text in sources.files.items():
                (tmp_path / file_name).write_text(text, encoding="utf-8")
    described = sorted(tmp_path.glob("*_info.c"))
    models = sorted({*tmp_path.glob("*.c")} - {*described})
    assert len(described) == len(models) == SAMPLES * len(forms())
    together = tmp_path / "described.c"  # one template, so each includes what the first does
    parts = (f'#line 1 "{file.name}"\n{file.read_text("utf-8")}' for file in described)
    together.write_text("\n".join(parts), encoding="utf-8")
    check(cpu, [*models, described[0], together], [tmp_path, runtime_c.INCLUDE])


@pytest.mark.parametrize("cpu", CORES, ids=lambda cpu: CORES[cpu].name)
def test_kernels(cpu: str) -> None:
    check(cpu, list(runtime_c.tree().files()), list(runtime_c.KERNEL_INCLUDES))
