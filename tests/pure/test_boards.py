"""Board files, and the choice of banks."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import combinations
from pathlib import Path

import pytest

from toolchain.boards import (
    Board,
    Chip,
    Content,
    MemoryKind,
    board,
    boards,
    checked,
    chips,
    header_of,
    read_board,
)
from toolchain.cli import run
from toolchain.device.flash import choose, runners
from toolchain.errors import DoesNotFitError, InputError
from toolchain.memory.bank_layout import layout
from toolchain.resources import BOARDS, RUNTIME_C

KIB = 1024
DOCS = BOARDS.parent / "docs" / "boards.md"


def test_the_documentation_lists_every_board() -> None:
    rows = [line.split("|") for line in DOCS.read_text().splitlines() if line.startswith("| ")]
    listed = {row[1].split()[0]: row[-2].strip() for row in rows if len(row) == 8}
    assert not any(b.ran_on_hardware for b in boards().values())
    told = {
        name: "yes" if b.is_host else "in QEMU" if b.emulator else "not on hardware"
        for name, b in boards().items()
    }
    assert {name: listed.get(name) for name in told} == told


@pytest.mark.parametrize(
    "chip", [c for c in chips().values() if c.family], ids=lambda chip: chip.name
)
def test_every_stm32_was_held_against_its_header(chip: Chip) -> None:
    """Where a number has changed since: scripts/check_registers.py HEADERS --write."""
    assert re.fullmatch(r"stm32\w+x[a-z]?\.h", header_of(chip))


def test_a_chip_that_has_changed_since_was_not_compared() -> None:
    chip, flash = chips()["stm32f446"], chips()["stm32f446"].banks[0]
    assert chip.identity is not None

    def with_flash(**changed: int) -> Chip:
        first = replace(flash, memory=replace(flash.memory, **changed))
        return replace(chip, banks=(first, *chip.banks[1:]))

    assert header_of(board("STM32F446RCT6").chip) == "stm32f446xx.h"
    assert not header_of(with_flash(size_bytes=1 << 20))
    assert not header_of(with_flash(origin=0x0801_0000))
    assert not header_of(replace(chip, identity=replace(chip.identity, device_id=0x422)))
    assert not header_of(replace(chip, name="ours"))
    assert not header_of(chips()["an386"])


def test_the_list_says_what_each_board_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["boards", "--json", "-"]) == 0
    told = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["boards"]}
    assert told["mps2-an386"]["checked_against"] is None
    against = told["nucleo-h743zi"]["checked_against"]
    assert against.pop("header") == "stm32h743xx.h"
    assert date.fromisoformat(against.pop("date")) <= datetime.now(UTC).date()
    assert against == checked().repositories
    assert all(re.fullmatch("[0-9a-f]{40}", commit) for commit in against.values())
    assert set(against) == {"zephyrproject-rtos/hal_stm32", "ARM-software/CMSIS_6"}
    assert run(["boards"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    assert ["nucleo-h743zi", "STM32H743", "cortex-m7", "480 MHz"] in [row[:4] for row in rows]
    (row,) = [row for row in rows if row[0] == "nucleo-l476rg"]
    assert row[4:] == ["96 + 32 KiB", "1 MiB", "not on hardware", "stm32l476xx.h"]
    (row,) = [row for row in rows if row[0] == "mps2-an386"]
    assert row[4:] == ["4 + 16 MiB", "4 MiB", "in QEMU", "-"]
    assert against["zephyrproject-rtos/hal_stm32"][:12] in lines[-1]


@pytest.mark.parametrize(
    "target", [b for b in boards().values() if not b.is_host], ids=lambda board: board.name
)
def test_board_is_consistent(target: Board) -> None:
    for first, second in combinations(target.memories, 2):
        assert first.end <= second.origin or second.end <= first.origin, (first, second)
    for content in set(Content) - {Content.COPIES}:
        assert any(content in memory.holds for memory in target.memories), content
    assert target.uart is not None and target.counter is not None
    for source in (*target.firmware_sources, target.counter.source):
        assert (RUNTIME_C / "firmware" / source).is_file()
    cpu = target.compiler_flags[0].removeprefix("-mcpu=")
    assert target.core.name == cpu.split("+")[0]
    emulated = target.emulator is not None
    assert target.counter.unit == ("instructions" if emulated else "cycles")
    assert bool(runners(target)) == (not emulated)
    assert bool(target.uart.tx and target.uart.rx) == (not emulated)


def test_kernels_are_told_of_each_core_of_dual_issue() -> None:
    """As `thimble_dsp.h` finds it out: by double precision, which of Armv7E-M the M7 alone has."""
    files = [file for folder in ("chips", "cores") for file in (BOARDS / folder).rglob("*.toml")]
    told = {}
    for file in files:
        flags = tomllib.loads(file.read_text()).get("core", {}).get("flags", [])
        defined, double = "-DTHIMBLE_DUAL_ISSUE=1" in flags, "-mfpu=fpv5-d16" in flags
        assert not (defined and double), f"{file} says twice what its FPU tells"
        told[file.stem] = defined or double, "-mcpu=cortex-m7" in flags
    assert all(is_told == is_m7 for is_told, is_m7 in told.values()), told
    assert sum(is_m7 for _, is_m7 in told.values()) == 7


def test_memory_sizes_are_those_of_the_data_sheets() -> None:
    """Of some; scripts/check_registers.py compares all with ST's headers."""

    def all_of(target: Board, kind: MemoryKind) -> int:
        return sum(m.size_bytes for m in target.memories if m.kind is kind) // KIB

    sizes = {
        name: (all_of(b, MemoryKind.FLASH), all_of(b, MemoryKind.RAM))
        for name, b in boards().items()
    }
    assert sizes["netduinoplus2"] == (1024, 128)
    assert sizes["nucleo-f446re"] == (512, 128)
    assert sizes["f4-discovery"] == (1024, 192)
    assert sizes["f746g-disco"] == (1024 + 16384, 336)
    assert sizes["nucleo-f767zi"] == (2048, 528)
    assert sizes["nucleo-h743zi"] == (2048, 1056)
    assert sizes["nucleo-h7a3zi-q"] == (2048, 1376)
    assert sizes["nucleo-l476rg"] == (1024, 128)
    assert sizes["nucleo-l4r5zi"] == (2048, 640)


