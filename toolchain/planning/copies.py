"""Constants and code in RAM that is read sooner than flash: the start-up copies them there.

Which ones, and to which bank, is a constraint program over the whole network: the cycles that each
operator's constants save by prediction, as far as the banks have room for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolchain import search
from toolchain.boards import Board, Memory
from toolchain.codegen import copied_bytes
from toolchain.cost.predicted import PredictedCostModel, predicted_model
from toolchain.errors import DoesNotFitError
from toolchain.memory.bank_layout import SECTION_ALIGNMENT_BYTES
from toolchain.memory.firmware_size import (
    firmware_data_bytes,
    firmware_layout,
    ram_bytes,
)
from toolchain.memory.plan import NOTHING_COPIED, Copied, Plan
from toolchain.ops.lowering import Lowered
from toolchain.packages import SOLVER, lazy
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.report.latency import predict_latency
from toolchain.search import Work

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
else:
    cp_model = lazy("ortools.sat.python.cp_model", SOLVER)

_SHARE = 12
"""Sixteenths of a bank that may be full; the rest is the user's."""
_RESERVE_BYTES = 1024
"""Left in a bank with Optimise.SPEED: the size of data is an estimate."""
_WORTH = 0.01
"""The least share of the time to save; copies that save less are not made."""
_BYTES_PER_CYCLE = 16
"""Bytes for which a copy must save a cycle in every inference. A line of 32 bytes that is read once
waits for more than two."""
_COPIED_FUNCTION_BYTES = 3600
"""Bytes of a kernel with the functions that it calls; more than most take, because the room is
fixed before linking."""
_SECONDS = 0.5
_SECONDS_PER_UNIT = 1.0
"""Seconds that one unit of CP-SAT's deterministic time takes."""


@dataclass(frozen=True)
class Item:
    """The constants of one operator. `saved`: cycles of an inference, by bank."""

    operator: str
    size_bytes: int
    saved: Mapping[str, int]


def copy_constants(plan: Plan, target: Board, options: PlanOptions) -> Plan:
    """The plan with constants copied to RAM where that saves time and `options` allow it.

    By default to banks that are tightly coupled (they never wait, and other RAM does), up to three
    quarters of each, if that saves a hundredth of the time or more; with Optimise.SPEED to all that
    may hold copies and are quicker than flash. `--ram` is a limit of both. A firmware that does not
    fit gets no copies.
    """
    costs = predicted_model(target)
    if not copy_banks(target, options, costs):
        return plan
    rooms = _rooms(plan, target, options, costs)
    if not rooms:
        return plan
    items = _items(plan, costs, list(rooms))
    most = sum(rooms.values())
    if options.ram_bytes is not None:
        most = min(most, options.ram_bytes - ram_bytes(plan))
    speed = options.optimise is Optimise.SPEED
    chosen = choose(items, rooms, most, 0 if speed else _BYTES_PER_CYCLE)
    saved = sum(item.saved[chosen[item.operator]] for item in items if item.operator in chosen)
    before = predict_latency(plan, costs).total
    made = plan
    if chosen and (speed or saved >= _WORTH * before):
        placed = replace(plan, lowered=_placed(plan.lowered, chosen))
        taken = copied_bytes(placed)
        banks = tuple((bank, taken[bank]) for bank in rooms if bank in taken)
        copied = Copied(banks, len(chosen), saved=saved, before=before, unit=costs.unit)
        made = replace(placed, copied=copied)
    return _with_code(made, target, options, costs, rooms)


