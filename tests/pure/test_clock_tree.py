"""Clocks and pins of boards: computed from the chip's facts, and refused beyond its limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.boards import Board, board, boards, read_board
from toolchain.errors import InputError
from toolchain.resources import BOARDS

LIKE = "nucleo-f446re"


def changed(folder: Path, *changes: tuple[str, str], like: str = LIKE) -> Board:
    """A board whose file differs in these texts."""
    text = (BOARDS / like / "board.toml").read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    file = folder / "other" / "board.toml"
    file.parent.mkdir()
    file.write_text(text)
    return read_board(file)


@pytest.mark.parametrize(
    ("name", "usart_hz"),
    [
        ("nucleo-f446re", 45_000_000),
        ("f4-discovery", 42_000_000),
        ("f746g-disco", 108_000_000),
        ("nucleo-h743zi", 64_000_000),
        ("nucleo-l4r5zi", 16_000_000),
    ],
)
def test_the_clock_of_a_uart_follows(name: str, usart_hz: int) -> None:
    assert int(board(name).defines["THIMBLE_USART_CLOCK_HZ"].rstrip("u"), 0) == usart_hz


def test_every_stm32_board_has_checked_clocks() -> None:
    silicon = [b for b in boards().values() if b.flash_runners]
    assert silicon and all(b.chip.clock is not None and b.chip.uarts for b in silicon)


def test_a_slower_board_has_slower_buses(tmp_path: Path) -> None:
    slow = changed(
        tmp_path, ("clock_hz = 180_000_000", "clock_hz = 84_000_000"), ("n = 180", "n = 84")
    )
    assert slow.defines["THIMBLE_USART_CLOCK_HZ"] == f"0x{21_000_000:X}u"
    assert slow.defines["THIMBLE_PLL_N"] == "0x54u"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("clock_hz = 180_000_000", "clock_hz = 100_000_000")], "make 180,000,000 Hz of HSI"),
        ([("n = 180", "n = 90")], "clock_hz is 180,000,000, but .* make 90,000,000 Hz"),
        ([("n = 180", "n = 200")], r"the core runs at 200,000,000 Hz, not at 1 to 180,000,000"),
        (
            [("m = 8", "m = 4"), ("n = 180", "n = 90")],
            r"clock\.m: HSI / m.* 4,000,000 Hz, not at 1,000",
        ),
        (
            [("n = 180", "n = 240"), ("p = 2", "p = 4")],
            r"clock\.n: the PLL's VCO runs at 480,000,000",
        ),
        ([("n = 180", "n = 500")], r"clock\.n is 500; the chip has 50\.\.432"),
        ([("p = 2", "p = 3")], r"clock\.p is 3; the chip has 2, 4, 6, 8"),
        ([("m = 8", "m = 9"), ("n = 180", "n = 202")], "not whole Hz"),
        ([("apb1 = 4", "apb1 = 2")], r"clock\.bus\.apb1: apb1 runs at 90,000,000 Hz"),
        ([("apb2 = 2", "apb2 = 1")], r"clock\.bus\.apb2: apb2 runs at 180,000,000 Hz"),
        ([("apb1 = 4", "apb1 = 3")], r"clock\.bus\.apb1 is 3; the chip has 1, 2, 4, 8, 16"),
        ([("apb1 = 4", "apb3 = 4")], "there is no 'apb3'; the chip has apb1, apb2"),
        (
            [("[clock]\nm = 8\nn = 180\np = 2\n\n[clock.bus]\napb1 = 4\napb2 = 2\n", "")],
            r"no \[clock\]",
        ),
        ([('name = "USART2"', 'name = "USART9"')], "has no 'USART9' in its file; it has UART4"),
        ([('tx = "PA2"', 'tx = "PZ2"')], "tx is PZ2; stm32f446 has ports ABCDEFGH"),
        ([('rx = "PA3"', 'rx = "PA16"')], "rx is 'PA16'; a pin is like PA2"),
        ([("function = 7", "function = 16")], "function is 16, not 0 to 15"),
        ([("baud = 115_200", "baud = 300")], "has no divisor for 300"),
        (
            [("[usb]", "[firmware.defines]\nTHIMBLE_USART_CLOCK_HZ = 90_000_000\n[usb]")],
            r"defines\.THIMBLE_USART_CLOCK_HZ follows from \[clock\] and \[uart\] \(45000000\)",
        ),
        (
            [("[usb]", "[firmware.defines]\nTHIMBLE_FLASH_WAIT_STATES = 1\n[usb]")],
            r"defines\.THIMBLE_FLASH_WAIT_STATES follows",
        ),
    ],
)
def test_what_the_chip_cannot_do_is_refused(
    changes: list[tuple[str, str]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        changed(tmp_path, *changes)


def test_a_bus_may_hang_on_another(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"clock\.bus\.axi is 1; the chip has 2"):
        changed(tmp_path, ("axi = 2", "axi = 1"), like="nucleo-h743zi")


def test_a_uart_that_the_chip_lacks_must_be_listed(tmp_path: Path) -> None:
    chips = tmp_path / "chips"
    (chips / "families").mkdir(parents=True)
    for name in ("stm32f446.toml", "families/stm32f4.toml"):
        (chips / name).write_text((BOARDS / "chips" / name).read_text())
    file = chips / "stm32f446.toml"
    file.write_text('without = ["USART2"]\n' + file.read_text())
    with pytest.raises(InputError, match="has no 'USART2'"):
        changed(tmp_path)
    file.write_text(file.read_text().replace('"USART2"', '"USART8"'))
    with pytest.raises(InputError, match="without: there is no 'USART8'"):
        read_board(tmp_path / "other" / "board.toml")


def test_a_uart_may_run_on_another_oscillator(tmp_path: Path) -> None:
    """An STM32U3 has no PLL: the core's 96 MHz are not the UART's."""
    slow = changed(
        tmp_path,
        ("clock_hz = 96_000_000", "clock_hz = 24_000_000"),
        ("p = 1", "p = 4"),
        like="nucleo-u385rg-q",
    )
    assert slow.clocks_hz["source"] == 96_000_000 and slow.clocks_hz["apb2"] == 24_000_000
    assert slow.defines["THIMBLE_USART_CLOCK_HZ"] == f"0x{16_000_000:X}u"
    assert slow.defines["THIMBLE_FLASH_WAIT_STATES"] == "0x0u"
