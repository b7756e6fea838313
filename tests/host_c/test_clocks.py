"""The start-up of the STM32 boards on simulated registers: clocks, wait states, pins, baud rate.

No such board is here. What can be checked is that the values written mean the clock that the
board's file promises, by the reference manuals' formulas and within their limits, in a safe order.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import probe
from toolchain.boards import Board, board
from toolchain.device.build import BuildOptions, firmware_defines
from toolchain.resources import RUNTIME_C

MHZ = 1_000_000
FOLDER = probe.SOURCE.parent
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@dataclass(frozen=True)
class Chip:
    """Addresses of a family: flash, clock control, the USART's divider; and its ready flags."""

    flash_acr: int
    cfgr: int
    pll: int
    switch_bits: int
    rules: tuple[str, ...]
    brr_offset: int


def copies(register: int, bits: int) -> tuple[str, ...]:
    """The switch status, `bits` bits above the switch, follows it."""
    return tuple(f"{register:x}:{1 << i:x}>{register:x}:{1 << (i + bits):x}" for i in range(bits))


F4 = Chip(
    flash_acr=0x40023C00,
    cfgr=0x40023808,
    pll=0x40023804,
    switch_bits=2,
    rules=(
        *("40023800:1>40023800:2", "40023800:1000000>40023800:2000000"),
        *("40007000:10000>40007004:10000", "40007000:20000>40007004:20000"),
        *copies(0x40023808, 2),
    ),
    brr_offset=8,
)
F7 = Chip(F4.flash_acr, F4.cfgr, F4.pll, F4.switch_bits, F4.rules, brr_offset=12)
H7 = Chip(
    flash_acr=0x52002000,
    cfgr=0x58024410,
    pll=0x58024430,
    switch_bits=3,
    rules=(
        *("58024400:1>58024400:4", "58024400:1000000>58024400:2000000"),
        *("58024800:0>58024804:2000", "58024800:0>58024818:2000"),
        *copies(0x58024410, 3),
    ),
    brr_offset=12,
)
L4 = Chip(
    flash_acr=0x40022000,
    cfgr=0x40021008,
    pll=0x4002100C,
    switch_bits=2,
    rules=(
        *("40021000:100>40021000:400", "40021000:1000000>40021000:2000000"),
        *copies(0x40021008, 2),
    ),
    brr_offset=12,
)


@dataclass(frozen=True)
class Started:
    """All writes in order, and what each register holds at last."""

    writes: tuple[tuple[int, int], ...]
    final: Mapping[int, int]

    def bits(self, address: int, high: int, low: int) -> int:
        return self.final.get(address, 0) >> low & ((1 << (high - low + 1)) - 1)


