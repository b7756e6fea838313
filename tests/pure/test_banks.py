"""An arena over several memory banks: the checker, the search, and what the planner makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.support.graphs import skip_network
from tests.support.placements import smallest_arena_bytes
from tests.support.small_boards import small_board
from toolchain import arena, packages
from toolchain.arena.banks.spread import spread
from toolchain.boards import GUARD_BYTES, Board, Content, board, boards
from toolchain.errors import DoesNotFitError
from toolchain.ir import ArenaPart, ArenaProblem, Bank, Block, SharedPair, Spread
from toolchain.ir.banks import check_spread
from toolchain.memory.bank_layout import Layout, arena_rooms, layout
from toolchain.memory.firmware_size import check_fit, shared_arena
from toolchain.memory.plan import Plan
from toolchain.memory.traffic import accesses
from toolchain.ops.check import check
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.report.plan import proof_line

EXACT = arena.allocator("exact")
FAST, SLOW = Bank("FAST", 40, 1), Bank("SLOW", 60, 5)
TWO_AT_ONCE = ArenaProblem(
    (Block("a", 0, 2, 40, 4), Block("b", 0, 2, 30, 4), Block("c", 2, 3, 8, 4)),
)
GOOD_PARTS = (ArenaPart("FAST", 0, 100), ArenaPart("SLOW", 128, 200))
GOOD = Spread("exact", (FAST, SLOW), (0, 1, 0), (0, 0, 4), (40, 30), 0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"bank_of": (0, 1)}, "wrong count"),
        ({"used_bytes": (40,)}, "wrong count"),
        ({"used_bytes": (44, 30)}, "too full: FAST"),
        ({"bank_of": (0, 2, 0)}, "no such bank: 'b'"),
        ({"offsets": (0, 4, 4)}, "across a border: 'b'"),
        ({"offsets": (-4, 0, 4)}, "across a border: 'a'"),
        ({"offsets": (0, 0, 2)}, "misaligned: 'c'"),
        ({"bank_of": (1, 1, 0), "used_bytes": (12, 60)}, "overlap: 'a'"),
    ],
)
def test_checker_names_what_is_wrong(wrong: dict[str, tuple[int, ...]], message: str) -> None:
    check_spread(TWO_AT_ONCE, GOOD)
    with pytest.raises(ValueError, match=message):
        check_spread(TWO_AT_ONCE, replace(GOOD, **wrong))


@pytest.mark.slow
def test_the_hottest_lies_in_the_fastest_bank_and_moves_when_it_cools() -> None:
    blocks = ArenaProblem((Block("a", 0, 2, 36, 4), Block("b", 0, 2, 36, 4)))
    for hot, heat in ((0, (900, 300)), (1, (300, 900))):
        found = spread(blocks, (FAST, SLOW), heat, EXACT)
        assert found is not None
        assert found.bank_of[hot] == 0 and found.bank_of[1 - hot] == 1


def test_two_blocks_that_share_bytes_stay_together_where_only_that_fits() -> None:
    blocks = ArenaProblem(
        (Block("in", 0, 2, 40, 4), Block("out", 1, 3, 40, 4), Block("skip", 0, 3, 56, 4)),
        (SharedPair(0, 1, 1),),
    )
    found = spread(blocks, (FAST, SLOW), (1, 1, 1000), EXACT)
    assert found is not None and found.bank_of == (0, 0, 1)
    check_spread(blocks, found)
    assert spread(replace(blocks, shared=()), (FAST, SLOW), (1, 1, 1), EXACT) is None


def _random(rng: np.random.Generator) -> tuple[ArenaProblem, tuple[Bank, ...]]:
    blocks = []
    for i in range(int(rng.integers(2, 6))):
        start = int(rng.integers(0, 4))
        size, end = 4 * int(rng.integers(1, 8)), start + int(rng.integers(1, 4))
        blocks.append(Block(str(i), start, end, size, 4))
    shared = [
        SharedPair(i, j, b.start, 4 * int(rng.integers(0, 3)))
        for i, a in enumerate(blocks)
        for j, b in enumerate(blocks)
        if a.end == b.start + 1 and a.start < b.start
    ]
    banks = (Bank("A", 4 * int(rng.integers(4, 14)), 1), Bank("B", 4 * int(rng.integers(4, 14)), 3))
    return ArenaProblem(tuple(blocks), tuple(shared[:1])), banks


def _inside(problem: ArenaProblem, bank_of: tuple[int, ...], bank: int) -> ArenaProblem:
    index = {block: k for k, block in enumerate(i for i, at in enumerate(bank_of) if at == bank)}
    return ArenaProblem(
        tuple(problem.blocks[i] for i in index),
        tuple(
            replace(p, dying=index[p.dying], born=index[p.born])
            for p in problem.shared
            if p.dying in index and p.born in index
        ),
    )


def test_it_finds_a_way_wherever_brute_force_does() -> None:
    rng = np.random.default_rng(5)
    fits = 0
    for _ in range(60):
        problem, banks = _random(rng)
        heat = rng.integers(10**5, 10**6, len(problem.blocks)).tolist()
        ways = [
            bank_of
            for bank_of in product(range(2), repeat=len(problem.blocks))
            if all(
                smallest_arena_bytes(_inside(problem, bank_of, k)) <= bank.size_bytes
                for k, bank in enumerate(banks)
            )
        ]
        found = spread(problem, banks, heat, EXACT)
        assert (found is not None) == bool(ways)
        if found is None:
            continue
        fits += 1
        check_spread(problem, found)

        def cycles(bank_of: tuple[int, ...], heat: list[int] = heat) -> int:
            return sum(h * (1, 3)[k] for h, k in zip(heat, bank_of, strict=True))

        assert cycles(found.bank_of) <= 1.001 * min(map(cycles, ways))
        assert found.size_bytes >= found.lower_bound_bytes
    assert 20 < fits < 60


@pytest.mark.parametrize(
    ("name", "rooms"),
    [
        ("nucleo-f767zi", [("DTCM", 1), ("SRAM1_SRAM2", 3)]),
        ("nucleo-h743zi", [("DTCM", 1), ("AXI_SRAM", 6)]),
        ("f4-discovery", [("SRAM", 1), ("CCM", 1)]),
        ("nucleo-l4r5zi", [("SRAM1_SRAM2_SRAM3", 1)]),
        ("mps3-an547", [("DTCM", 1), ("SRAM", 2), ("ISRAM", 3)]),
    ],
)
def test_rooms_of_a_board(name: str, rooms: list[tuple[str, int]]) -> None:
    target = board(name)
    found = next(arena_rooms(target, code_bytes=20_000, weight_bytes=100_000, data_bytes=3000))
    assert [(room.bank.name, room.bank.access_cycles) for room in found] == rooms
    total = sum(room.bank.size_bytes for room in found)
    assert total - sum(room.free_bytes for room in found) == 3016


def check_guard(chosen: Layout, sizes: Mapping[str, int]) -> None:
    """No byte that is used lies below the stack, where the MPU refuses access: all is packed from
    the bottom of its bank, the stack first."""
    stack = chosen.data.origin
    for bank in chosen.banks:
        end = bank.origin + sizes[bank.name]
        assert not stack - GUARD_BYTES < end <= stack, (chosen, bank)
        assert end <= bank.end - chosen.guard_bytes(bank)


@pytest.mark.parametrize(
    "target", [b for b in boards().values() if not b.is_host], ids=lambda b: b.name
)
def test_no_layout_uses_what_the_guard_below_the_stack_refuses(target: Board) -> None:
    """Data of every size in every bank, and as much arena as is left, in one piece or in parts."""
    refused = 0
    for data_bytes in (3000, 40_000, 64 * 1024 - 16, 100_000, 130_000, 200_000, 380_000):
        needs = {"code_bytes": 20_000, "weight_bytes": 50_000, "data_bytes": data_bytes}
        try:
            options = [rooms for rooms in arena_rooms(target, **needs) if rooms]
        except DoesNotFitError:
            continue
        for rooms in options:
            chosen = layout(
                target, **needs, arena_banks=[(r.bank.name, r.free_bytes) for r in rooms]
            ).merged()
            sizes = {bank.name: 0 for bank in chosen.banks}
            sizes[chosen.code.name] += 20_000
            sizes[chosen.weights.name] += 50_000
            sizes[chosen.data.name] += data_bytes
            for bank, room in zip(chosen.arenas, rooms, strict=True):
                sizes[bank.name] += room.free_bytes
            check_guard(chosen, sizes)
            refused += sum(chosen.guard_bytes(bank) for bank in chosen.banks)
        for arena_bytes in range(10_000, 1_100_000, 7_000):
            try:
                chosen = layout(target, **needs, arena_bytes=arena_bytes).merged()
            except DoesNotFitError:
                break
            sizes = {bank.name: 0 for bank in chosen.banks}
            sizes[chosen.code.name] += 20_000
            sizes[chosen.weights.name] += 50_000
            sizes[chosen.data.name] += data_bytes
            sizes[chosen.arena.name] += arena_bytes
            check_guard(chosen, sizes)
            refused += sum(chosen.guard_bytes(bank) for bank in chosen.banks)
    data = [bank for bank in target.memories if Content.DATA in bank.holds]
    touching = any(
        other.end == bank.origin and Content.ARENA in other.holds
        for bank in data
        for other in target.memories
    )
    assert (refused > 0) == touching


def planned(name: str, **options: bool) -> Plan:
    """Operators stay whole: split, the network fits one bank."""
    return plan_graph(check(skip_network()), board(name), PlanOptions(**options).unsplit)


def test_what_fits_across_two_banks_only_is_spread_over_them(tmp_path: Path) -> None:
    ram = (
        ("SRAM", 0x2000_0000, 28_000, 1, "data arena"),
        ("CCM", 0x2100_0000, 24_576, 1, "arena"),
    )
    with small_board("mps2-an386", tmp_path, ram) as name:
        plan = planned(name)
        assert {part.bank for part in plan.arena.parts} == {"SRAM", "CCM"}
        chosen = check_fit(plan)
        assert chosen is not None and chosen.data.name == "SRAM"
        assert {bank.name for bank in chosen.arenas} == {"SRAM", "CCM"}
        for tensor, offset in plan.arena.offsets.items():
            part = plan.arena.part_of(offset)
            end = offset + plan.graph.tensors[tensor].size_bytes
            assert end <= part.start_bytes + part.size_bytes
        with pytest.raises(DoesNotFitError, match="Nor was a way found"):
            check_fit(planned(name, one_bank=True))


def test_one_piece_where_the_fastest_bank_holds_all_of_it(tmp_path: Path) -> None:
    slow = ("SLOW", 0x2100_0000, 100_000, 4, "arena")
    with small_board(
        "mps2-an386", tmp_path, [("DTCM", 0x2000_0000, 60_000, 1, "data arena"), slow]
    ) as name:
        assert not planned(name).arena.parts


def test_a_faster_bank_takes_the_hottest_part(tmp_path: Path) -> None:
    slow = ("SLOW", 0x2100_0000, 100_000, 4, "arena")
    with small_board(
        "mps2-an386", tmp_path, [("DTCM", 0x2000_0000, 24_576, 1, "data arena"), slow]
    ) as name:
        plan, whole = planned(name), planned(name, one_bank=True)
        assert [part.bank for part in plan.arena.parts] == ["DTCM", "SLOW"]
        assert not whole.arena.parts and plan.arena.size_bytes >= whole.arena.size_bytes


def test_without_cp_sat_an_arena_is_in_one_piece_and_the_report_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = ("SLOW", 0x2100_0000, 100_000, 4, "arena")
    monkeypatch.setattr(packages, "_is_installed", lambda package: False)
    for fast_bytes, told in ((24_576, True), (60_000, False)):
        banks = [("DTCM", 0x2000_0000, fast_bytes, 1, "data arena"), slow]
        with small_board("mps2-an386", tmp_path / str(fast_bytes), banks) as name:
            plan, whole = planned(name), planned(name, one_bank=True)
            assert not plan.arena.parts and plan.arena.offsets == whole.arena.offsets
            check_fit(plan)
            assert ("over banks of RAM, is not installed" in proof_line(plan)) == told


def test_without_cp_sat_what_is_too_big_says_what_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extra is a remedy, where all RAM together would do."""
    monkeypatch.setattr(packages, "_is_installed", lambda package: False)
    for second, could_help in ((28_672, True), (4096, False)):
        banks = [("DTCM", 0x2000_0000, 20_480, 1, "data arena")]
        banks.append(("SLOW", 0x2100_0000, second, 4, "arena"))
        with small_board("mps2-an386", tmp_path / str(second), banks) as name:
            plan = planned(name)
            assert not plan.arena.parts
            with pytest.raises(DoesNotFitError, match="arena, data and stack need 4") as told:
                check_fit(plan)
        remedy = "the arena over DTCM and SLOW by CP-SAT: pip install 'thimble-nn[solver]'"
        assert (remedy in told.value.remedies) == could_help
        assert "Nor was a way found" not in str(told.value)