def _with_code(
    plan: Plan,
    target: Board,
    options: PlanOptions,
    costs: PredictedCostModel,
    rooms: Mapping[str, int],
) -> Plan:
    """The plan with the code of all its kernels in the first bank that has room beside constants,
    where that saves time, by default a hundredth.
    """
    functions = {function for op in plan.operators for function in op.functions}
    size = _COPIED_FUNCTION_BYTES * len(functions)
    taken, used = dict(plan.copied.banks), firmware_layout(target, [plan])
    held = {bank.name for bank in used.merged().banks}
    before = predict_latency(plan, costs).total
    if options.ram_bytes is not None and ram_bytes(plan) + size > options.ram_bytes:
        return plan
    for bank in target.memories:
        room = rooms.get(bank.name, 0) - taken.get(bank.name, 0)
        shared = bank.name in held or any(at.covers(bank) for at in used.arenas)
        if bank.code_origin is None or size > room or (bank.code_origin != bank.origin and shared):
            continue
        kernels = tuple(each.moved(each.constants_in, bank.name) for each in plan.lowered.kernels)
        made = replace(plan, lowered=replace(plan.lowered, kernels=kernels))
        saved = before - predict_latency(made, costs).total
        if saved < max(1, 0 if options.optimise is Optimise.SPEED else _WORTH * before):
            continue
        copied = replace(
            plan.copied,
            code_in=bank.name,
            code_bytes=size,
            saved=plan.copied.saved + saved,
            before=plan.copied.before or before,
            unit=costs.unit,
        )
        return replace(made, copied=copied)
    return plan


def with_linked_code(plan: Plan, code_bytes: int) -> Plan:
    """The plan with the linked size of its copy of code; without that copy where it was too
    large."""
    copied = plan.copied
    if code_bytes or not copied.code_in:
        return replace(plan, copied=replace(copied, code_bytes=code_bytes))
    kernels = tuple(each.moved(each.constants_in, "") for each in plan.lowered.kernels)
    made = replace(plan, lowered=replace(plan.lowered, kernels=kernels))
    lost = predict_latency(made).total - predict_latency(plan).total
    left = replace(copied, code_in="", code_bytes=0, saved=copied.saved - lost)
    return replace(made, copied=left if left.banks else NOTHING_COPIED)


def choose(
    items: Sequence[Item], rooms: Mapping[str, int], most_bytes: int, bytes_per_cycle: int
) -> Mapping[str, str]:
    """The bank of each operator whose constants are copied: those that save most cycles together.

    The copies take at most `most_bytes` in all, and `rooms` in each bank. Each copy saves a cycle
    for `bytes_per_cycle` bytes, if that is not 0. Among choices that save as much, it is the
    smallest, in the banks named first. It is the best choice within the search's limit of work,
    nearly always proved so. Without CP-SAT constants are taken one after the other, those that save
    most for each byte first.
    """
    sizes = {item.operator: item.size_bytes for item in items}
    saved = {
        (item.operator, bank): item.saved[bank]
        for item in items
        for bank in rooms
        if item.saved[bank] > (item.size_bytes / bytes_per_cycle if bytes_per_cycle else 0)
        and item.size_bytes <= min(rooms[bank], most_bytes)
    }
    if not saved:
        return {}
    first = _one_by_one(saved, sizes, rooms, most_bytes)
    if SOLVER.missing or _each_at_its_best(saved, first):
        return first
    model = cp_model.CpModel()
    taken = {pair: model.new_bool_var("") for pair in saved}
    for operator in sizes:
        model.add_at_most_one(made for (name, _), made in taken.items() if name == operator)
    for bank, room in rooms.items():
        inside = (sizes[name] * made for (name, at), made in taken.items() if at == bank)
        model.add(sum(inside) <= room)
    model.add(sum(sizes[name] * made for (name, _), made in taken.items()) <= most_bytes)
    place = {bank: index for index, bank in enumerate(rooms)}
    weight = (sum(sizes.values()) + 1) * len(rooms)
    model.maximize(
        sum(
            (saved[pair] * weight - sizes[pair[0]] * (place[pair[1]] + 1)) * made
            for pair, made in taken.items()
        )
    )
    solver, status = search.solve(model, Work(_SECONDS), _SECONDS_PER_UNIT)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return first
    return {name: bank for (name, bank), made in taken.items() if solver.value(made)}


def _one_by_one(
    saved: Mapping[tuple[str, str], int],
    sizes: Mapping[str, int],
    rooms: Mapping[str, int],
    most_bytes: int,
) -> dict[str, str]:
    """A bank for each operator's constants: the first that has room, for those that save most for
    each byte first."""
    left, all_left, chosen = dict(rooms), most_bytes, dict[str, str]()
    place = {bank: index for index, bank in enumerate(rooms)}
    order = sorted(saved, key=lambda at: (-saved[at] / max(sizes[at[0]], 1), place[at[1]]))
    for operator, bank in order:
        size = sizes[operator]
        if operator not in chosen and size <= min(left[bank], all_left):
            chosen[operator] = bank
            left[bank] -= size
            all_left -= size
    return chosen


