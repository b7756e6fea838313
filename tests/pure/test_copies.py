"""Constants that the start-up copies to RAM: which, where, and what the C and the report say."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from functools import cache
from itertools import product
from types import MappingProxyType

import pytest

from tests.support.graphs import dense_chain
from toolchain import arena
from toolchain.boards import Content, Memory, board
from toolchain.codegen import copied_bytes, generate
from toolchain.cost import Cost
from toolchain.cost.basis import Basis
from toolchain.cost.key import operator_key
from toolchain.cost.measured import MeasuredCostModel
from toolchain.cost.predicted import PredictedCostModel, predicted_model
from toolchain.device.build import BuildOptions, roomier_banks
from toolchain.device.compiler import BankOverflowError
from toolchain.errors import DoesNotFitError
from toolchain.kernels import cmsis_nn
from toolchain.memory.firmware_size import firmware_data_bytes, firmware_layout, ram_bytes
from toolchain.memory.plan import NOTHING_COPIED, Plan
from toolchain.ops.lowering import Kernels
from toolchain.packages import Extra
from toolchain.planner import candidates, plan_graph
from toolchain.planning import copies
from toolchain.planning.copies import Item, choose, copy_banks, most_copied, with_linked_code
from toolchain.planning.known import Known
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.planning.room import Forms
from toolchain.report.latency import kernel_keys, predict_latency
from toolchain.report.plan import copied_lines, left_to_copy_lines

M7 = ("f746g-disco", "nucleo-f767zi", "nucleo-h743zi", "nucleo-h7a3zi-q")
WIDTHS = (640, 128, 128, 8, 128, 128, 640)


@cache
def _plan(name: str, **given: object) -> Plan:
    options = PlanOptions(**given)  # type: ignore[arg-type]
    return plan_graph(dense_chain("dense", WIDTHS), board(name), options)


def _bank(name: str, bank: str) -> Memory:
    return next(m for m in board(name).memories if m.name == bank)


def _best(
    items: list[Item], rooms: dict[str, int], most: int, bytes_per_cycle: int
) -> tuple[int, int]:
    """The most cycles that any choice saves, and the fewest bytes of such a choice."""
    best = (0, 0)
    for banks in product(("", *rooms), repeat=len(items)):
        chosen = [(item, at) for item, at in zip(items, banks, strict=True) if at]
        if any(sum(i.size_bytes for i, at in chosen if at == b) > rooms[b] for b in rooms):
            continue
        size = sum(item.size_bytes for item, _ in chosen)
        worth = all(
            i.saved[at] * bytes_per_cycle > i.size_bytes if bytes_per_cycle else i.saved[at] > 0
            for i, at in chosen
        )
        if size <= most and worth:
            best = max(best, (sum(item.saved[at] for item, at in chosen), -size))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_choice_saves_most_of_all(seed: int) -> None:
    rng = random.Random(seed)
    rooms = {bank: rng.randrange(20, 120) for bank in ("TCM", "ALSO", "SLOW")}
    items = []
    for number in range(5):
        saved = rng.randrange(0, 60)
        by_bank = {"TCM": saved, "ALSO": saved, "SLOW": saved * 3 // 4}
        items.append(Item(f"op{number}", rng.randrange(1, 80), by_bank))
    most, bytes_per_cycle = rng.choice((60, 1000)), rng.choice((0, 2, 16))
    chosen = choose(items, rooms, most, bytes_per_cycle)
    sizes = {item.operator: item.size_bytes for item in items}
    for bank, room in rooms.items():
        assert sum(sizes[name] for name, at in chosen.items() if at == bank) <= room
    saved = sum(i.saved[chosen[i.operator]] for i in items if i.operator in chosen)
    found = (saved, -sum(sizes[name] for name in chosen))
    assert found == _best(items, rooms, most, bytes_per_cycle)


def test_without_cp_sat_the_choice_keeps_all_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three fit: those that save most for each byte; none where a copy is not worth it."""
    monkeypatch.setattr(copies, "SOLVER", Extra("solver", "", ("no_such_package",)))
    items = [Item("a", 60, {"TCM": 60}), Item("b", 50, {"TCM": 80}), Item("c", 40, {"TCM": 70})]
    assert choose(items, {"TCM": 100}, 1000, 0) == {"b": "TCM", "c": "TCM"}
    assert choose(items, {"TCM": 100}, 80, 0) == {"c": "TCM"}
    assert choose(items, {"TCM": 100}, 1000, 1) == {"b": "TCM", "c": "TCM"}
    assert choose([Item("a", 60, {"TCM": 3})], {"TCM": 100}, 1000, 16) == {}


