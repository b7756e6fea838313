"""Generated C and the kernels that it calls break no rule of MISRA C:2012 but those in
docs/misra.md. All kernels and the firmware are checked by the script, in CI.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_misra.py"

needs_cppcheck = pytest.mark.skipif(shutil.which("cppcheck") is None, reason="cppcheck is missing")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_misra", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_misra"] = module
    spec.loader.exec_module(module)
    return module


@needs_cppcheck
@pytest.mark.slow
def test_generated_c_of_every_shape(script: ModuleType, tmp_path: Path) -> None:
    found = script.check_samples(tmp_path)
    assert {"11.5", "15.5", "18.4"} <= {one.rule for one in found}
    assert script.undocumented(found) == []


@needs_cppcheck
@pytest.mark.long
@pytest.mark.slow
def test_kernels(script: ModuleType, tmp_path: Path) -> None:
    """Those of the digits model."""
    samples = script.write_samples(tmp_path, script.CORTEX_M4)
    names = {path.name for path in (samples["plain"] / "runtime").rglob("*.c")}
    files = [path for path in script.runtime_c.tree().files() if path.name in names]
    assert len(files) > 10
    found = script.check_kernels(files)
    assert {"12.1", "12.3"} <= {one.rule for one in found}
    assert script.undocumented(found) == []


@needs_cppcheck
def test_what_is_broken_is_found(script: ModuleType, tmp_path: Path) -> None:
    """A rule without a deviation, a mandatory one, and an error that cppcheck knows."""
    (tmp_path / "wrong.c").write_text(
        "#include <stdint.h>\n"
        "int32_t jump(int32_t x);\n"
        "int32_t unset(void);\n"
        "int32_t jump(int32_t x)\n"
        "{\n"
        "    if (x > 0) {\n"
        "        goto out;\n"
        "    }\n"
        "    x += (int32_t)sizeof(x++);\n"
        "    if (x < -5) {\n"
        "        return 0;\n"
        "    }\n"
        "out:\n"
        "    return x;\n"
        "}\n"
        "int32_t unset(void)\n"
        "{\n"
        "    int32_t x;\n"
        "    return x;\n"
        "}\n"
    )
    found = script.check([tmp_path / "wrong.c"], [], script.PLAIN)
    wrong = {(one.rule, one.line) for one in script.undocumented(found)}
    assert {("15.1", 7), ("13.6", 9), ("uninitvar", 19)} <= wrong
    assert "15.5" in {one.rule for one in found} - {rule for rule, _ in wrong}


def test_the_document_has_no_mandatory_rule(script: ModuleType) -> None:
    assert len(script.deviations()) > 30
    assert not script.deviations() & script.MANDATORY


def test_counts_are_renewed(script: ModuleType) -> None:
    text = "| 8.9 | advisory | 1 | 22 | 3,333 | Why. |\n| 8.10 | required | 0 | 0 | 0 | x |\n"
    one = script.Finding("8.9", "a.c", 1)
    renewed = script.counted(text, ({one}, set(), {script.Finding("8.10", "b.c", 2)}))
    assert renewed == (
        "| 8.9 | advisory | 1 | 0 | 0 | Why. |\n| 8.10 | required | 0 | 0 | 1 | x |\n"
    )
