"""Flash spent on quicker kernels: how much there is, and what a plan spends and saves by it."""

from __future__ import annotations

from dataclasses import replace

from toolchain.boards import Board
from toolchain.codegen import constant_bytes
from toolchain.cost import CostModel
from toolchain.errors import DoesNotFitError, Overflow
from toolchain.memory.firmware_size import estimated_need, firmware_data_bytes
from toolchain.memory.plan import NOTHING_SPENT, FlashSpent, Plan
from toolchain.ops.lowering import lower
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.planning.room import spend_room
from toolchain.report.latency import predict_latency


def spend_flash(
    plan: Plan, whole: Plan, target: Board, options: PlanOptions, costs: CostModel
) -> Plan:
    """The plan with quicker kernels in the room that the arena and the flash have left. `whole` is
    the unsplit plan without any.

    Raises DoesNotFitError where the flash that is asked for does not hold it.
    """
    spare, most_bytes = spare_bytes(plan, target, options), 0
    if options.optimise is not Optimise.SIZE and (
        options.max_slowdown is None or options.ram_bytes
    ):
        most_bytes = most_arena_bytes(whole, target, options)
    made = spend_room(plan, costs, spare, most_bytes)
    while (
        spare_bytes(made, target, options) < 0 < spare
    ):  # constants that are larger than estimated
        spare += spare_bytes(made, target, options)
        made = spend_room(plan, costs, spare, most_bytes)
    check_flash(made, options)
    return replace(made, spent=flash_spent(made, costs))


def spare_bytes(plan: Plan, target: Board, options: PlanOptions) -> int:
    """Flash that is left for quicker kernels."""
    if options.optimise is Optimise.SIZE:
        return 0
    return options.flash_of(target) - estimated_need(plan).flash_bytes


def most_arena_bytes(whole: Plan, target: Board, options: PlanOptions) -> int:
    """The most bytes that the arena may take with quicker kernels."""
    data_bytes = firmware_data_bytes(whole)
    if options.ram_bytes is not None:
        return options.ram_bytes - data_bytes
    if options.optimise is Optimise.SPEED:
        return target.ram_bytes - data_bytes
    return whole.arena.size_bytes


def flash_spent(plan: Plan, costs: CostModel) -> FlashSpent:
    """Flash and time of the kernels' forms that need more flash, against forms that need no more
    and have equal room.
    """
    lean = lower(plan.graph, plan.lowered.core, plan.lowered.preference)
    kernels, taken_in = list(lean.kernels), []
    for number, (first, taken) in enumerate(zip(kernels, plan.lowered.kernels, strict=True)):
        if taken.name in {form.name for form in first.more_flash()}:
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


def check_flash(plan: Plan, options: PlanOptions) -> None:
    """Raise DoesNotFitError where the plan, by estimate, needs more flash than `options` allow."""
    need = estimated_need(plan)
    if options.flash_bytes is not None and need.flash_bytes > options.flash_bytes:
        raise DoesNotFitError(
            f"{plan.graph.name} does not fit {options.flash_bytes:,} bytes of flash on "
            f"{plan.board}: it needs at least {need.flash_bytes:,} bytes, {plan.weight_bytes:,} of "
            f"constants and about {need.code_bytes:,} of code.",
            remedies=[f"--flash {-(-need.flash_bytes // 1024)}K", "int4 weights", "fewer channels"],
            overflows=[Overflow("flash", need.flash_bytes, options.flash_bytes, is_flash=True)],
        )
