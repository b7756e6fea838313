"""What a start-up's writes to the controller of a memory beside the chip mean."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.families.family import Started
from toolchain.boards import Board

FLAGS = {
    "b-u585i-iot02a": ("OCTOSPI2_SR_TCF", "OCTOSPI2_SR_SMF"),
    "f746g-disco": ("QUADSPI_SR_TCF", "QUADSPI_SR_SMF"),
    "nucleo-h7s3l8": ("XSPI2_SR_TCF", "XSPI2_SR_SMF"),
    "nucleo-n657x0-q": ("XSPI2_SR_TCF", "XSPI2_SR_SMF"),
}
"""What the hardware sets, sooner or later: every transfer ends, and every status comes."""

IDENTITIES = {
    "b-u585i-iot02a": ("OCTOSPI2_DR", 0x3A85C2),
    "f746g-disco": ("QUADSPI_DR", 0x18BA20),
    "nucleo-h7s3l8": ("XSPI2_DR", 0x3984C2),
    "nucleo-n657x0-q": ("XSPI2_DR", 0x3A80C2),
}
"""The register that the flash's JEDEC identity is read from, and the identity."""
WINBOND = 0x1840EF
"""W25Q128JV: src/flash/nor/spi.c:99 of openocd v0.12.0."""


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
    if "QUADSPI_CR" in started.chip.addresses:
        return _quadspi(started, target)
    name = "XSPI2" if "XSPI2_CR" in started.chip.addresses else "OCTOSPI2"
    if name == "OCTOSPI2":
        assert started.field("RCC_AHB2ENR2_OCTOSPI2EN") and started.field("RCC_AHB2ENR1_OCTOSPIMEN")
        assert started.field("RCC_CCIPR2_OCTOSPISEL") == 0  # the core's clock
        assert started.field("DCACHE1_CR_EN") and started.field("DCACHE1_CR_HBURST")
        return _octal(started, name, target.clock_hz)
    assert started.field("RCC_AHB5ENR_XSPI2EN") and started.field("RCC_AHB5ENR_XSPIMEN")
    if "PWR_SVMCR3" in started.chip.addresses:
        assert started.field("RCC_CCIPR6_XSPI2SEL") == 0  # the clock of the AHB
        assert started.field("PWR_SVMCR3_VDDIO3SV") and started.field("PWR_SVMCR3_VDDIO3VRSEL")
        return _octal(started, name, target.clocks_hz["ahb"])
    assert started.field("RCC_CCIPR1_XSPI2SEL") == 0  # the clock of AXI
    assert started.field("PWR_CSR2_EN_XSPIM2")
    return _octal(started, name, target.clocks_hz["axi"])


def _quadspi(started: Started, target: Board) -> Mapped:
    """RM0385 14.5; commands of the N25Q128A's data sheet."""
    lines = (0, 1, 2, 4)
    commands = [value & 0xFF for value in started.values("QUADSPI_CCR")]
    functions = [value >> 26 & 3 for value in started.values("QUADSPI_CCR")]
    if started.identity == WINBOND:
        assert commands == [0x66, 0x99, 0x05, 0x9F, 0xEB] and functions == [0, 0, 2, 1, 3]
        assert started.values("QUADSPI_DR") == []  # it has no volatile configuration
        assert started.field("QUADSPI_CCR_ABMODE") == 3 and started.register("QUADSPI_ABR") == 0xFF
        mode = 2  # clocks of the byte that keeps the command, on four lines
        assert started.field("QUADSPI_CCR_DCYC") + mode == 6
    else:
        mode = 0
        assert commands == [0x66, 0x99, 0x05, 0x9F, 0x06, 0x05, 0x81, 0x05, 0xEB]
        assert functions == [0, 0, 2, 1, 0, 2, 0, 2, 3]
        written = [value & 0xFF for value in started.values("QUADSPI_DR")]
        assert written == [0xAB]  # ten dummy cycles, no XIP, no wrapping
        assert started.values("QUADSPI_PSMKR") == [1, 2, 1]
        assert started.values("QUADSPI_PSMAR") == [2, 0]
        assert started.field("QUADSPI_CCR_ABMODE") == 0
        assert started.field("QUADSPI_CCR_DCYC") == 10
    assert started.field("RCC_AHB3ENR_QSPIEN")
    assert started.when_set("RCC_AHB3RSTR_QSPIRST") < started.when_set("QUADSPI_CR_EN")
    assert started.field("RCC_AHB3RSTR_QSPIRST") == 0
    address = 8 * (started.field("QUADSPI_CCR_ADSIZE") + 1)
    command = 8 // lines[started.field("QUADSPI_CCR_IMODE")]
    address //= lines[started.field("QUADSPI_CCR_ADMODE")]
    return Mapped(
        origin=0x9000_0000,
        size_bytes=2 << started.field("QUADSPI_DCR_FSIZE"),
        clock_hz=target.clock_hz / (started.field("QUADSPI_CR_PRESCALER") + 1),
        command_clocks=command + address + mode + started.field("QUADSPI_CCR_DCYC"),
        data_lines=lines[started.field("QUADSPI_CCR_DMODE")],
    )


def _octal(started: Started, name: str, kernel_hz: float) -> Mapped:
    """RM0456 (OCTOSPI) and RM0477 (XSPI); commands of Macronix's data sheets."""
    lines = (0, 1, 2, 4, 8)
    reset = [0x66, 0x99, 0x6699, 0x9966, 0x6699, 0x9966, 0x05]
    configured = [0x06, 0x05, 0x72]
    commands = [*reset, 0x9F, *configured, *configured, 0x05FA, 0xEC13]
    assert started.values(f"{name}_IR") == commands
    written = [value & 0xFF for value in started.values(f"{name}_DR")]
    assert written == [7, 1]  # six dummy cycles; eight lines, once a clock
    assert started.values(f"{name}_AR") == [0x300, 0]  # the same address of the next is no change
    assert started.values(f"{name}_PSMKR") == [1, 2, 1]
    assert started.field(f"{name}_CR_FMODE") == 3 and started.field(f"{name}_CR_EN")
    mapped_at = started.when_set(f"{name}_CR_FMODE")
    assert mapped_at == max(
        i for i, (at, _) in enumerate(started.writes) if at == started.chip.addresses[f"{name}_CR"]
    )
    for field in ("IDTR", "ADDTR", "DDTR", "DQSE"):
        assert started.field(f"{name}_CCR_{field}") == 0
    assert started.field(f"{name}_CCR_ABMODE") == 0
    command = 8 * (started.field(f"{name}_CCR_ISIZE") + 1)
    command //= lines[started.field(f"{name}_CCR_IMODE")]
    address = 8 * (started.field(f"{name}_CCR_ADSIZE") + 1)
    address //= lines[started.field(f"{name}_CCR_ADMODE")]
    clock_hz = kernel_hz / (started.field(f"{name}_DCR2_PRESCALER") + 1)
    assert clock_hz <= 66e6 and started.field(f"{name}_TCR_DCYC") == 6
    return Mapped(
        origin=0x7000_0000,
        size_bytes=2 << started.field(f"{name}_DCR1_DEVSIZE"),
        clock_hz=clock_hz,
        command_clocks=command + address + started.field(f"{name}_TCR_DCYC"),
        data_lines=lines[started.field(f"{name}_CCR_DMODE")],
    )
