"""Constants and code in RAM that is read sooner than flash: the start-up copies them there.

Which ones, and to which bank, is a constraint program over the whole network: the cycles that each
operator's constants save by prediction, as far as the banks have room for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from toolchain import search
from toolchain.boards import Board, Memory
from toolchain.codegen import copied_bytes
from toolchain.cost import CostModel
from toolchain.cost.predicted import PredictedCostModel, predicted_model
from toolchain.errors import DoesNotFitError
from toolchain.kernels.code_sizes import sizes_of
from toolchain.memory.bank_layout import SECTION_ALIGNMENT_BYTES, Layout
from toolchain.memory.firmware_size import (
    code_of,
    firmware_data_bytes,
    firmware_layout,
    ram_bytes,
)
from toolchain.memory.plan import NOTHING_COPIED, Copied, Plan
from toolchain.ops.lowering import Lowered
from toolchain.ops.moves import moves
from toolchain.packages import SOLVER, lazy
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.report.latency import predict_latency
from toolchain.search import Work

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
else:
    cp_model = lazy("ortools.sat.python.cp_model", SOLVER)

_SHARE = 12
"""Sixteenths of a tightly coupled bank that may be full; the rest is the user's."""
_SPARE_SHARE = 2
"""The part of what a plan leaves of another bank that copies may take: a half."""
_RESERVE_BYTES = 1024
"""Left in a bank with Optimise.SPEED: the size of data is an estimate."""
_WORTH = 0.01
"""The least share of the time to save; copies that save less are not made."""
_BYTES_PER_CYCLE = 16
"""Bytes for which a copy must save a cycle in every inference. A line of 32 bytes that is read once
waits for more than two."""
_BRANCH_BYTES, _BESIDE_BYTES = 16, 64
"""Bytes of a call of a function that stays in flash, and those to align a copy of code."""
_SECONDS = 0.5
_SECONDS_PER_UNIT = 1.0
"""Seconds that one unit of CP-SAT's deterministic time takes."""


@dataclass(frozen=True)
class Item:
    """The constants of one operator. `saved`: cycles of an inference, by bank."""

    operator: str
    size_bytes: int
    saved: Mapping[str, int]


@dataclass(frozen=True)
class _Chosen:
    """Banks of the constants of operators, the bank of the code or '', and what is saved."""

    banks: Mapping[str, str]
    code_in: str = ""
    code_bytes: int = 0
    saved: int = 0