def _each_at_its_best(saved: Mapping[tuple[str, str], int], chosen: Mapping[str, str]) -> bool:
    """Whether no choice saves more: all are copied, to the bank where each saves most."""
    most: dict[str, int] = {}
    for (operator, _), cycles in saved.items():
        most[operator] = max(cycles, most.get(operator, 0))
    return all(
        operator in chosen and saved[operator, chosen[operator]] == cycles
        for operator, cycles in most.items()
    )


def _rooms(
    plan: Plan, target: Board, options: PlanOptions, costs: PredictedCostModel
) -> Mapping[str, int]:
    """Bytes that copies may take in each bank, the quickest first, of those the ones that suit code
    last; none where flash never waits.
    """
    speed = options.optimise is Optimise.SPEED
    try:
        rooms = {
            bank.name: _free(bank, plan, target, speed=speed)
            for bank in copy_banks(target, options, costs)
        }
    except DoesNotFitError:
        return {}
    return {name: room for name, room in rooms.items() if room > 0}


def copy_banks(
    target: Board, options: PlanOptions, costs: PredictedCostModel
) -> tuple[Memory, ...]:
    """The banks that may hold copies, as `_rooms` orders them; none where `options` refuse any."""
    if options.optimise is Optimise.SIZE or not options.copy_constants or costs.stalls is None:
        return ()
    flash, reaches = costs.stalls.constants.fill_cycles, costs.stalls.copies
    speed = options.optimise is Optimise.SPEED
    waits = {name: reach.fill_cycles if reach else 0 for name, reach in reaches.items()}
    banks = [bank for bank in target.memories if waits.get(bank.name, flash) < flash]
    coupled = any(waits.values())
    allowed = [bank for bank in banks if speed or (coupled and not waits[bank.name])]
    return tuple(sorted(allowed, key=lambda bank: (waits[bank.name], bank.code_origin is not None)))


def _free(bank: Memory, plan: Plan, target: Board, *, speed: bool) -> int:
    """Bytes of a bank that the rest of the firmware leaves for copies.

    Raises DoesNotFitError where the firmware does not fit without any.
    """
    layout = firmware_layout(target, [plan])
    arenas = [(part.bank, part.size_bytes) for part in plan.arena.parts] or [
        (layout.arena.name, plan.arena.size_bytes)
    ]
    if any(at.covers(bank) and at.name != bank.name for at in layout.arenas):
        return 0  # the arena lies across its border
    used = [size for name, size in arenas if name == bank.name]
    if layout.data.name == bank.name:
        used.append(firmware_data_bytes(plan))
    most = bank.size_bytes - _RESERVE_BYTES if speed else bank.size_bytes * _SHARE // 16
    sections = SECTION_ALIGNMENT_BYTES * (len(used) + 2)
    return most - sum(used) - sections - layout.merged().guard_bytes(bank)


def _items(plan: Plan, costs: PredictedCostModel, banks: Sequence[str]) -> list[Item]:
    """The constants of each operator that has any; its blocks share them."""
    owners = [op.part_of or op.name for op in plan.graph.ops]
    lowered = plan.lowered
    tagged = _placed(lowered, {name: name for name in owners})
    sizes = copied_bytes(replace(plan, lowered=tagged))
    numbers = [number for number, owner in enumerate(owners) if owner in sizes]
    saved = {owner: dict.fromkeys(banks, 0) for owner in sizes}
    before = {number: costs.cost(lowered, number).count for number in numbers}
    for bank in banks:
        there = _placed(lowered, dict.fromkeys(owners, bank))
        for number in numbers:
            saved[owners[number]][bank] += before[number] - costs.cost(there, number).count
    return [Item(owner, size_bytes, saved[owner]) for owner, size_bytes in sizes.items()]


def _placed(lowered: Lowered, chosen: Mapping[str, str]) -> Lowered:
    """The kernels with their constants in the banks that are named for their operators."""
    kernels = (
        kernel.moved(chosen.get(op.part_of or op.name, ""), kernel.code_in)
        for op, kernel in zip(lowered.graph.ops, lowered.kernels, strict=True)
    )
    return replace(lowered, kernels=tuple(kernels))
