"""What a start-up's writes to the controller of a memory beside the chip mean."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.families.family import Started
from toolchain.boards import Board

FLAGS = {"f746g-disco": ("QUADSPI_SR_TCF", "QUADSPI_SR_SMF")}
"""What the hardware sets, sooner or later: every transfer ends, and every status comes."""


@dataclass(frozen=True)
class Mapped:
    """How a memory is read: its clock, the clocks of command, address and wait, and data lines."""

    origin: int
    size_bytes: int
    clock_hz: float
    command_clocks: int
    data_lines: int


def mapped(started: Started, target: Board) -> Mapped:
    """Asserts that the memory is reset, set up, and read by the command that its data sheet has."""
    return _quadspi(started, target)


def _quadspi(started: Started, target: Board) -> Mapped:
    """RM0385 14.5; commands of the N25Q128A's data sheet."""
    lines = (0, 1, 2, 4)
    commands = [value & 0xFF for value in started.values("QUADSPI_CCR")]
    assert commands == [0x66, 0x99, 0x05, 0x06, 0x05, 0x81, 0x05, 0xEB]
    functions = [value >> 26 & 3 for value in started.values("QUADSPI_CCR")]
    assert functions == [0, 0, 2, 0, 2, 0, 2, 3]
    assert started.values("QUADSPI_DR") == [0xAB]  # ten dummy cycles, no XIP, no wrapping
    assert started.values("QUADSPI_PSMKR") == [1, 2, 1] and started.values("QUADSPI_PSMAR") == [
        2,
        0,
    ]
    assert started.field("RCC_AHB3ENR_QSPIEN")
    assert started.when_set("RCC_AHB3RSTR_QSPIRST") < started.when_set("QUADSPI_CR_EN")
    assert started.field("RCC_AHB3RSTR_QSPIRST") == 0
    assert started.field("QUADSPI_CCR_DCYC") == 10
    address = 8 * (started.field("QUADSPI_CCR_ADSIZE") + 1)
    command = 8 // lines[started.field("QUADSPI_CCR_IMODE")]
    address //= lines[started.field("QUADSPI_CCR_ADMODE")]
    return Mapped(
        origin=0x9000_0000,
        size_bytes=2 << started.field("QUADSPI_DCR_FSIZE"),
        clock_hz=target.clock_hz / (started.field("QUADSPI_CR_PRESCALER") + 1),
        command_clocks=command + address + started.field("QUADSPI_CCR_DCYC"),
        data_lines=lines[started.field("QUADSPI_CCR_DMODE")],
    )
