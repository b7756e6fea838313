"""The plan whose kernels are the quickest that flash and arena allow."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from toolchain.boards import Board
from toolchain.codegen import constant_bytes
from toolchain.cost import CostModel
from toolchain.errors import DoesNotFitError
from toolchain.memory.firmware_size import estimated_need, firmware_data_bytes
from toolchain.memory.plan import NEARLY_FREE, NOTHING_SPENT, FlashSpent, Plan
from toolchain.ops.lowering import Forms, lower
from toolchain.planning.forms import placed, quick_forms
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.planning.room import spend_room
from toolchain.report.latency import predict_latency

Finish = Callable[[Plan, PlanOptions], Plan]
"""From an unsplit plan to one that is split as requested, and uses the room that it has."""


def quickest(
    whole: Plan, target: Board, options: PlanOptions, costs: CostModel, finish: Finish
) -> Plan:
    """The unsplit plan `whole`, finished, with the forms of kernels that save most time.

    First they are chosen within the flash alone (`planning.forms`), and placed. If the arena is
    then larger than it may be, or splits that make it smaller cost more than is nearly free, that
    is compared with `whole`, finished with those forms for which its own arena has room. Raises
    DoesNotFitError where the flash that is asked for does not hold the firmware without any.
    """
    _check_flash(whole, options)
    forms: Forms = {}
    if options.optimise is not Optimise.SIZE and not target.is_host:
        forms = quick_forms(whole.lowered, costs, _spare(whole, target, options))
    if not forms:
        return finish(whole, options)
    quick, most_bytes = placed(whole, forms, target, options), _most_bytes(whole, target, options)
    found = []
    with suppress(DoesNotFitError):
        made = finish(quick, options)
        if made.arena.size_bytes <= most_bytes:
            dear = made.slowdown > NEARLY_FREE and options.splits_nearly_free
            if not dear and (made.graph is quick.graph or options.ram_bytes is None):
                return made
            found.append(made)
    asked = options.unsplit if found and options.splits_nearly_free else options
    try:
        found.append(finish(whole, asked))
    except DoesNotFitError:
        if not found:
            raise
    best = min(found, key=lambda plan: predict_latency(plan, costs).total)
    return best if best is found[0] or asked is options else finish(whole, options)


def spend_flash(plan: Plan, target: Board, options: PlanOptions, costs: CostModel) -> Plan:
    """The plan with quicker kernels in the room that the arena and the flash have left.

    Raises DoesNotFitError where the flash that is asked for does not hold it.
    """
    spare = _spare(plan, target, options)
    made = spend_room(plan, costs, spare)
    while _spare(made, target, options) < 0 < spare:  # constants that are larger than estimated
        spare += _spare(made, target, options)
        made = spend_room(plan, costs, spare)
    _check_flash(made, options)
    return replace(made, spent=_spent(made, costs))


def _spent(plan: Plan, costs: CostModel) -> FlashSpent:
    """What forms of kernels take and save that need more flash."""
    lean = lower(plan.graph, plan.lowered.core, plan.lowered.preference)
    kernels, named, saved = list(lean.kernels), set(), 0
    for number, (first, taken) in enumerate(zip(kernels, plan.lowered.kernels, strict=True)):
        if taken.name not in {form.name for form in first.forms()}:
            kernels[number] = taken
            continue
        op = plan.graph.ops[number]
        named.add(op.part_of or op.name)
        saved += costs.cost(lean, number).count - costs.cost(plan.lowered, number).count
    if not named:
        return NOTHING_SPENT
    lean = replace(lean, kernels=tuple(kernels))
    more = plan.weight_bytes - constant_bytes(replace(plan, lowered=lean))
    before = predict_latency(plan, costs).total + saved
    return FlashSpent(len(named), more, saved, before, costs.unit)


def _spare(plan: Plan, target: Board, options: PlanOptions) -> int:
    """Flash that is left for quicker kernels."""
    if options.optimise is Optimise.SIZE:
        return 0
    return options.flash_of(target) - estimated_need(plan).flash_bytes


def _most_bytes(whole: Plan, target: Board, options: PlanOptions) -> int:
    """What the arena may take with quicker kernels."""
    if options.optimise is Optimise.SPEED or options.ram_bytes is not None:
        return target.ram_bytes - firmware_data_bytes(whole)
    return whole.arena.size_bytes


def _check_flash(plan: Plan, options: PlanOptions) -> None:
    need = estimated_need(plan)
    if options.flash_bytes is not None and need.flash_bytes > options.flash_bytes:
        raise DoesNotFitError(
            f"{plan.graph.name} does not fit {options.flash_bytes:,} bytes of flash on "
            f"{plan.board}: it needs at least {need.flash_bytes:,} bytes, {plan.weight_bytes:,} of "
            f"constants and about {need.code_bytes:,} of code.\n"
            f"What could help: --flash {-(-need.flash_bytes // 1024)}K, int4 weights, fewer "
            "channels."
        )
