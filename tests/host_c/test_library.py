"""`--library`: a folder that CMake builds by itself, for this machine and for a Cortex-M."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.support.graphs import dense_chain
from tests.support.host import plan_of
from toolchain.boards import HOST, Core
from toolchain.cli import run as thimble
from toolchain.codegen import generate, library_files, write_library
from toolchain.ir import Sources
from toolchain.kernels import cmsis_nn, runtime_c
from toolchain.kernels.c_sources import source_closure
from toolchain.ops import forms
from toolchain.resources import RUNTIME_C

DIGITS = RUNTIME_C.parent / "examples" / "digits" / "digits_int8.tflite"
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


def without_cmsis_nn(core: Core = HOST) -> Sources:
    """A model of pools, whose kernels once took CMSIS-NN's structs."""
    graph = forms()["max_pool2d"].sample(np.random.default_rng(0))
    sources = generate(plan_of(graph, core), core, cmsis_nn.find(), name="pools")
    assert not sources.cmsis_nn
    return sources


def cross_options(cross: bool) -> list[str]:
    if not cross:
        return []
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    return [
        "-DCMAKE_SYSTEM_NAME=Generic",
        "-DCMAKE_C_COMPILER=arm-none-eabi-gcc",
        "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",
        "-DCMAKE_C_FLAGS=-mcpu=cortex-m55 -mthumb -mfloat-abi=hard",
    ]


def check_built(sources: Sources, folder: Path, *options: str) -> None:
    configured = configure(folder, *options)
    assert configured.returncode == 0, configured.stderr
    built = run("cmake", "--build", folder / "build")
    assert built.returncode == 0, built.stdout + built.stderr
    assert "warning" not in built.stdout + built.stderr
    assert (folder / "build" / f"lib{sources.name}.a").is_file()


@needs_cmake
@pytest.mark.parametrize("cross", [False, True], ids=["host", "cortex-m55"])
def test_cmake_builds_it(tmp_path: Path, cross: bool) -> None:
    options = [f"-DCMSIS_NN_DIR={cmsis_nn.find()}", *cross_options(cross)]
    sources = with_cmsis_nn(CORTEX_M55 if cross else HOST)
    written = write_library([sources], tmp_path)
    assert {p.name for p in written} >= {"CMakeLists.txt", "cmsis_nn_sources.txt"}
    check_built(sources, tmp_path, *options)


@needs_cmake
@pytest.mark.parametrize("cross", [False, True], ids=["host", "cortex-m55"])
def test_a_model_of_our_kernels_alone_is_built_without_cmsis_nn(
    tmp_path: Path, cross: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CMSIS_NN_DIR", raising=False)
    core = CORTEX_M55 if cross else HOST
    options = cross_options(cross)
    for sources in [with_own_kernel(core)] + [without_cmsis_nn()] * (not cross):
        folder = tmp_path / sources.name
        written = write_library([sources], folder)
        assert "cmsis_nn_sources.txt" not in {p.name for p in written}
        text = "".join(path.read_text() for path in written)
        assert "PRIVATE -O2 " in (folder / "CMakeLists.txt").read_text()
        assert "CMSIS_NN_DIR" not in text and '#include "arm_' not in text
        check_built(sources, folder, *options)


def test_kernels_that_call_no_cmsis_nn_include_none_of_it() -> None:
    """Compiled with our headers alone: all of ours but those that call one of CMSIS-NN's."""
    theirs, ours = cmsis_nn.tree(cmsis_nn.find()), runtime_c.tree()
    alone = [
        path
        for path in ours.files()
        if not any(
            file.is_relative_to(theirs.sources)
            for file in source_closure([path.stem], (theirs, ours)).files
        )
    ]
    assert len(alone) > 0.9 * len(ours.files())
    folders = [f"-I{folder}" for folder in runtime_c.KERNEL_INCLUDES]
    checked = run("gcc", "-std=gnu99", "-fsyntax-only", *folders, *alone)
    assert checked.returncode == 0, checked.stderr


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
                header = line.split('"')[1]
                assert (header in files) != (f"runtime/include/{header}" in files), name
    theirs = library_files([with_cmsis_nn()])
    assert not any(name.startswith("runtime/") for name in theirs)
    listed = theirs["cmsis_nn_sources.txt"].splitlines()
    assert listed and all((cmsis_nn.find() / path).is_file() for path in listed)


def test_the_command_in_the_head_makes_the_same_files_again(tmp_path: Path) -> None:
    def made(folder: str, *words: str) -> dict[str, bytes]:
        out = tmp_path / folder
        assert thimble(["compile", str(DIGITS), *words, "--library", "-o", str(out)]) == 0
        return {path.name: path.read_bytes() for path in out.glob("net*")}

    given = ("--board", "host", "--no-split", "--weights", "fetched", "--name", "net")
    first = made("first", *given)
    for name in ("net.h", "net.c", "net.hpp", "net_info.c"):
        (line,) = re.findall(r"^ \* +thimble compile (.+)$", first[name].decode(), re.M)
        model, *words = line.split()
        assert model == DIGITS.name and {"--name", "--no-split"} <= set(words)
    assert made("again", *words) == first


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
    built = run(
        *("gcc", "-std=c99", "-Wall", "-Werror", "-o", tmp_path / "both.exe"),
        *("-I", folder, "-I", folder / "runtime" / "include"),
        *folder.glob("*.c"),
        *(folder / "runtime").glob("source/**/*.c"),
    )
    assert built.returncode == 0, built.stderr
    done = run(tmp_path / "both.exe")
    assert (done.returncode, done.stdout) == (0, "0 0")
