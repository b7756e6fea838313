"""Chip files: stalls by clock, caches, families, targets by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolchain.boards import (
    Content,
    MemoryTiming,
    Target,
    as_target,
    board,
    boards,
    chip,
    chips,
    read_board,
    read_chip,
)
from toolchain.errors import InputError
from toolchain.resources import BOARDS

DOCUMENT = BOARDS.parent / "docs" / "boards.md"
MHZ = 1_000_000
KIB = 1024
MINIMAL = 'title = "x"\nmost_clock_hz = 100\n[core]\nname = "cortex-m4"\n'
CACHE = '[cache.l1]\nholds = ["data"]\nline_bytes = {line}\nways = 1\nsets = 1\n'
BANK = '[[memory]]\nname = "R"\norigin = 0\nsize_bytes = 4096\nkind = "ram"\nholds = ["code"]\n'


def test_each_board_names_a_chip_and_chips_are_no_board() -> None:
    assert {b.chip.name for b in boards().values()} <= set(chips())
    assert "chips" not in boards()
    assert {"stm32g0b1"} <= set(chips())  # no board has it yet
    assert chips() == {name: chip(name) for name in chips()}


@pytest.mark.parametrize(
    ("name", "divider", "rows"),
    [
        # RM0090 and RM0390, 2.7 to 3.6 V
        ("stm32f407", 1, (30, 60, 90, 120, 150, 168)),
        ("stm32f446", 1, (30, 60, 90, 120, 150, 180)),
        # RM0351, range 1; RM0432, range 1 with boost
        ("stm32l476", 1, (16, 32, 48, 64, 80)),
        ("stm32l4r5", 1, (20, 40, 60, 80, 100, 120)),
        # RM0385 and RM0410, 2.7 to 3.6 V
        ("stm32f746", 1, (30, 60, 90, 120, 150, 180, 210, 216)),
        ("stm32f767", 1, (30, 60, 90, 120, 150, 180, 210, 216)),
        # RM0433, scales 0 and 1, of AXI; RM0455, scale 0
        ("stm32h743", 2, (70, 140, 210, 225, 240)),
        ("stm32h723", 2, (70, 140, 210, 275)),
        ("stm32h7s3", 2, (40, 80, 120, 160, 200, 240, 280, 300)),
        ("stm32h7a3", 1, (44, 88, 132, 176, 220, 264, 280)),
        # RM0456, range 1; RM0438, range 0
        ("stm32u575", 1, (32, 64, 96, 128, 160)),
        ("stm32l552", 1, (20, 40, 60, 80, 100, 110)),
        # RM0444, range 1
        ("stm32g0b1", 1, (24, 48, 64)),
    ],
)
def test_wait_states_are_the_rows_of_the_manual(
    name: str, divider: int, rows: tuple[int, ...]
) -> None:
    """At the highest clock of each row, and 1 Hz of the core above that of the row before."""
    found = chip(name)
    flash = found.banks[0].timing
    assert flash is not None and found.most_clock_hz == rows[-1] * divider * MHZ
    for waits, most_mhz in enumerate(rows):
        assert flash.wait_states(most_mhz * divider * MHZ, name) == waits
        least_hz = rows[waits - 1] * divider * MHZ + 1 if waits else 1
        assert flash.wait_states(least_hz, name) == waits


@pytest.mark.parametrize(
    ("name", "bank", "timing"),
    [
        ("nucleo-f446re", "FLASH", MemoryTiming(5, 16, prefetch=True)),
        ("nucleo-f446re", "SRAM", MemoryTiming(0, 4)),
        ("nucleo-l4r5zi", "FLASH", MemoryTiming(5, 8, prefetch=True)),
        ("nucleo-l476rg", "FLASH", MemoryTiming(4, 8, prefetch=True)),
        ("nucleo-f767zi", "FLASH", MemoryTiming(7 + 4, 32)),
        ("nucleo-f767zi", "DTCM", MemoryTiming(0, 8)),
        ("nucleo-h743zi", "FLASH", MemoryTiming(2 * (4 + 4), 32)),
        ("nucleo-h743zi", "AXI_SRAM", MemoryTiming(2 * 4, 8)),
        ("nucleo-h7a3zi-q", "FLASH", MemoryTiming(6 + 4, 16, burst_cycles=6)),
        ("nucleo-h7a3zi-q", "AXI_SRAM", MemoryTiming(4, 8)),
        ("mps2-an500", "PSRAM", MemoryTiming(0, 4)),
    ],
)
def test_stalls_at_the_board_s_clock(name: str, bank: str, timing: MemoryTiming) -> None:
    (found,) = [m for m in board(name).memories if m.name == bank]
    assert found.timing == timing


def test_another_clock_gives_other_stalls_and_tells_the_firmware(tmp_path: Path) -> None:
    text = (BOARDS / "nucleo-f446re" / "board.toml").read_text()
    file = tmp_path / "slow" / "board.toml"
    file.parent.mkdir()
    assert "clock_hz = 180_000_000" in text
    text = text.replace("clock_hz = 180_000_000", "clock_hz = 84_000_000")
    file.write_text(text.replace("\nn = 180", "\nn = 84"))
    slow = read_board(file)
    assert slow.memories[0].timing == MemoryTiming(2, 16, prefetch=True)
    assert slow.defines["THIMBLE_FLASH_WAIT_STATES"] == "0x2u"
    assert board("nucleo-f446re").defines["THIMBLE_FLASH_WAIT_STATES"] == "0x5u"


@pytest.mark.parametrize(
    ("name", "sizes", "line_bytes", "filled_bytes"),
    [
        ("stm32f407", (1024, 128), 16, 16),
        ("stm32l4r5", (1024, 256), 32, 8),
        ("stm32f746", (4 * KIB, 4 * KIB), 32, 32),
        ("stm32f767", (16 * KIB, 16 * KIB), 32, 32),
        ("stm32h743", (16 * KIB, 16 * KIB), 32, 32),
        ("stm32h7a3", (16 * KIB, 16 * KIB), 32, 32),
        ("stm32u575", (8 * KIB,), 16, 16),
        ("stm32g0b1", (16, 8), 8, 8),
        ("an500", (), 0, 0),
    ],
)
def test_caches_have_the_sizes_of_the_manuals(
    name: str, sizes: tuple[int, ...], line_bytes: int, filled_bytes: int
) -> None:
    found = as_target(name).caches
    assert tuple(cache.size_bytes for cache in found) == sizes
    assert {cache.line_bytes for cache in found} == ({line_bytes} if sizes else set())
    assert {cache.filled_bytes for cache in found} == ({filled_bytes} if sizes else set())


@pytest.mark.parametrize("name", [n for n, c in chips().items() if c.banks])
def test_chip_is_consistent(name: str) -> None:
    """Every bank that is used has a timing; caches lie before banks that there are, never before
    tightly coupled memory; a bank that waits lies behind caches of instructions and of data."""
    target = as_target(name)
    banks = {m.name: m for m in target.memories}
    for memory in target.memories:
        assert memory.timing is not None or not memory.holds
        caches = [c for c in target.caches if memory.name in c.memories]
        assert not (caches and "TCM" in memory.name)
        if memory.timing is not None and memory.timing.read_cycles:
            assert {h for c in caches for h in c.holds} == {"instructions", "data"}
        if memory.holds & {Content.DATA, Content.ARENA} and caches:
            assert any(c.write_back for c in caches)
    for cache in target.caches:
        assert set(cache.memories) <= set(banks)
        assert cache.memories or any(  # of memory beside the chip
            c.name == cache.name and c.memories
            for b in boards().values()
            if b.chip.name == name
            for c in b.caches
        )


def test_memory_beside_the_chip_waits_by_the_ratio_of_the_clocks(tmp_path: Path) -> None:
    """The example of docs/boards.md: 21 clocks of 10 ns are 45.36 cycles of 216 MHz, 8 are 17.28;
    a part of a cycle is waited."""
    (qspi,) = re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "with-qspi" / "board.toml"
    file.parent.mkdir()
    file.write_text((BOARDS / "nucleo-f767zi" / "board.toml").read_text() + "\n" + qspi)
    found = read_board(file)
    assert found.memories[-1].name == "QSPI"
    assert found.memories[-1].timing == MemoryTiming(46, 4, burst_cycles=18)
    data, instructions = (
        next(c for c in found.caches if c.name == name) for name in ("data", "instructions")
    )
    assert "QSPI" in data.memories and "QSPI" not in instructions.memories


def test_a_board_and_a_chip_are_targets() -> None:
    of_board, of_chip = as_target("nucleo-h743zi"), as_target("stm32h743")
    assert isinstance(of_chip, Target) and of_chip.memories == of_board.memories
    assert (of_chip.name, of_chip.clock_hz) == ("stm32h743", 480 * MHZ)
    assert (of_board.core.name, of_board.caches) == ("cortex-m7", of_chip.caches)
    bare = as_target("stm32u575")
    assert (bare.core.name, bare.clock_hz) == ("cortex-m33", 160 * MHZ)
    assert bare.memories[0].timing == MemoryTiming(4, 16, prefetch=True)
    for name in ("elsewhere", "host"):
        with pytest.raises(InputError, match=rf"no board or chip '{name}'.*nucleo-h743.*stm32u575"):
            as_target(name)
    with pytest.raises(InputError, match=r"no chip .elsewhere.; the chips are .*stm32u575"):
        chip("elsewhere")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("most_clock_hz = 1", "the field 'title' is missing"),
        (MINIMAL + "speed = 3", "core: the field 'speed' is unknown"),
        ('family = "stm32z9"\n' + MINIMAL, "family: there is no .*stm32z9.toml"),
        (MINIMAL + BANK.replace("ram", "rom"), r"memory\[0\] \(R\): kind .*rom"),
        (
            MINIMAL + BANK + "access_cycles = 0.5",
            "access_cycles is 0.5, not a whole number",
        ),
        (
            MINIMAL + BANK.replace("= 0", "= 2048").replace('"code"', '"data"'),
            r"\(R\) may hold data but does not begin at a multiple of 4096",
        ),
        (MINIMAL + BANK + BANK, r"memory\[1\] \(R\): there is another bank of that name"),
        (
            MINIMAL + BANK + 'timing = "fast"\n[timing.slow]\nwidth_bytes = 4',
            "timing: there is no 'fast'; there are slow",
        ),
        (MINIMAL + BANK + 'caches = ["l2"]', "caches: there is no 'l2'; there are none"),
        (
            MINIMAL + '[cache.l1]\nholds = ["data"]\nline_bytes = 24\nways = 1\nsets = 1',
            "cache.l1: line_bytes is 24, not a power of two",
        ),
        (
            MINIMAL + CACHE.format(line=16) + "sector_bytes = 6",
            "cache.l1: sector_bytes is 6, not a power of two",
        ),
        (
            MINIMAL + CACHE.format(line=16) + "sector_bytes = 32",
            "cache.l1: line_bytes is 16 and a miss brings in 32",
        ),
        (
            MINIMAL + CACHE.format(line=256) + "sector_bytes = 4",
            "a line has at most 32 sectors of 4 bytes or more",
        ),
        (MINIMAL + CACHE.format(line=2), "cache.l1: line_bytes is 2 and a miss brings in 2"),
        (
            MINIMAL + '[cache.l1]\nholds = ["data"]\nline_bytes = 16\nways = 1\nsets = 3',
            "cache.l1: sets is 3, not a power of two",
        ),
        (
            MINIMAL + '[cache.l1]\nholds = ["data"]\nline_bytes = 16\nways = 0\nsets = 1',
            "cache.l1: ways is 0",
        ),
        (
            MINIMAL + '[cache.l1]\nholds = ["code"]\nline_bytes = 16\nways = 1\nsets = 1',
            "holds.*not one of 'instructions', 'data'",
        ),
        (MINIMAL + "[timing.t]\nwidth_bytes = 0", "timing.t: width_bytes is 0, not a power of two"),
        (
            MINIMAL + "[timing.t]\nwidth_bytes = 4\nfirst_clocks = -1",
            "timing.t: first_clocks is -1, not 0 or more",
        ),
        (
            MINIMAL + "[timing.t]\nwidth_bytes = 4\ndivider = 2\nbus_hz = 5",
            "timing.t: divider is 2 and bus_hz 5",
        ),
        (
            MINIMAL + "[timing.t]\nwidth_bytes = 4\nwait_state_hz = [60, 30, 100]",
            r"timing.t: wait_state_hz must ascend: \[60, 30, 100\]",
        ),
        (
            MINIMAL + BANK + 'timing = "t"\n[timing.t]\nwidth_bytes = 4\nwait_state_hz = [30, 60]',
            r"\(R\): wait_state_hz: at 100 Hz of the core the bus runs at 100 Hz, above 60 Hz",
        ),
        (
            MINIMAL + "[energy]\nrun_ua_per_mhz = 0\nsupply_volts = 3.3",
            "energy: run_ua_per_mhz is 0.*, not above 0",
        ),
        (
            MINIMAL.replace("100", "0") + BANK,
            "clock_hz is 0",
        ),
        (
            MINIMAL + "[firmware.defines]\nTHIMBLE_X = 0.5",
            "defines.THIMBLE_X is 0.5, not a text or a whole number",
        ),
    ],
)
def test_wrong_chip_file_is_named(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "part.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_chip(file)
    assert "part" in str(caught.value)


def test_a_chip_has_of_its_family_what_it_does_not_say(tmp_path: Path) -> None:
    (tmp_path / "families").mkdir()
    (tmp_path / "families" / "kin.toml").write_text(
        MINIMAL + "[timing.t]\nwidth_bytes = 4\nfirst_clocks = 3\n"
    )
    file = tmp_path / "part.toml"
    file.write_text(
        'family = "kin"\ntitle = "y"\n[timing.t]\nfirst_clocks = 1\n' + BANK + 'timing = "t"'
    )
    found = read_chip(file)
    assert (found.title, found.core.name) == ("y", "cortex-m4")
    (memory,) = found.memories(100, "")
    assert memory.timing == MemoryTiming(1, 4)
