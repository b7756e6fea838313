"""clang-tidy and gcc's analyser have nothing to say of generated C and the kernels that it calls.
The script that CI runs goes over all kernels and the firmware.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_analysers.py"
CROSS = "arm-none-eabi-gcc"
KERNELS = 8

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which(CROSS) is None, reason=f"{CROSS} is missing"),
]
needs_tidy = pytest.mark.skipif(shutil.which("clang-tidy") is None, reason="clang-tidy is missing")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_analysers", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_analysers"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
@needs_tidy
def test_clang_tidy(script: ModuleType, tmp_path: Path) -> None:
    for sources in script.generated(tmp_path):
        assert script.tidy(sources) == []
    every = script.kernels()
    assert script.tidy(replace(every, files=every.files[:: len(every.files) // KERNELS])) == []


def test_the_analyser_of_gcc(script: ModuleType, tmp_path: Path) -> None:
    for sources in script.generated(tmp_path):
        assert script.analyse(sources) == []
    every = script.kernels()
    assert script.analyse(replace(every, files=every.files[:: len(every.files) // KERNELS])) == []


WRONG = """\
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int32_t wrong(int32_t x, void *memory);
void print(int32_t rows);

int32_t wrong(int32_t x, void *memory)
{
    (void)memset(&x, sizeof(x), 0);
    print(/*columns=*/x);
    free(memory);
    free(memory);
    return x;
}
"""


@needs_tidy
def test_what_is_wrong_is_said(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "wrong.c").write_text(WRONG, encoding="utf-8")
    sources = replace(script.kernels(), files=(tmp_path / "wrong.c",))
    assert any("bugprone-suspicious-memset-usage" in line for line in script.tidy(sources))
    assert any("bugprone-argument-comment" in line for line in script.tidy(sources))
    assert any("clang-analyzer-unix.Malloc" in line for line in script.tidy(sources))
    assert any("-Wanalyzer-double-free" in line for line in script.analyse(sources))
