"""The recipe of docs/own-board.md for a board of the user's, command by command."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from toolchain.cli import run
from toolchain.device.firmware import load_firmware
from toolchain.resources import BOARDS

pytestmark = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None, reason="needs arm-none-eabi-gcc"
)
ROOT = BOARDS.parent
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
PINS = {"tx": "PC10", "rx": "PC11", "function": "7"}


def commands() -> list[list[str]]:
    """Those of the recipe, without the remarks behind them."""
    text = (ROOT / "docs" / "own-board.md").read_text(encoding="utf-8")
    _, _, rest = text.partition("this repository need not hold it:\n\n```\n")
    lines = rest.partition("```")[0].splitlines()
    assert all(line.startswith("$ thimble ") for line in lines)
    return [shlex.split(re.split("  +", line)[0])[2:] for line in lines]


def change(file: Path) -> None:
    """The lines that say CHANGE, as the recipe asks."""
    text = file.read_text()
    for name, value in PINS.items():
        wanted = value if value.isdigit() else f'"{value}"'
        text, found = re.subn(rf"^{name} = .*# CHANGE$", f"{name} = {wanted}", text, flags=re.M)
        assert found == 1, name
    assert "CHANGE" not in re.sub("(?m)^#.*$", "", text)
    file.write_text(text)


def test_the_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(DIGITS, "model.tflite")
    new, check, make = commands()
    assert run(new) == 0
    file = tmp_path / "boards" / "greenhouse" / "board.toml"
    change(file)
    assert run(check) == 0
    told = capsys.readouterr().out
    assert "180,000,000 Hz" in told and "PC10 and PC11" in told and "256 KiB" in told
    right = file.read_text()
    for old, wrong, message in (
        ("n = 180\n", "n = 360\n", r"clock\.n: the PLL's VCO|clock: the core runs|clock\.n is"),
        ("115_200", "7_000_000", r"\[uart\] baud"),
        ("PC10", "PZ10", r"uart: tx is PZ10"),
    ):
        assert old in right, right
        file.write_text(right.replace(old, wrong))
        assert run(check) == 2
        assert re.search(message, " ".join(capsys.readouterr().err.split()))
    file.write_text(right)
    assert run(make) == 0
    firmware = load_firmware(tmp_path / "out")
    with firmware.elf.open("rb") as elf:
        assert ELFFile(elf).get_section_by_name(".vectors")["sh_addr"] == 0x0800_0000
    assert firmware.board.memories[0].size_bytes == 256 << 10
    assert firmware.board.defines["THIMBLE_TX_PORT"] == "0x40020800u"  # port C
    assert firmware.board.defines["THIMBLE_TX_PIN"] == "0xAu"
