"""Flash spent on quicker kernels: how much there is, and what a plan spends and saves by it."""

from __future__ import annotations

from dataclasses import replace

from toolchain.codegen import constant_bytes
from toolchain.cost import CostModel
from toolchain.errors import DoesNotFitError, Overflow
from toolchain.memory.firmware_size import estimated_need
from toolchain.memory.plan import NOTHING_SPENT, FlashSpent, Plan
from toolchain.planning.options import PlanOptions
from toolchain.planning.room import Forms, Room
from toolchain.report.latency import predict_latency


def flash_spent(plan: Plan, costs: CostModel, forms: Forms) -> FlashSpent:
    """Flash and time that forms of kernels take and save, beside those that need no more flash and
    have the same room.
    """
    lean = forms.lean(plan.graph)
    kernels, taken_in = list(lean.kernels), []
    for number, (first, taken) in enumerate(zip(kernels, plan.lowered.kernels, strict=True)):
        if taken.name in {form.name for form in first.flash_forms}:
            taken_in.append(number)
        else:
            kernels[number] = taken
    if not taken_in:
        return NOTHING_SPENT
    without = replace(plan, lowered=replace(lean, kernels=tuple(kernels)))
    more = plan.weight_bytes - constant_bytes(without)
    roomy = Room(without, forms, frozenset(taken_in)).lowered(plan.arena.size_bytes)
    saved = sum(
        costs.cost(roomy, number).count - costs.cost(plan.lowered, number).count
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