def test_models_that_share_an_arena_share_each_bank() -> None:
    with_parts = planned("netduinoplus2")
    spread_out = replace(
        with_parts,
        arena=replace(
            with_parts.arena,
            size_bytes=300,
            parts=GOOD_PARTS,
        ),
    )
    small = replace(with_parts, arena=replace(with_parts.arena, size_bytes=150))
    shared = shared_arena([small, spread_out])
    assert shared.banks == (("FAST", 100), ("SLOW", 200))
    assert shared.parts[0][0].bank == "SLOW"
    assert shared_arena([small]).banks == (("", 150),)


def test_layout_takes_named_banks_for_the_parts_of_an_arena() -> None:
    parts = (("SRAM", 100_000), ("CCM", 60_000))
    target = board("f4-discovery")
    chosen = layout(target, code_bytes=9000, weight_bytes=0, data_bytes=3000, arena_banks=parts)
    assert [bank.name for bank in chosen.arenas] == ["SRAM", "CCM"]
    with pytest.raises(DoesNotFitError, match="more than the 65,536 bytes of CCM"):
        layout(
            target, code_bytes=9000, weight_bytes=0, data_bytes=0, arena_banks=(("CCM", 70_000),)
        )


def test_scratch_and_inputs_of_a_convolution_are_hotter_than_its_output() -> None:
    graph = check(skip_network())
    op = graph.ops[0]
    found = accesses(op, graph, 64)
    assert found.tensors[op.inputs[0]] >= graph.tensors[op.inputs[0]].size_bytes
    assert found.tensors[op.outputs[0]] == graph.tensors[op.outputs[0]].size_bytes
    assert found.scratch > 64 and op.inputs[1] not in found.tensors