class Copies:
    """The copies of constants and code that a plan may have, for every limit of RAM.

    By default they go to all banks that may hold copies and are read sooner than flash: up to three
    quarters of those that are tightly coupled (they never wait, and other RAM does), and half of
    what the plan leaves of others, if that saves a hundredth of the time or more; with
    Optimise.SPEED to all of them. A firmware that does not fit gets no copies.

    Constants alone are weighed against code with constants in what it leaves: so more room is never
    slower.
    """

    def __init__(self, plan: Plan, target: Board, options: PlanOptions) -> None:
        """`options`: their limit of RAM is not read."""
        self.plan = plan
        self._target = target
        self._speed = options.optimise is Optimise.SPEED
        self._costs = predicted_model(target)
        self._rooms = _rooms(plan, target, options, self._costs)
        self._owners = [op.part_of or op.name for op in plan.graph.ops]
        self._counts: dict[tuple[int, str, str], int] = {}
        self._kept: dict[int | None, _Chosen] = {}

    @cached_property
    def _before(self) -> int:
        return predict_latency(self.plan, self._costs).total

    @cached_property
    def _least(self) -> float:
        """Cycles that copies save, or there are none."""
        return 1 if self._speed else max(1, _WORTH * self._before)

    def _count(self, number: int, bank: str, code_in: str) -> int:
        """The cost of an operator with its constants and its code in these banks."""
        key = number, bank, code_in
        if key not in self._counts:
            lowered = self.plan.lowered
            moved = lowered.with_kernel(number, lowered.kernels[number].moved(bank, code_in))
            self._counts[key] = self._costs.cost(moved, number).count
        return self._counts[key]

    @cached_property
    def _computed(self) -> tuple[int, ...]:
        """The operators with kernels."""
        graph, arena = self.plan.graph, self.plan.arena
        every = enumerate(graph.ops)
        return tuple(number for number, op in every if moves(op, graph, arena) is None)

    @cached_property
    def _items(self) -> list[Item]:
        """The constants of each operator that has any; its blocks share them."""
        tagged = _placed(self.plan.lowered, {name: name for name in self._owners})
        sizes = copied_bytes(replace(self.plan, lowered=tagged))
        saved = {owner: dict.fromkeys(self._rooms, 0) for owner in sizes}
        for number, owner in enumerate(self._owners):
            if owner in sizes:
                flash = self._count(number, "", "")
                for bank in self._rooms:
                    saved[owner][bank] += flash - self._count(number, bank, "")
        return [Item(owner, size_bytes, saved[owner]) for owner, size_bytes in sizes.items()]

    @cached_property
    def _code(self) -> tuple[str, int]:
        """The first bank that has room for the code of all kernels, if that alone saves enough, and
        the bytes of that; ('', 0) where there is none.
        """
        size, used = code_copy_bytes(self.plan), firmware_layout(self._target, [self.plan])
        held = {bank.name for bank in used.merged().banks}
        for bank in self._target.memories:
            shared = bank.name in held or any(at.covers(bank) for at in used.arenas)
            if bank.code_origin is None or not 0 < size <= self._rooms.get(bank.name, 0):
                continue
            if not (shared and bank.code_origin != bank.origin):
                saved = sum(
                    self._count(number, "", "") - self._count(number, "", bank.name)
                    for number in self._computed
                )
                return (bank.name, size) if saved >= self._least else ("", 0)
        return "", 0

    def _chosen(self, ram_bytes: int | None) -> _Chosen:
        if ram_bytes not in self._kept:
            self._kept[ram_bytes] = self._choose(ram_bytes) if self._rooms else _Chosen({})
        return self._kept[ram_bytes]

    def _choose(self, most_ram_bytes: int | None) -> _Chosen:
        most, best = sum(self._rooms.values()), _Chosen({})
        if most_ram_bytes is not None:
            most = min(most, most_ram_bytes - ram_bytes(self.plan))
        for home, size in dict.fromkeys([self._code, ("", 0)]):
            if size > most or (not home and self._most_saved(most) < best.saved):
                continue
            left = dict(self._rooms)
            if home:
                bank = next(one for one in self._target.memories if one.name == home)
                left[home] = left[home] - size if bank.code_origin == bank.origin else 0
            worth = 0 if self._speed else _BYTES_PER_CYCLE
            banks = choose(self._items, left, most - size, worth)
            saved = sum(
                self._count(number, "", "")
                - self._count(number, banks.get(self._owners[number], ""), home)
                for number in self._computed
                if home or self._owners[number] in banks
            )
            if saved >= self._least and saved >= best.saved + bool(home):
                best = _Chosen(banks, home, size, saved)
        return best

    def _most_saved(self, most: int) -> int:
        """Copies of constants save no more, each to the bank where it saves most, if there is room
        for it alone."""
        found, rooms = 0, self._rooms.items()
        for item in self._items:
            fitting = (at for at, room in rooms if item.size_bytes <= min(room, most))
            found += max((0, *(item.saved[at] for at in fitting)))
        return found

    def total(self, ram_bytes: int | None, costs: CostModel) -> int:
        """Cost of an inference with the copies that are made where all RAM is so much (None: any
        RAM), by these costs."""
        if costs.identity != self._costs.identity:
            return predict_latency(self.made(ram_bytes), costs).total
        return self._before - self._chosen(ram_bytes).saved

    def made(self, ram_bytes: int | None) -> Plan:
        """The plan with the copies that are made where all RAM is so much."""
        chosen = self._chosen(ram_bytes)
        if not chosen.saved:
            return self.plan
        lowered = _placed(self.plan.lowered, chosen.banks, chosen.code_in)
        made = replace(self.plan, lowered=lowered)
        taken = copied_bytes(made)
        banks = tuple((bank, taken[bank]) for bank in self._rooms if bank in taken)
        code = chosen.code_in, chosen.code_bytes
        copied = Copied(
            banks, len(chosen.banks), *code, chosen.saved, self._before, self._costs.unit
        )
        return replace(made, copied=copied)


