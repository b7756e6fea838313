"""The published figures beside which the model of time is set: chips, boards and models exist."""

from __future__ import annotations

import pytest

from benchmarks.silicon import PUBLISHED, Published, read_published, without_prefetch
from toolchain.boards import MemoryTiming, as_target, board
from toolchain.cycles.core_timing import timing_of
from toolchain.cycles.memory_system import MemorySystem, Region

FILES, ROWS = read_published(PUBLISHED)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.target}, {row.software}")
def test_each_row_can_be_read(row: Published) -> None:
    assert board(row.ran_on).emulator is not None
    core = row.core or as_target(row.target).core.name
    assert timing_of(core) is not None
    assert row.cycles and set(row.cycles) <= set(FILES)
    assert all(0 < millions < 100 for millions in row.cycles.values())


def test_software_and_chip_tell_rows_apart() -> None:
    assert len({(row.target, row.software) for row in ROWS}) == len(ROWS)


def test_prefetch_can_be_left_out() -> None:
    timing = MemoryTiming(5, 8, burst_cycles=5, prefetch=True)
    memory = MemorySystem((Region("FLASH", 0, 1024, timing),))
    (region,) = without_prefetch(memory).regions
    assert region.timing == MemoryTiming(5, 8, burst_cycles=5)
