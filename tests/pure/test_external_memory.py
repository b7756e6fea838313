"""Memory beside the chip: what a board's file says of it, and what goes there."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.boards import Content, board, boards, read_board
from toolchain.cost.stalls import Stalls, stalls_of
from toolchain.device.firmware import Firmware, FirmwareModel, Sizes
from toolchain.device.flash import choose
from toolchain.errors import InputError
from toolchain.memory.bank_layout import layout
from toolchain.planning.options import PlanOptions
from toolchain.resources import BOARDS

KIB = 1024
DISCO = (BOARDS / "f746g-disco" / "board.toml").read_text()


def placed(name: str, weight_bytes: int) -> str:
    target = board(name)
    sizes = {"code_bytes": 30_000, "data_bytes": 3000, "arena_bytes": 8192}
    return layout(target, weight_bytes=weight_bytes, **sizes).weights.name


@pytest.mark.parametrize(
    ("name", "weights", "bank"),
    [
        ("f746g-disco", 900 * KIB, "FLASH"),
        ("f746g-disco", 1000 * KIB, "QSPI"),
        ("f746g-disco@QSPI", 100, "QSPI"),
        ("f746g-disco@FLASH", 900 * KIB, "FLASH"),
        ("b-u585i-iot02a", 3000 * KIB, "NOR"),
        ("nucleo-h7s3l8", 30 * KIB, "FLASH"),
        ("nucleo-h7s3l8", 60 * KIB, "NOR"),
    ],
)
def test_weights_go_there_where_the_chip_has_no_room_or_as_asked(
    name: str, weights: int, bank: str
) -> None:
    assert placed(name, weights) == bank


def test_the_name_is_that_of_a_board_of_its_own() -> None:
    target = board("f746g-disco@QSPI")
    assert board(target.name).memories == target.memories
    assert [m.name for m in target.memories if Content.WEIGHTS in m.holds] == ["QSPI"]
    assert "f746g-disco@QSPI" not in boards()
    with pytest.raises(InputError, match=r"@SRAM1: weights may lie in FLASH, QSPI"):
        board("f746g-disco@SRAM1")
    with pytest.raises(InputError, match=r"no board 'nothing@QSPI'"):
        board("nothing@QSPI")


def test_memory_beside_the_chip_is_not_spent_for_time() -> None:
    """Of 1 MB + 16 MB, three quarters of the first: constants there are read much sooner."""
    target = board("f746g-disco")
    assert target.flash_bytes == 17 * KIB * KIB and target.chip_flash_bytes == KIB * KIB
    assert PlanOptions().flash_of(target) == 768 * KIB


def test_constants_beside_the_chip_are_predicted_to_take_longer() -> None:
    target = stalls_of(board("f746g-disco"))
    there = stalls_of(board("f746g-disco@QSPI"))
    assert target is not None and there is not None
    kernel = "arm_convolve_1x1_s8"
    terms = dict.fromkeys(target.kernels[kernel].constants, 1000.0)

    def cycles(stalls: Stalls, of_bytes: int) -> float:
        return stalls.cycles(kernel, terms, 200 * KIB, of_bytes)

    small, large = 500 * KIB, 2000 * KIB
    assert cycles(target, small) < cycles(target, large) == cycles(there, large)
    assert cycles(there, small) == cycles(there, large)


def test_the_tools_are_told_what_writes_it(tmp_path: Path) -> None:
    target = board("f746g-disco")
    model = FirmwareModel("m", (), (), (), ())
    firmware = Firmware(tmp_path, target, (model,), Sizes(1, 1, 1, 1, 1, 1), "00" * 16)
    openocd, cube = (
        choose(target, name, installed=False, beside="QSPI").write(firmware)
        for name in ("openocd", "stm32cubeprogrammer")
    )
    assert "board/stm32f746g-disco.cfg" in openocd
    assert cube[cube.index("-el") + 1].endswith("ExternalLoader/N25Q128A_STM32F746G-DISCO.stldr")
    for name in ("openocd", "stm32cubeprogrammer"):
        line = choose(target, name, installed=False).write(firmware)
        assert "-el" not in line and "board/stm32f746g-disco.cfg" not in line


def test_only_tools_that_write_it_are_chosen() -> None:
    target = board("f746g-disco")
    assert choose(target, installed=False, beside="QSPI").name == "openocd"
    chosen = choose(target, "stm32cubeprogrammer", installed=False, beside="QSPI")
    assert chosen.writes_beside and chosen.options["beside"].endswith(".stldr")
    message = "QSPI cannot be flashed with 'dfu', only with openocd, stm32cubeprogrammer"
    with pytest.raises(InputError, match=message):
        choose(target, "dfu", installed=False, beside="QSPI")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('bank = "QSPI"', 'bank = "NOR"', r"external: bank: there is no \[\[memory\]\] 'NOR'"),
        ("0x0100_0000", "0x0180_0000", "QSPI has 25,165,824 bytes .* power of two"),
        ("0x9000_0000", "0x9080_0000", "a power of two at a multiple of itself"),
        (
            'clock = "core"\ndivider = 2',
            'clock = "core"\ndivider = 4',
            "divider is 4, of 216,000,000 Hz; the timing of QSPI says 108,000,000 Hz",
        ),
        ('clock = "core"', 'clock = "hclk"', "external: clock is 'hclk'; stm32f746 has core,"),
        ('"PB2 9"', '"PB2"', r"pins.quadspi_clk is 'PB2'; a pin and its alternate function"),
        ('"PB2 9"', '"PB2 16"', "0 to 15"),
        ('"PB2 9"', '"PZ2 9"', "pins.quadspi_clk is PZ2; stm32f746 has ports"),
        ('"PB2 9"', '"B2 9"', "pins.quadspi_clk is 'B2'; a pin is like PA2"),
        ("[external]\n", "[external]\nspeed = 3\n", "the field 'speed' is unknown"),
    ],
)
def test_what_is_wrong_with_it_is_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in DISCO
    file = tmp_path / "board.toml"
    file.write_text(DISCO.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        read_board(file)
