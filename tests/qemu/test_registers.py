"""The firmware's registers, bits, interrupts and memories, held against ST's and Arm's headers.

THIMBLE_ST_HEADERS names a folder with their repositories, as scripts/check_registers.py takes it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.registers import TABLES
from toolchain.resources import BOARDS

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_registers.py"
HEADERS = os.environ.get("THIMBLE_ST_HEADERS", "")
pytestmark = [
    pytest.mark.skipif(not HEADERS, reason="needs THIMBLE_ST_HEADERS, a folder of ST's headers"),
    pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="needs arm-none-eabi-gcc"),
]


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_registers", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_all_numbers_are_those_of_the_headers(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And the tables that the other tests take their registers from are what the headers give."""
    monkeypatch.setattr(script, "TABLES", tmp_path)
    monkeypatch.setattr(script, "CHECKED", tmp_path.parent / "checked.toml")
    assert script.main([HEADERS, "--write"]) == 0, capsys.readouterr().err
    for file in sorted(TABLES.glob("*.csv")):
        fresh = (tmp_path / file.name).read_text().splitlines()
        assert fresh[1:] == file.read_text().splitlines()[1:], file.name
    told, kept = ((folder / "checked.toml").read_text() for folder in (tmp_path.parent, BOARDS))
    assert told.splitlines()[6:] == kept.splitlines()[6:]
    assert {f.name for f in tmp_path.iterdir()} == {f.name for f in TABLES.iterdir()}


def test_what_differs_is_listed(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The address that H743 firmware had, a wrong bit, a name of ours, and a wrong interrupt."""
    boards, ours, facts = script.stm32_boards(), script.ours, script.facts
    wrong = {"SYSCFG_PWRCR": 0x58000404, "RCC_CR_PLL1ON": 1 << 23, "RCC_OURS": 0x58024400}
    monkeypatch.setattr(
        script, "stm32_boards", lambda: [b for b in boards if b.name == "nucleo-h743zi"]
    )
    monkeypatch.setattr(script, "ours", lambda board: ours(board) | wrong)
    monkeypatch.setattr(
        script,
        "facts",
        lambda board, macros: (
            f if f.what != "UART_IRQ" else script.Fact(f.what, 38, f.theirs)
            for f in facts(board, macros)
        ),
    )
    assert script.main([HEADERS]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "nucleo-h743zi: RCC_CR_PLL1ON is 0x800000; stm32h743xx.h has 0x1000000",
        "nucleo-h743zi: SYSCFG_PWRCR is 0x58000404; stm32h743xx.h has 0x5800042C",
        "nucleo-h743zi: RCC_OURS is 0x58024400; stm32h743xx.h has nothing of that name",
        "nucleo-h743zi: UART_IRQ is 0x26; stm32h743xx.h has 0x27",
    ]