@pytest.mark.parametrize("name", M7)
def test_by_default_banks_keep_a_quarter_free_or_half_of_what_is_left(name: str) -> None:
    """A quarter of those that never wait."""
    plan, without = _plan(name), _plan(name, copy_constants=False)
    copied = plan.copied
    assert without.copied == NOTHING_COPIED and copied.operators > 0
    assert (plan.arena, plan.weight_bytes) == (without.arena, without.weight_bytes)
    assert dict(copied.banks) == dict(copied_bytes(plan))
    assert copied.size_bytes == ram_bytes(plan) - ram_bytes(without)
    layout = firmware_layout(board(name), [plan])
    assert [at for at, _ in layout.copies] == [at for at, _ in copied.banks]
    for at, size in copied.banks:
        bank = _bank(name, at)
        assert Content.COPIES in bank.holds
        others = plan.arena.size_bytes * (layout.arena == bank)
        others += firmware_data_bytes(plan) * (layout.data == bank)
        assert bank.timing is not None
        if bank.timing.read_cycles:
            assert size <= (bank.size_bytes - others) // 2
        else:
            assert size + others <= bank.size_bytes * 3 // 4
    before, after = predict_latency(without).total, predict_latency(plan).total
    assert copied.before == before and copied.saved == before - after > 0.05 * before
    (line,) = copied_lines(plan)
    assert f"{copied.saved:,} cycles fewer" in line and copied_lines(without) == ()
    (left,) = left_to_copy_lines(plan)
    assert all(f"THIMBLE_COPIED_{bank}" in left for bank, _ in copied.banks)
    assert f"takes {copied.before:,} cycles" in left and left_to_copy_lines(without) == ()


@pytest.mark.parametrize("name", M7)
def test_speed_takes_slower_banks_too(name: str) -> None:
    plan, default = _plan(name, optimise=Optimise.SPEED), _plan(name)
    most, usual = dict(plan.copied.banks), dict(default.copied.banks)
    assert sum(most.values()) >= sum(usual.values())
    assert plan.copied.saved > default.copied.saved or "ITCM" in usual
    timing = _bank(name, plan.copied.banks[-1][0]).timing
    assert timing is not None and timing.read_cycles > 0
    assert plan.copied.operators == len(WIDTHS) - 1
    assert sum(size for _, size in plan.copied.banks) >= plan.weight_bytes
    assert predict_latency(plan).total <= predict_latency(default).total


@pytest.mark.parametrize(("name", "bank"), [("nucleo-l4r5zi", "SRAM2"), ("nucleo-l476rg", "SRAM2")])
def test_code_goes_where_its_buses_reach_ram(name: str, bank: str) -> None:
    """A bank with an address of its own for code holds nothing else."""
    plan, without = _plan(name, optimise=Optimise.SPEED), _plan(name, copy_constants=False)
    copied, layout = plan.copied, firmware_layout(board(name), [plan])
    assert copied.code_in == bank and layout.code_copy == _bank(name, bank)
    assert copied.size_bytes == ram_bytes(plan) - ram_bytes(without)
    assert copied.saved == predict_latency(without).total - predict_latency(plan).total
    constants = replace(plan, copied=replace(copied, code_in="", code_bytes=0))
    kernels = tuple(replace(kernel, code_in="") for kernel in plan.lowered.kernels)
    constants = replace(constants, lowered=replace(plan.lowered, kernels=kernels))
    assert predict_latency(plan).total < predict_latency(constants).total
    if layout.code_copy.code_origin != layout.code_copy.origin:
        assert (
            bank not in {b.name for b in (layout.data, *layout.arenas)} | dict(copied.banks).keys()
        )


def test_what_is_refused_or_saves_nothing_stays_in_flash() -> None:
    assert _plan("nucleo-h743zi", optimise=Optimise.SIZE).copied == NOTHING_COPIED
    assert _plan("nucleo-l4r5zi", copy_constants=False).copied == NOTHING_COPIED
    for name in ("mps2-an500", "host"):
        assert _plan(name).copied == NOTHING_COPIED
    few = plan_graph(dense_chain("few", (16, 16)), board("nucleo-h743zi"))
    assert few.copied == NOTHING_COPIED  # L1 holds them


def test_the_ram_that_is_asked_for_is_a_limit() -> None:
    least = ram_bytes(_plan("nucleo-h743zi", copy_constants=False))
    before = predict_latency(_plan("nucleo-h743zi", copy_constants=False)).total
    for more in (0, 4_000, 20_000, 40_000, 100_000):
        plan = _plan("nucleo-h743zi", ram_bytes=least + more)
        assert ram_bytes(plan) <= least + more
        assert predict_latency(plan).total <= before
        before = predict_latency(plan).total
    assert before < predict_latency(_plan("nucleo-h743zi", ram_bytes=least)).total


def test_a_constant_that_no_bank_holds_is_not_thought_copied() -> None:
    """The bound of the time is then near to the time of the quickest plan."""
    graph, target = dense_chain("wide", (640, 640, 128)), board("nucleo-l4r5zi")
    costs = predicted_model(target)
    most = most_copied(target, PlanOptions(), costs)
    assert 640 * 128 < most < 640 * 640
    forms = Forms(
        costs.within(graph), Kernels(target.core), copy_banks(target, PlanOptions(), costs)
    )
    all_copied, bound = (forms.least(graph, most_copied=size) for size in (math.inf, most))
    base = candidates(graph, target, PlanOptions()).base
    assert all_copied < 0.99 * bound and bound <= base.count < 1.005 * bound


