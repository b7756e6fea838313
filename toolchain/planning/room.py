"""Arenas with room left: kernels that are quicker with more scratch get it where it is free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType

from toolchain.ir import Op
from toolchain.ir.arena import SCRATCH_ALIGNMENT_BYTES
from toolchain.memory.plan import Plan, planned_ops
from toolchain.ops.kernel import Kernel

Span = tuple[int, int]


def spend_room(plan: Plan) -> Plan:
    """The plan with roomier kernels whose scratch fits beside what is live while they run.

    The arena, the order and the place of every tensor stay. An arena that is spread over banks is
    left as it is.
    """
    if plan.arena.parts:
        return plan
    kernels, scratch = list(plan.lowered.kernels), dict(plan.arena.scratch_offsets)
    steps = list(plan.step_bytes)
    for step, index in enumerate(plan.schedule.order):
        name = plan.graph.ops[index].name
        live = sorted(_live(plan, step))
        for kernel in kernels[index].roomier():
            at = _gap(live, kernel.scratch_bytes, plan.arena.size_bytes)
            if at is not None and _safe(plan, plan.graph.ops[index], kernel):
                steps[step] += kernel.scratch_bytes - kernels[index].scratch_bytes
                kernels[index], scratch[name] = kernel, at
                break
    lowered = replace(plan.lowered, kernels=tuple(kernels))
    arena = replace(plan.arena, scratch_offsets=MappingProxyType(scratch))
    return replace(
        plan,
        lowered=lowered,
        arena=arena,
        operators=planned_ops(lowered, arena),
        step_bytes=tuple(steps),
    )


def _safe(plan: Plan, op: Op, kernel: Kernel) -> bool:
    """Whether the outputs lie over inputs only as the kernel allows."""
    for i, source in enumerate(op.inputs):
        for j, target in enumerate(op.outputs):
            if source not in plan.arena.offsets or not _meet(plan, source, target):
                continue
            distance = plan.arena.offsets[source] - plan.arena.offsets[target]
            if not any(
                distance == o.lead_bytes if o.exact else distance >= o.lead_bytes
                for o in kernel.overlaps
                if (o.input, o.output) == (i, j)
            ):
                return False
    return True


def _meet(plan: Plan, one: str, other: str) -> bool:
    (start, end), (begin, stop) = _span(plan, one), _span(plan, other)
    return max(start, begin) < min(end, stop)


def _span(plan: Plan, name: str) -> Span:
    """The bytes from a tensor's first to its last."""
    tensor, pitch = plan.graph.tensors[name], plan.arena.pitches.get(name)
    size = tensor.size_bytes
    if pitch is not None:
        size += (tensor.shape[1] - 1) * (pitch - size // tensor.shape[1])
    return plan.arena.offsets[name], plan.arena.offsets[name] + size


def _live(plan: Plan, step: int) -> Iterator[Span]:
    """The bytes of all tensors that are live at a step."""
    for name, (start, end) in plan.arena.lifetimes.items():
        if start <= step < end:
            yield _span(plan, name)


def _gap(live: list[Span], size_bytes: int, arena_bytes: int) -> int | None:
    """The lowest place for scratch among spans that are sorted."""
    at = 0
    for start, end in live:
        if start - at >= size_bytes:
            return at
        at = max(at, -(-end // SCRATCH_ALIGNMENT_BYTES) * SCRATCH_ALIGNMENT_BYTES)
    return at if arena_bytes - at >= size_bytes else None