def code_copy_bytes(plan: Plan) -> int:
    """Bytes that a copy of the code of a plan's kernels takes: those of the functions, and of what
    lets them call others that stay in flash.
    """
    functions = code_of(plan).functions
    held = [name for name in functions if sizes_of(plan.lowered.core).is_of_kernels(name)]
    branches = _BRANCH_BYTES * (len(functions) - len(held))
    return sum(functions[name] for name in held) + branches + _BESIDE_BYTES if held else 0


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
    speed, coupled = options.optimise is Optimise.SPEED, _coupled(costs)
    banks = copy_banks(target, options, costs)
    if not banks:
        return {}
    try:
        layout = firmware_layout(target, [plan])
    except DoesNotFitError:
        return {}
    rooms = {
        bank.name: _free(bank, plan, layout, speed=speed, coupled=bank.name in coupled)
        for bank in banks
    }
    return {name: room for name, room in rooms.items() if room > 0}


def copy_banks(
    target: Board, options: PlanOptions, costs: PredictedCostModel
) -> tuple[Memory, ...]:
    """The banks that may hold copies, as `_rooms` orders them; none where `options` refuse any."""
    if options.optimise is Optimise.SIZE or not options.copy_constants or costs.stalls is None:
        return ()
    flash, waits = costs.stalls.constants.fill_cycles, _waits(costs)
    banks = [bank for bank in target.memories if waits.get(bank.name, flash) < flash]
    return tuple(sorted(banks, key=lambda bank: (waits[bank.name], bank.code_origin is not None)))


def most_copied(target: Board, options: PlanOptions, costs: PredictedCostModel) -> int:
    """Bytes that the copies in one bank take at most, of any plan."""
    speed, coupled = options.optimise is Optimise.SPEED, _coupled(costs)
    least = 2 * SECTION_ALIGNMENT_BYTES
    banks = copy_banks(target, options, costs)
    sizes = (_left(bank, least, speed=speed, coupled=bank.name in coupled) for bank in banks)
    return max(sizes, default=0)


def _coupled(costs: PredictedCostModel) -> frozenset[str]:
    """The banks that never wait, where others do."""
    waits = _waits(costs)
    return frozenset(name for name, cycles in waits.items() if not cycles and any(waits.values()))


def _waits(costs: PredictedCostModel) -> Mapping[str, int]:
    """Cycles of stall until a line is there, of each bank that may hold copies."""
    reaches = {} if costs.stalls is None else costs.stalls.copies
    return {name: reach.fill_cycles if reach else 0 for name, reach in reaches.items()}


def _free(bank: Memory, plan: Plan, layout: Layout, *, speed: bool, coupled: bool) -> int:
    """Bytes of a bank that the rest of the firmware leaves for copies."""
    arenas = [(part.bank, part.size_bytes) for part in plan.arena.parts] or [
        (layout.arena.name, plan.arena.size_bytes)
    ]
    if any(at.covers(bank) and at.name != bank.name for at in layout.arenas):
        return 0  # the arena lies across its border
    used = [size for name, size in arenas if name == bank.name]
    if layout.data.name == bank.name:
        used.append(firmware_data_bytes(plan))
    taken = sum(used) + SECTION_ALIGNMENT_BYTES * (len(used) + 2)
    taken += layout.merged().guard_bytes(bank)
    return _left(bank, taken, speed=speed, coupled=coupled)


def _left(bank: Memory, taken: int, *, speed: bool, coupled: bool) -> int:
    """Bytes of a bank for copies where the rest of the firmware takes so many."""
    if speed:
        return bank.size_bytes - _RESERVE_BYTES - taken
    if coupled:
        return bank.size_bytes * _SHARE // 16 - taken
    return (bank.size_bytes - taken) // _SPARE_SHARE


def _placed(lowered: Lowered, chosen: Mapping[str, str], code_in: str = "") -> Lowered:
    """The kernels with their constants in the banks that are named for their operators, and with
    their code in one.
    """
    kernels = (
        kernel.moved(chosen.get(op.part_of or op.name, ""), code_in)
        for op, kernel in zip(lowered.graph.ops, lowered.kernels, strict=True)
    )
    return replace(lowered, kernels=tuple(kernels))