def start(target: Board, chip: Chip, folder: Path, *first: str) -> Started:
    firmware = RUNTIME_C / "firmware"
    program = folder / "start"
    sources = [str(firmware / name) for name in target.firmware_sources]
    flags = ["-std=gnu99", "-include", str(FOLDER / "registers.h"), f"-I{firmware / 'include'}"]
    defines = firmware_defines(target, BuildOptions())
    command = ["gcc", *flags, *defines, *sources, str(FOLDER / "registers.c"), "-o", str(program)]
    subprocess.run(command, check=True)
    done = subprocess.run(
        [str(program), *chip.rules, *first], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    writes = tuple(
        (int(address, 16), int(value, 16))
        for address, value in (line.split() for line in done.stdout.splitlines())
    )
    reset = {int(a, 16): int(v, 16) for a, v in (pair.split("=") for pair in first)}
    return Started(writes, reset | dict(writes))


def check_common(started: Started, target: Board, chip: Chip) -> None:
    """Wait states stand before the switch to the PLL; pins and baud rate are right."""
    switch = next(
        i
        for i, (address, value) in enumerate(started.writes)
        if address == chip.cfgr and value & ((1 << chip.switch_bits) - 1) >= 2
    )
    waits = next(i for i, (a, _) in enumerate(started.writes) if a == chip.flash_acr)
    assert waits < switch

    defines = {name: int(value.rstrip("u"), 0) for name, value in target.defines.items()}
    assert target.uart is not None
    pins = re.findall(r"P([A-K])(\d+)", target.uart.pins)
    for role, (letter, number) in zip(("TX", "RX"), pins, strict=True):
        port, pin = defines[f"THIMBLE_{role}_PORT"], int(number)
        assert pin == defines[f"THIMBLE_{role}_PIN"]
        assert (port & 0xFFFF) // 0x400 % 0x10 == ord(letter) - ord("A")
        assert defines["THIMBLE_GPIO_ENABLE_BITS"] >> (ord(letter) - ord("A")) & 1
        assert started.bits(port, 2 * pin + 1, 2 * pin) == 2
        low = 4 * (pin % 8)
        function = started.bits(port + 0x20 + 4 * (pin // 8), low + 3, low)
        assert function == (8 if target.uart.name == "LPUART1" else 7)
    for name in ("GPIO", "USART"):
        enabled = started.final[defines[f"THIMBLE_{name}_ENABLE"]]
        assert enabled & defines[f"THIMBLE_{name}_ENABLE_BITS"]
    divider = started.final[defines["THIMBLE_USART_BASE"] + chip.brr_offset]
    clock = defines["THIMBLE_USART_CLOCK_HZ"] * defines.get("THIMBLE_USART_BRR_FACTOR", 1)
    assert abs(clock / divider / target.uart.baud - 1) < 0.005


@pytest.mark.parametrize(
    ("name", "chip", "apb_limits", "overdrive_above"),
    [
        ("f4-discovery", F4, (42, 84), 168),
        ("nucleo-f446re", F4, (45, 90), 168),
        ("f746g-disco", F7, (54, 108), 180),
        ("nucleo-f767zi", F7, (54, 108), 180),
    ],
)
def test_f4_and_f7(
    name: str, chip: Chip, apb_limits: tuple[int, int], overdrive_above: int, tmp_path: Path
) -> None:
    """RM0090 7.3.2, RM0390 6.3.2, RM0385 5.3.2, RM0410 5.3.2; 30 MHz a wait state at 3.3 V."""
    target = board(name)
    started = start(target, chip, tmp_path)
    check_common(started, target, chip)
    assert started.bits(chip.pll, 22, 22) == 0  # from the internal 16 MHz
    into = 16 * MHZ / started.bits(chip.pll, 5, 0)
    vco = into * started.bits(chip.pll, 14, 6)
    clock = vco / (2, 4, 6, 8)[started.bits(chip.pll, 17, 16)]
    assert MHZ <= into <= 2 * MHZ and 100 * MHZ <= vco <= 432 * MHZ
    assert vco / started.bits(chip.pll, 27, 24) <= 48 * MHZ
    assert clock == target.clock_hz
    assert started.bits(chip.cfgr, 1, 0) == 2 and started.bits(chip.cfgr, 7, 4) == 0
    divided = {5: 4, 4: 2}
    apb1 = clock / divided[started.bits(chip.cfgr, 12, 10)]
    apb2 = clock / divided[started.bits(chip.cfgr, 15, 13)]
    assert apb1 <= apb_limits[0] * MHZ and apb2 <= apb_limits[1] * MHZ
    usart = int(target.defines["THIMBLE_USART_CLOCK_HZ"].rstrip("u"), 0)
    assert usart == (apb2 if target.uart and target.uart.name == "USART1" else apb1)
    assert started.bits(chip.flash_acr, 3, 0) == -(-clock // (30 * MHZ)) - 1
    assert started.bits(0x40007000, 15, 14) == 3
    assert started.bits(0x40007000, 17, 16) == (3 if clock > overdrive_above * MHZ else 0)


@pytest.mark.parametrize(
    ("name", "revision", "clock_mhz", "bus_limit_mhz", "supply"),
    [
        ("nucleo-h743zi", 0x2003, 480, 240, 2),
        ("nucleo-h743zi", 0x1003, 400, 200, 2),
        ("nucleo-h7a3zi-q", 0x1001, 280, 280, 4),
    ],
)
def test_h7(
    name: str, revision: int, clock_mhz: int, bus_limit_mhz: int, supply: int, tmp_path: Path
) -> None:
    """RM0433 8.7, 4.3.8, 6.8; RM0455 8.7, 4.3.8, 6.8."""
    target = board(name)
    started = start(target, H7, tmp_path, f"5c001000={revision << 16 | 0x450:x}")
    check_common(started, target, H7)
    assert started.bits(0x58024428, 1, 0) == 0  # from the internal 64 MHz
    into = 64 / started.bits(0x58024428, 9, 4)
    vco = into * (started.bits(H7.pll, 8, 0) + 1)
    clock = vco / (started.bits(H7.pll, 15, 9) + 1)
    assert 8 <= into <= 16 and started.bits(0x5802442C, 3, 2) == 3
    assert 192 <= vco <= (836 if revision == 0x1003 else 960)
    assert started.bits(0x5802442C, 1, 0) == 0 and started.bits(0x5802442C, 16, 16) == 1
    assert clock == clock_mhz
    if revision != 0x1003:
        assert target.clock_hz == clock * MHZ
    bus = clock / {0: 1, 8: 2}[started.bits(0x58024418, 3, 0)]
    assert bus <= bus_limit_mhz
    assert started.bits(0x58024418, 11, 8) == 0
    apb_fields = ((0x58024418, 4), (0x5802441C, 4), (0x5802441C, 8), (0x58024420, 4))
    assert all(started.bits(address, low + 2, low) == 4 for address, low in apb_fields)
    assert bus / 2 <= 140
    per_wait_state = 44 if "h7a3" in name else 60
    assert (started.bits(H7.flash_acr, 3, 0) + 1) * per_wait_state >= bus
    assert started.bits(H7.flash_acr, 5, 4) >= 2
    assert started.bits(0x5802480C, 2, 0) == supply
    assert started.bits(0x58024818, 15, 14) == 3
    assert started.bits(0x58000404, 0, 0) == (clock_mhz == 480)
    assert started.bits(0x58024454, 2, 0) == 3  # the USART's clock is the 64 MHz
    assert started.bits(0xE000ED14, 17, 16) == 3  # both caches


@pytest.mark.parametrize(
    ("name", "wait_state_mhz", "boost"), [("nucleo-l476rg", 16, False), ("nucleo-l4r5zi", 20, True)]
)
def test_l4(name: str, wait_state_mhz: int, boost: bool, tmp_path: Path) -> None:
    """RM0351 6.4.4, 3.3.3; RM0432 6.4.4, 3.3.3, 5.1.8."""
    target = board(name)
    started = start(target, L4, tmp_path, "40007080=100", "40007000=200")
    check_common(started, target, L4)
    assert started.bits(L4.pll, 1, 0) == 2  # from the internal 16 MHz
    into = 16 / (started.bits(L4.pll, 7, 4) + 1)
    vco = into * started.bits(L4.pll, 14, 8)
    clock = vco / (2, 4, 6, 8)[started.bits(L4.pll, 26, 25)]
    assert 4 <= into <= 16 and 64 <= vco <= 344 and started.bits(L4.pll, 24, 24) == 1
    assert clock * MHZ == target.clock_hz
    assert started.bits(L4.cfgr, 1, 0) == 3 and started.bits(L4.cfgr, 13, 4) == 0
    assert started.bits(L4.flash_acr, 3, 0) == -(-clock // wait_state_mhz) - 1
    assert started.bits(0x40007000, 10, 9) == 1
    assert started.bits(0x40007080, 8, 8) == (not boost)
    assert started.bits(0x40007004, 9, 9) == boost  # port G of the L4R5 hangs on VDDIO2
    clock_field = 10 if target.uart and target.uart.name == "LPUART1" else 2
    assert started.bits(0x40021088, clock_field + 1, clock_field) == 2
    through_half = [value >> 4 & 15 for address, value in started.writes if address == L4.cfgr]
    assert 8 in through_half and through_half[-1] == 0
