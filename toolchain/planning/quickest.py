"""The plan whose kernels are the quickest that flash and arena allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from toolchain.boards import Board
from toolchain.codegen import constant_bytes
from toolchain.cost import CostModel
from toolchain.errors import DoesNotFitError, Overflow
from toolchain.memory.firmware_size import estimated_need, firmware_data_bytes
from toolchain.memory.plan import NOTHING_SPENT, FlashSpent, Plan
from toolchain.ops.lowering import NO_FORMS, Forms, lower
from toolchain.planning.forms import apart_bytes, placed, quick_forms
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.planning.room import spend_room
from toolchain.report.latency import predict_latency

Finish = Callable[[Plan, PlanOptions], Plan]
"""From an unsplit plan to one that is split as requested, and uses the room that it has."""
_CLOSE = 1.05
"""Splits that cost no more are not compared with other forms."""
_SEARCHES = 3
"""The work of a search that is asked for is divided by so many."""
_LESS = (0, 256, 1024)
"""Bytes that placing may take beyond what is live while an operator runs; tried in turn."""
_ORDERS = 3
"""How often other orders are tried where the peak is low enough, and the arena is not."""
_TRIES = 24
"""Operators whose forms are placed in turn, to see for which the arena need not grow."""


def quickest(
    whole: Plan, target: Board, options: PlanOptions, costs: CostModel, finish: Finish
) -> Plan:
    """The unsplit plan `whole`, finished, with the forms of kernels that save most time.

    First they are chosen within the flash alone (`planning.forms`), and placed. If the arena is
    then larger than it may be, the network is split until it is not, with the same forms and with
    others of less scratch; the quickest of these and of `whole` itself, finished with those forms
    for which it leaves room, is taken. Raises DoesNotFitError where the flash that is asked for
    does not hold the firmware without any.
    """
    _check_flash(whole, options)
    if options.optimise is Optimise.SIZE or target.is_host:
        return finish(whole, options)
    most_bytes = _most_bytes(whole, target, options)
    best: Plan | None = None
    least = math.inf
    for quick in _quick(whole, target, options, costs, most_bytes):
        ideal = predict_latency(quick, costs).total
        if least <= ideal:
            break
        with suppress(DoesNotFitError):
            made = finish(quick, _searching_less(options))
            total = predict_latency(made, costs).total
            if made.arena.size_bytes <= most_bytes and total < least:
                best, least = made, total
            if best is not None and least <= _CLOSE * ideal:
                return best
    try:
        made = finish(whole, options)
    except DoesNotFitError:
        if best is None:
            raise
        return best
    return made if best is None or predict_latency(made, costs).total < least else best


def _quick(
    whole: Plan, target: Board, options: PlanOptions, costs: CostModel, most_bytes: int
) -> Iterator[Plan]:
    """The unsplit plan with those forms that the flash holds; with those whose scratch takes at
    most half of the arena; and with those for which the arena need not be split.
    """
    spare = _spare(whole, target, options)
    live = [0] * len(whole.graph.ops)
    for index, live_bytes in zip(whole.schedule.order, whole.step_bytes, strict=True):
        live[index] = live_bytes - apart_bytes(whole.lowered.kernels[index])

    def forms(limits: Iterable[int]) -> Forms:
        return quick_forms(whole.lowered, costs, spare, tuple(limits))

    before = NO_FORMS
    for part in (1, 2):
        found = forms(most_bytes // part for _ in live)
        if found != before:
            yield placed(whole, found, target, options)
        before = found
    found, *smaller = (forms(most_bytes - less - size for size in live) for less in _LESS)
    quick, kept, orders = placed(whole, found, target, options), NO_FORMS, _ORDERS
    names = _slowest(whole, found, costs)[:_TRIES] if quick.arena.size_bytes > most_bytes else []
    for name in names:
        for title in dict.fromkeys(each[name] for each in (found, *smaller) if name in each):
            trial = placed(whole, {**kept, name: title}, target, options)
            if trial.schedule.peak_bytes <= most_bytes < trial.arena.size_bytes and orders:
                orders -= 1
                trial = placed(whole, {**kept, name: title}, target, options, others=True)
            if trial.arena.size_bytes <= most_bytes:
                quick, kept = trial, {**kept, name: title}
                break
    if found and quick.arena.size_bytes <= most_bytes:
        yield quick


def _slowest(whole: Plan, names: Iterable[str], costs: CostModel) -> list[str]:
    """Operators by the time that they take, the slowest first."""
    counts = {
        op.name: costs.cost(whole.lowered, index).count for index, op in enumerate(whole.graph.ops)
    }
    return sorted(names, key=lambda name: -counts[name])


def spend_flash(
    plan: Plan, whole: Plan, target: Board, options: PlanOptions, costs: CostModel
) -> Plan:
    """The plan with quicker kernels in the room that the arena and the flash have left. `whole` is
    the unsplit plan without any.

    Raises DoesNotFitError where the flash that is asked for does not hold it.
    """
    spare, most_bytes = _spare(plan, target, options), 0
    if options.optimise is not Optimise.SIZE and (
        options.max_slowdown is None or options.ram_bytes
    ):
        most_bytes = _most_bytes(whole, target, options)
    made = spend_room(plan, costs, spare, most_bytes)
    while _spare(made, target, options) < 0 < spare:  # constants that are larger than estimated
        spare += _spare(made, target, options)
        made = spend_room(plan, costs, spare, most_bytes)
    _check_flash(made, options)
    return replace(made, spent=flash_spent(made, costs))


def _spare(plan: Plan, target: Board, options: PlanOptions) -> int:
    """Flash that is left for quicker kernels."""
    if options.optimise is Optimise.SIZE:
        return 0
    return options.flash_of(target) - estimated_need(plan).flash_bytes


def _most_bytes(whole: Plan, target: Board, options: PlanOptions) -> int:
    """What the arena may take with quicker kernels."""
    data_bytes = firmware_data_bytes(whole)
    if options.ram_bytes is not None:
        return options.ram_bytes - data_bytes
    if options.optimise is Optimise.SPEED:
        return target.ram_bytes - data_bytes
    return whole.arena.size_bytes


def _searching_less(options: PlanOptions) -> PlanOptions:
    """For one of several searches for splits."""
    if not options.splits:
        return options
    return replace(options, split_seconds=options.search_seconds / _SEARCHES)


def flash_spent(plan: Plan, costs: CostModel) -> FlashSpent:
    """What forms of kernels take and save that need more flash, beside those that need none and
    have the same room.
    """
    lean = lower(plan.graph, plan.lowered.core, plan.lowered.preference)
    kernels, taken_in = list(lean.kernels), []
    for number, (first, taken) in enumerate(zip(kernels, plan.lowered.kernels, strict=True)):
        if taken.name in {form.name for form in first.forms()}:
            taken_in.append(number)
        else:
            kernels[number] = taken
    if not taken_in:
        return NOTHING_SPENT
    without = replace(plan, lowered=replace(lean, kernels=tuple(kernels)))
    more = plan.weight_bytes - constant_bytes(without)
    roomy = spend_room(without, costs, 0)
    saved = sum(
        costs.cost(roomy.lowered, number).count - costs.cost(plan.lowered, number).count
        for number in taken_in
    )
    named = {plan.graph.ops[number].part_of or plan.graph.ops[number].name for number in taken_in}
    before = predict_latency(plan, costs).total + saved
    return FlashSpent(len(named), more, saved, before, costs.unit)


def _check_flash(plan: Plan, options: PlanOptions) -> None:
    need = estimated_need(plan)
    if options.flash_bytes is not None and need.flash_bytes > options.flash_bytes:
        raise DoesNotFitError(
            f"{plan.graph.name} does not fit {options.flash_bytes:,} bytes of flash on "
            f"{plan.board}: it needs at least {need.flash_bytes:,} bytes, {plan.weight_bytes:,} of "
            f"constants and about {need.code_bytes:,} of code.",
            remedies=[f"--flash {-(-need.flash_bytes // 1024)}K", "int4 weights", "fewer channels"],
            overflows=[Overflow("flash", need.flash_bytes, options.flash_bytes, is_flash=True)],
        )
