"""Boards named EMULATED:TARGET: an emulated machine with the memories of a board or chip."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from toolchain.boards import (
    GUARD_BYTES,
    Content,
    MemoryKind,
    as_target,
    board,
    board_files,
    boards,
    energy_of,
    stand_in,
)
from toolchain.errors import InputError
from toolchain.memory.bank_layout import BankNames, layout

PAIRS = [
    *(("mps2-an500", chip) for chip in ("stm32f746", "stm32f767", "stm32h743", "nucleo-h7a3zi-q")),
    *(("mps2-an386", chip) for chip in ("nucleo-l476rg", "nucleo-l4r5zi", "f4-discovery")),
    ("mps2-an505", "stm32u575"),
]


@pytest.mark.parametrize(("machine", "target"), PAIRS)
def test_banks_keep_all_but_their_addresses(machine: str, target: str) -> None:
    made, meant, emulated = board(f"{machine}:{target}"), as_target(target), board(machine)
    assert as_target(made.name).memories == made.memories
    assert (made.clock_hz, made.caches) == (meant.clock_hz, meant.caches)
    assert (made.core, made.firmware_sources) == (emulated.core, emulated.firmware_sources)
    used = [bank for bank in meant.memories if bank.holds]
    assert [bank.name for bank in made.memories] == [bank.name for bank in used]
    assert made.memories[0].origin == emulated.memories[0].origin
    for bank, was in zip(made.memories, used, strict=True):
        assert (bank.size_bytes, bank.holds, bank.timing) == (was.size_bytes, was.holds, was.timing)
        room = next(m for m in emulated.memories if m.covers(bank))
        assert room.kind is bank.kind
        assert Content.DATA not in bank.holds or bank.origin % GUARD_BYTES == 0
    for one, two in combinations(range(len(used)), 2):
        first, second = made.memories[one], made.memories[two]
        assert first.end <= second.origin or second.end <= first.origin
        for a, b in ((one, two), (two, one)):
            touch = used[a].end == used[b].origin and used[a].kind is used[b].kind
            assert (made.memories[a].end == made.memories[b].origin) == touch


def test_what_cannot_stand_for_a_target_is_refused() -> None:
    for name, why in (
        ("mps2-an386:stm32h743", "has a cortex-m7, and mps2-an386 a cortex-m4"),
        ("nucleo-h743zi:stm32h7a3", "is not emulated"),
        ("mps2-an500:nowhere", "no board or chip 'nowhere'"),
        ("mps2-an500:host", "no board or chip 'host'"),
        ("nowhere:stm32h743", "no board 'nowhere:stm32h743'"),
        ("netduinoplus2:nucleo-l4r5zi", "has no memory for the 2,097,152 bytes of FLASH"),
    ):
        with pytest.raises(InputError, match=why):
            board(name)


def test_a_stand_in_is_read_from_both_files_and_is_in_no_list() -> None:
    files = {file.parent.name for file in board_files("mps2-an500:nucleo-h743zi")}
    assert {"mps2-an500", "nucleo-h743zi"} <= files
    assert "mps2-an500:nucleo-h743zi" not in boards()
    assert energy_of("mps2-an386:nucleo-l4r5zi") == energy_of("nucleo-l4r5zi") is not None
    assert all(m.kind in MemoryKind for m in board("mps2-an500:stm32h743").memories)


def test_every_core_that_qemu_has_stands_for_its_boards() -> None:
    chosen = {name: stand_in(made) for name, made in boards().items()}
    for name, one in chosen.items():
        if boards()[name].emulator or name in ("host", "nucleo-n657x0-q"):  # 64 MiB of flash
            assert one is None
        else:
            assert one is not None
            assert one.name == f"{one.name.partition(':')[0]}:{name}"
            assert one.clock_hz == boards()[name].clock_hz
    for name, machine in (
        ("nucleo-f446re", "mps2-an386"),
        ("nucleo-h743zi", "mps2-an500"),
        ("f746g-disco@QSPI", "mps2-an500"),
        ("nucleo-c031c6", "mps2-an385-v6m"),
    ):
        found = stand_in(board(name))
        assert found is not None
        assert found.name == f"{machine}:{name}"


@pytest.mark.parametrize("name", ["nucleo-h743zi", "f746g-disco@QSPI", "nucleo-l4r5zi"])
def test_a_layout_is_the_same_by_its_names(name: str) -> None:
    target = board(name)
    other = stand_in(target)
    assert other is not None
    made = layout(target, code_bytes=9000, weight_bytes=9000, data_bytes=5000, arena_bytes=300_000)
    moved = BankNames.of(made).on(other)
    assert BankNames.of(made).on(target) == made
    assert [bank.name for bank in moved.banks] == [bank.name for bank in made.banks]
    assert [bank.size_bytes for bank in moved.arenas] == [b.size_bytes for b in made.arenas]
    with pytest.raises(InputError, match="has no bank NONE for weights"):
        replace(BankNames.of(made), weights="NONE").on(target)