def test_a_bank_that_is_left_alone_is_no_room() -> None:
    """For a network that is split for the RAM there is, and in `thimble boards`."""
    assert board("nucleo-h743zi").ram_bytes == (128 + 512 + 64) * KIB
    assert board("nucleo-wb55rg").ram_bytes == 192 * KIB
    assert board("stm32n657x0").ram_bytes == (128 + 1024) * KIB


@pytest.mark.parametrize(
    ("name", "arena_kib", "data_bank", "arena_bank"),
    [
        ("nucleo-h7a3zi-q", 100, "DTCM", "DTCM"),
        ("nucleo-h7a3zi-q", 126, "DTCM", "AXI_SRAM"),
        ("nucleo-h7a3zi-q", 1024, "DTCM", "AXI_SRAM"),
        ("f4-discovery", 120, "SRAM", "SRAM"),
        ("f4-discovery", 128, "CCM", "SRAM"),
        ("f746g-disco", 250, "DTCM", "SRAM1_SRAM2"),
        ("f746g-disco", 300, "DTCM", "DTCM_SRAM1"),
        ("f746g-disco", 310, "DTCM", "DTCM_SRAM1_SRAM2"),
        ("nucleo-l4r5zi", 600, "SRAM1", "SRAM1_SRAM2_SRAM3"),
    ],
)
def test_best_bank_first(name: str, arena_kib: int, data_bank: str, arena_bank: str) -> None:
    chosen = layout(
        board(name),
        code_bytes=30_000,
        weight_bytes=100_000,
        data_bytes=3000,
        arena_bytes=arena_kib * KIB,
    )
    assert (chosen.data.name, chosen.arena.name) == (data_bank, arena_bank)


