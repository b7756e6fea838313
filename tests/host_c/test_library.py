"""`--library`: a folder that CMake builds by itself, for this machine and for a Cortex-M."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.support.graphs import dense_chain
from tests.support.host import plan_of
from toolchain.boards import HOST, Core
from toolchain.codegen import generate, library_files, write_library
from toolchain.ir import Sources
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms

CORTEX_M55 = Core("cortex-m55", dsp=True, mve=True, fpu=True)


def with_own_kernel(core: Core = HOST) -> Sources:
    graph = forms()["add"].sample(np.random.default_rng(3))
    return generate(plan_of(graph, core), core, cmsis_nn.find(), name="own")


def with_cmsis_nn(core: Core = HOST) -> Sources:
    """Max pooling of int16 is CMSIS-NN's on every core."""
    graph = forms()["max_pool2d.int16"].sample(np.random.default_rng(0))
    sources = generate(plan_of(graph, core), core, cmsis_nn.find(), name="arms")
    assert sources.cmsis_nn
    return sources


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)


def configure(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return run("cmake", "-S", folder, "-B", folder / "build", *options)


needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")


@needs_cmake
@pytest.mark.parametrize("cross", [False, True], ids=["host", "cortex-m55"])
def test_cmake_builds_it(tmp_path: Path, cross: bool) -> None:
    options = [f"-DCMSIS_NN_DIR={cmsis_nn.find()}"]
    if cross:
        if shutil.which("arm-none-eabi-gcc") is None:
            pytest.skip("arm-none-eabi-gcc is not installed")
        options += ["-DCMAKE_SYSTEM_NAME=Generic", "-DCMAKE_C_COMPILER=arm-none-eabi-gcc"]
        options += ["-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"]
        options += ["-DCMAKE_C_FLAGS=-mcpu=cortex-m55 -mthumb -mfloat-abi=hard"]
    core = CORTEX_M55 if cross else HOST
    for sources in (with_cmsis_nn(core), with_own_kernel(core)):
        folder = tmp_path / sources.name
        written = write_library([sources], folder)
        assert {p.name for p in written} >= {"CMakeLists.txt", "cmsis_nn_sources.txt"}
        configured = configure(folder, *options)
        assert configured.returncode == 0, configured.stderr
        built = run("cmake", "--build", folder / "build")
        assert built.returncode == 0, built.stdout + built.stderr
        assert "warning" not in built.stdout + built.stderr
        assert (folder / "build" / f"lib{sources.name}.a").is_file()


@needs_cmake
def test_without_cmsis_nn_cmake_says_what_is_missing(tmp_path: Path) -> None:
    write_library([with_cmsis_nn()], tmp_path)
    configured = configure(tmp_path, "-DCMSIS_NN_DIR=/nonexistent")
    assert configured.returncode != 0
    assert "CMSIS_NN_DIR" in configured.stderr


def test_it_holds_only_what_it_needs() -> None:
    sources = with_own_kernel()
    files = library_files([sources])
    kernels = {name for name in files if name.startswith("runtime/source/")}
    assert kernels == {f"runtime/{path}" for path in sources.runtime} != set()
    for name, text in files.items():
        for line in text.splitlines():
            if line.startswith('#include "thimble_'):
                assert f"runtime/include/{line.split(chr(34))[1]}" in files, name
    theirs = library_files([with_cmsis_nn()])
    assert not any(name.startswith("runtime/") for name in theirs)
    listed = theirs["cmsis_nn_sources.txt"].splitlines()
    assert listed and all((cmsis_nn.find() / path).is_file() for path in listed)


def test_models_that_share_an_arena(tmp_path: Path) -> None:
    """One folder, a union of arenas as large as the largest, and each model's sources once."""
    graphs = [dense_chain("small", (6, 5)), dense_chain("large", (96, 64, 80))]
    made = [generate(plan_of(g), HOST, cmsis_nn.find(), name=g.name) for g in graphs]
    folder = tmp_path / "both"
    write_library(made, folder)
    (folder / "main.c").write_text(
        '#include "thimble_shared_arena.h"\n'
        "#include <stdio.h>\n"
        "int main(void)\n"
        "{\n"
        "    static thimble_shared_arena arena;\n"
        '    printf("%d %d", small_run(arena.shared.small), large_run(arena.shared.large));\n'
        "    return sizeof arena != LARGE_ARENA_BYTES + (-LARGE_ARENA_BYTES & 7);\n"
        "}\n"
    )
    sources = [cmsis_nn.find() / line for line in (folder / "cmsis_nn_sources.txt").open()]
    kernels = [Path(str(path).strip()) for path in sources]
    include = cmsis_nn.tree(cmsis_nn.find()).include
    built = run(
        *("gcc", "-std=c99", "-Wall", "-Werror", "-o", tmp_path / "both.exe"),
        *("-I", folder, "-I", folder / "runtime" / "include", "-isystem", include),
        *folder.glob("*.c"),
        *(folder / "runtime").glob("source/**/*.c"),
        *kernels,
    )
    assert built.returncode == 0, built.stderr
    done = run(tmp_path / "both.exe")
    assert (done.returncode, done.stdout) == (0, "0 0")
