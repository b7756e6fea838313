"""The speed of a board's serial line: what its UART and the ST-LINK's can both keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.boards import board, boards, read_board
from toolchain.errors import InputError
from toolchain.resources import BOARDS

REAL = [name for name, b in boards().items() if b.flash_runners]


def changed(name: str, folder: Path, baud: str) -> Path:
    """The board's file with another speed."""
    text = (BOARDS / name / "board.toml").read_text()
    assert "baud = 115_200" in text
    text = text.replace("baud = 115_200", f"baud = {baud}")
    file = folder / name / "board.toml"
    file.parent.mkdir()
    file.write_text(text)
    return file


@pytest.mark.parametrize("name", REAL)
def test_every_real_board_is_checked(name: str, tmp_path: Path) -> None:
    """A speed that no divisor gives is refused, so that the one it has was looked at."""
    assert board(name).uart is not None and "THIMBLE_USART_CLOCK_HZ" in board(name).defines
    with pytest.raises(InputError, match=r"\[uart\] baud: .* has no divisor for 50,000,000"):
        read_board(changed(name, tmp_path, "50_000_000"))


@pytest.mark.parametrize(
    ("name", "baud", "message"),
    [
        ("nucleo-f446re", "300", "USART2 at 45,000,000 Hz has no divisor for 300"),
        ("nucleo-l476rg", "921_600", r"misses 921,600 by 2\.1%"),  # 16 MHz / 17
        ("nucleo-l4r5zi", "6_000_000", "LPUART1 at 16,000,000 Hz has no divisor"),
        ("nucleo-f767zi", "2_700_000", "the ST-LINK's UART has no divisor"),
        ("nucleo-f446re", '"fast"', "not a whole number"),
        ("nucleo-f446re", "0", "must be 1 or more"),
    ],
)
def test_what_cannot_be_kept_is_refused(name: str, baud: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_board(changed(name, tmp_path, baud))


@pytest.mark.parametrize("baud", ["115_200", "230_400", "460_800"])
def test_usual_speeds_are_kept_by_every_board(baud: str, tmp_path: Path) -> None:
    for name in REAL:
        assert read_board(changed(name, tmp_path, baud)).uart is not None
