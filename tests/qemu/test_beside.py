"""Weights in memory beside the chip are checked at the start: damaged ones are never computed with.

An STM32F746G-DISCO from revision C-03 on was read with the wrong number of clocks, and every weight
was wrong without a word (stm32746g_discovery_qspi.c:193 of ST's BSP at b639a332).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from tests.qemu.test_images import DIGITS
from toolchain.deployment.compile import compile_model
from toolchain.device.firmware import Firmware, load_firmware
from toolchain.device.session import open_board, pattern_inputs
from toolchain.errors import LinkError

BOARD = "mps2-an500:f746g-disco@QSPI"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    folder = tmp_path_factory.mktemp("beside")
    compile_model(DIGITS, BOARD, folder)
    return load_firmware(folder)


def damaged(firmware: Firmware, folder: Path, section: str, at: int) -> Firmware:
    """The firmware with one bit of a section changed."""
    data = bytearray(firmware.elf.read_bytes())
    with firmware.elf.open("rb") as file:
        held = ELFFile(file).get_section_by_name(section)
        place = held["sh_offset"] + at % held["sh_size"]
    data[place] ^= 1
    copy = folder / firmware.elf.name
    copy.write_bytes(data)
    return replace(firmware, folder=folder)


def test_weights_beside_the_chip_are_checked_and_used(built: Firmware) -> None:
    with open_board(built) as session:
        assert session.hello.beside == 0
        first = session.run(pattern_inputs(built, 3))
        again = session.run(pattern_inputs(built, 3))
    for name, values in first.outputs.items():
        assert np.array_equal(values, again.outputs[name])


@pytest.mark.parametrize("at", [0, -1])
def test_a_flipped_bit_ends_in_one_sentence(built: Firmware, at: int, tmp_path: Path) -> None:
    wrong = damaged(built, tmp_path, ".weights", at)
    with pytest.raises(
        LinkError, match=r"does not hold the weights of this firmware \(status -42\)"
    ):
        open_board(wrong).close()