def test_banks_that_touch_take_as_long_as_the_slower() -> None:
    target = board("f746g-disco")
    chosen = layout(
        target, code_bytes=30_000, weight_bytes=0, data_bytes=3000, arena_bytes=300 * KIB
    )
    dtcm, sram1 = target.memories[1:3]
    assert chosen.arena.name == f"{dtcm.name}_{sram1.name}"
    assert chosen.arena.timing == sram1.timing != dtcm.timing


def test_big_weights_and_arena_go_to_the_psram() -> None:
    chosen = layout(
        board("mps2-an500"),
        code_bytes=30_000,
        weight_bytes=5_000_000,
        data_bytes=3000,
        arena_bytes=6_000_000,
    )
    assert chosen.code.name == "SSRAM1" and chosen.data.name == "SSRAM23"
    assert chosen.weights.name == chosen.arena.name == "PSRAM"
    assert chosen.weights.kind is MemoryKind.RAM


@pytest.mark.parametrize(
    ("weights", "arena", "missing"), [(0, 128 * KIB, "3,000"), (1024 * KIB, 0, "30,000")]
)
def test_what_does_not_fit_is_told_to_the_byte(weights: int, arena: int, missing: str) -> None:
    with pytest.raises(DoesNotFitError, match=f"{missing} more than"):
        layout(
            board("netduinoplus2"),
            code_bytes=30_000,
            weight_bytes=weights,
            data_bytes=3000,
            arena_bytes=arena,
        )


def test_unknown_board_lists_the_known() -> None:
    with pytest.raises(InputError, match="netduinoplus2"):
        board("uno")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = ", "board.toml"),
        ('chip = "stm32f446"\nclock_hz = 1', "the field 'title' is missing"),
        ('title = "x"\nchip = "stm32f446"\n[core]\nname = "m4"', "the field 'core' is unknown"),
        ('title = "x"\nchip = "stm32f999"', r"chip: there is no chip 'stm32f999'. Did .* stm32f4"),
        (
            'title = "x"\nchip = "stm32h743"\nclock_hz = 480_000_000\n[clock]\nm = 4\nn = 60\n'
            "p = 2\n[clock.bus]\naxi = 2\napb = 2",
            "firmware: defines: THIMBLE_PWR_SUPPLY is missing: PWR_CR3's bits",
        ),
        (
            'title = "x"\nchip = "stm32f446"\nclock_hz = 180_000_001',
            "clock_hz is 180,000,001; stm32f446 runs at 1 to 180,000,000 Hz",
        ),
        (
            'title = "x"\nchip = "an500"\nclock_hz = 1\n[emulator]\nmachine = "m"\n'
            'icount_shift = 0\nstands_for = "stm32f446"',
            "stands_for: stm32f446 has a cortex-m4, and an500 a cortex-m7",
        ),
        (
            'title = "x"\nchip = "an500"\nclock_hz = 1\n[emulator]\nmachine = "m"\n'
            'icount_shift = 0\nstands_for = "stm32h999"',
            "stands_for: there is no chip 'stm32h999'",
        ),
        (
            'title = "x"\nchip = "stm32f446"\nclock_hz = 1\n[[memory]]\nname = "SRAM"\norigin = 0\n'
            'size_bytes = 1\nkind = "ram"\nholds = []',
            r"memory\[0\] \(SRAM\): there is another bank of that name",
        ),
    ],
)
def test_wrong_board_file_is_named(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "board.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_board(file)


def test_an_emulated_board_may_stand_for_a_chip_with_its_core(tmp_path: Path) -> None:
    text = (BOARDS / "mps2-an500" / "board.toml").read_text()
    file = tmp_path / "as-h743" / "board.toml"
    file.parent.mkdir()
    file.write_text(text.replace("[emulator]", '[emulator]\nstands_for = "stm32h743"'))
    emulator = read_board(file).emulator
    assert emulator is not None and emulator.stands_for == "stm32h743"
    assert not any(b.emulator.stands_for for b in boards().values() if b.emulator)


def test_nothing_to_flash_on_an_emulated_board() -> None:
    with pytest.raises(InputError, match="nothing to flash"):
        choose(board("netduinoplus2"))
    with pytest.raises(InputError, match="only with openocd"):
        choose(board("nucleo-f446re"), "jlink")
