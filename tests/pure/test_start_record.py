"""A start-up that waits in vain leaves its reason in RAM; `thimble flash` reads it by the probe."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pure.test_flash import firmware_for
from toolchain.boards import board
from toolchain.device import flash
from toolchain.device.flash import choose
from toolchain.device.start_record import WORDS, complaint
from toolchain.errors import LinkError

WAITS, FAULT = 0x57A27002, 0xFA17FA17
AT = 0x2000_1000
PLL = [WAITS, 0x40021000, 1 << 25, 1 << 25, 0x01000500]


@pytest.mark.parametrize(
    ("name", "words", "told"),
    [
        ("nucleo-g474re", PLL, "RCC_CR_PLLRDY"),
        ("nucleo-g474re", PLL, "the PLL does not run"),
        (
            "nucleo-h755zi-q",
            [WAITS, 0x58024804, 1 << 13, 1 << 13, 0],
            "PWR_CSR1_ACTVOSRDY (held 0x00000000, and bits 0x2000 were to be 0x2000): the supply",
        ),
        ("f746g-disco", [WAITS, 0xA0001008, 2, 2, 0], "QUADSPI_SR_TCF"),
        ("f746g-disco", [WAITS, 0xA0001008, 2, 2, 0], "memory beside the chip does not answer"),
        ("nucleo-f446re", [WAITS, 0x40000000, 1, 1, 0], "bits 0x1 of the register at 0x40000000"),
    ],
)
def test_the_record_ends_in_a_sentence(name: str, words: list[int], told: str) -> None:
    assert told in complaint(words, board(name))


@pytest.mark.parametrize("words", [[], [FAULT, 0, 0, 0, 0], [0, 0, 0, 0, 0], [WAITS], [7] * 5])
def test_a_board_that_started_or_says_nothing_is_not_blamed(words: list[int]) -> None:
    assert complaint(words, board("nucleo-f446re")) == ""


SAID = {
    "openocd": "Info : clock speed 2000 kHz\nwords 0x57a27002 0x40021000 0x2000000 0x2000000 0x0\n",
    "pyocd": "20001000:  57a27002 40021000 02000000 02000000    |...W....|\n"
    "20001010:  00000000    |....|\n",
    "stm32cubeprogrammer": "  Size          : 20 Bytes\n\n"
    "0x20001000 : 57A27002 40021000 02000000 02000000\n0x20001010 : 00000000\n",
}


@pytest.mark.parametrize("name", list(SAID))
def test_each_tool_reads_the_words_of_a_running_chip(name: str) -> None:
    """`read_memory` of openocd 0.12.0 (doc/openocd.texi), `read32` of pyocd's commander, `-r32` of
    ST's tool (UM2237): none resets the chip."""
    runner = choose(board("nucleo-g474re"), name, installed=False)
    line = " ".join(runner.peek(AT, WORDS))
    assert "20001000" in line and "reset" not in line and "mode=UR" not in line
    assert runner.peeked(SAID[name]) == [WAITS, 0x40021000, 1 << 25, 1 << 25, 0]
    assert runner.peeked("nothing") == []


CORE = {
    "openocd": "target halted due to debug-request, current mode: Thread\npc (/32): 0x080001d0\n"
    "lr (/32): 0xfffffff9\nsp (/32): 0x20000800\n",
    "pyocd": "Successfully halted device\npc = 0x080001d0 (134218192)\nlr = 0xfffffff9 "
    "(4294967289)\nsp = 0x20000800 (536872960)\n",
}


@pytest.mark.parametrize("name", list(CORE))
def test_a_silent_core_is_stopped_read_and_let_run_on(name: str) -> None:
    """`reg` of openocd 0.12.0 (handle_reg_command of src/target/target.c) and of pyocd's commander
    (RegCommand of pyocd/commands/commands.py)."""
    runner = choose(board("nucleo-g474re"), name, installed=False)
    line = runner.halted()
    assert line.index("halt") < line.index("reg pc") < line.index("reg lr") < line.index("reg sp")
    assert line[-1] == "shutdown" or line[-1] == "go"
    assert not any("reset" in word for word in line)
    wanted = {"pc": 0x0800_01D0, "lr": 0xFFFF_FFF9, "sp": 0x2000_0800}
    assert runner.registers(CORE[name]) == wanted
    assert runner.registers("Error: no core") == {}
    assert choose(board("nucleo-g474re"), "stlink", installed=False).halted() == []


def test_a_chip_without_flash_is_read_by_the_access_port_of_its_core() -> None:
    line = choose(board("nucleo-n657x0-q"), installed=False).peek(AT, WORDS)
    assert line[2:5] == ["port=SWD", "mode=HOTPLUG", "ap=1"] and "-r32" in line


@pytest.mark.parametrize("name", ["stlink", "drive"])
def test_a_tool_that_cannot_read_is_not_asked(name: str) -> None:
    assert choose(board("nucleo-g474re"), name, installed=False).peek(AT, WORDS) == []


def test_flashing_ends_with_what_the_start_up_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hang in the PLL: the tool has written and verified, and the board stays silent."""
    firmware = firmware_for("nucleo-g474re", tmp_path)
    answers = iter(["chip 0x20000469", "Verified OK", SAID["openocd"]])
    monkeypatch.setattr(flash, "_run", lambda *_, **__: next(answers))
    monkeypatch.setattr(flash, "record_address", lambda elf: AT)
    monkeypatch.setattr(flash, "_START_SECONDS", 0.0)
    monkeypatch.setattr(
        flash, "choose", lambda *_, **__: choose(firmware.board, "openocd", installed=False)
    )
    monkeypatch.setattr(flash, "bank_beside", lambda firmware: "")
    with pytest.raises(
        LinkError, match=r"waited in vain for RCC_CR_PLLRDY .* the PLL does not run"
    ):
        flash.flash(firmware)