def test_constants_that_two_operators_read_are_told() -> None:
    """One array then serves both, so that a copy may take no bytes of its own: no bound is drawn
    from its size.
    """
    graph, target = dense_chain("chain", (128, 128, 64, 128, 128)), board("nucleo-h743zi")
    first, last = (graph.tensors[f"{name} weights"] for name in ("fc0", "fc3"))
    same = MappingProxyType(
        dict(graph.tensors) | {last.name: replace(last, constant=first.constant)}
    )
    for tensors, shared in ((graph.tensors, False), (same, True)):
        whole = candidates(replace(graph, tensors=tensors), target, PlanOptions()).whole
        allocator = arena.allocator(arena.DEFAULT)
        known = Known(whole, Kernels(target.core), allocator=allocator)
        assert known.shares_constants == shared


def test_what_is_told_of_too_little_ram_is_what_fits() -> None:
    """Copies are to spare: they count where the limit of time needs them."""
    least = ram_bytes(_plan("nucleo-f446re", copy_constants=False))
    with pytest.raises(DoesNotFitError, match=f"found is {least:,} bytes .*slowdown"):
        _plan("nucleo-f446re", ram_bytes=least - 1)
    with pytest.raises(DoesNotFitError, match=r"copies [\d,]+, slowdown 0.0%") as refusal:
        _plan("nucleo-f446re", ram_bytes=least, max_slowdown=0.0)
    assert "--no-copies" in refusal.value.remedies


def test_waits_of_constants_go_with_the_bank() -> None:
    plan = _plan("nucleo-h7a3zi-q", copy_constants=False)
    costs = predicted_model(board("nucleo-h7a3zi-q"))
    never = replace(costs, stalls=None)

    def cost(bank: str, model: PredictedCostModel = costs) -> int:
        kernels = (replace(plan.lowered.kernels[0], constants_in=bank), *plan.lowered.kernels[1:])
        return model.cost(replace(plan.lowered, kernels=kernels), 0).count

    core = cost("", never)
    flash, axi, tcm = (cost(bank) - core for bank in ("", "AXI_SRAM", "DTCM"))
    assert cost("ITCM") - core == tcm < 0.01 * flash
    # Lines of 32 bytes: the flash takes 10 + 6 cycles, AXI SRAM 4.
    assert axi - tcm == pytest.approx((flash - tcm) / 4, rel=0.01)


def test_what_was_measured_of_constants_in_flash_says_nothing_of_copies() -> None:
    plan = _plan("nucleo-h743zi")
    fallback = predicted_model(board("nucleo-h743zi"))
    keys = kernel_keys(plan)
    places = [kernel.constants_in for kernel in plan.lowered.kernels]
    assert [key is None for key in keys] == [bool(place) for place in places]
    known = {operator_key(plan.lowered, n): Cost(7, Basis.TRACE) for n in range(len(places))}
    model = MeasuredCostModel(MappingProxyType(known), "cycles", fallback)
    for number, place in enumerate(places):
        assert (model.cost(plan.lowered, number).count == 7) == (not place)


def test_the_c_marks_each_array_and_needs_no_definition() -> None:
    plan = _plan("nucleo-h743zi", optimise=Optimise.SPEED)
    files = generate(plan, board("nucleo-h743zi").core, cmsis_nn.find()).files
    weights = files["dense_weights.h"]
    marked = re.findall(r"^static const \w+ \w+\[\d+\] (\w+) = \{$", weights, re.MULTILINE)
    banks = {bank for bank, _ in plan.copied.banks}
    assert {f"THIMBLE_COPIED_{bank}" for bank in banks} == set(marked)
    for bank in banks:
        macro = f"THIMBLE_COPIED_{bank}"
        assert f"#ifndef {macro}\n#define {macro} THIMBLE_WEIGHTS\n#endif" in weights
        assert f"{bank}, copied" in files["dense.c"]
    plain = generate(_plan("mps2-an500"), board("mps2-an500").core, cmsis_nn.find()).files
    assert "COPIED" not in plain["dense_weights.h"] and ", copied" not in plain["dense.c"]


def test_code_that_is_too_large_for_its_copy_stays_in_flash() -> None:
    name = "nucleo-l4r5zi"
    plan = _plan(name, optimise=Optimise.SPEED)
    layout = firmware_layout(board(name), [plan])
    full = BankOverflowError([("SRAM2_CODE", 100)])
    other = roomier_banks(board(name), [plan], BuildOptions(), layout, full)
    assert other == replace(layout, code_copy=None)
    assert with_linked_code(plan, 7000).copied == replace(plan.copied, code_bytes=7000)
    made = with_linked_code(plan, 0)
    assert made.copied.banks == plan.copied.banks and not made.copied.code_in
    assert made.copied.before - made.copied.saved == predict_latency(made).total
    assert predict_latency(made).total > predict_latency(plan).total
    nothing = with_linked_code(_plan(name, copy_constants=False), 0)
    assert nothing.copied == NOTHING_COPIED
