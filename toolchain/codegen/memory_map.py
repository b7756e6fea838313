"""The table of the arena at the top of the generated source."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.ir import Plan


@dataclass(frozen=True)
class Row:
    """Bytes [offset, offset + size) hold `what` from call `first` to call `last`, both included."""

    offset: int
    size_bytes: int
    first: int
    last: int
    what: str


def memory_map(plan: Plan, call_steps: Sequence[int]) -> tuple[Row, ...]:
    """One row per tensor in the arena and per operator with scratch, by birth, then offset.

    `call_steps[k]` is the step of the schedule that runs as the k-th call (views run nothing).
    """
    arena = plan.arena
    step_of = {plan.graph.ops[op].name: step for step, op in enumerate(plan.schedule.order)}
    sizes = {op.name: op.scratch_bytes for op in plan.operators}

    def row(offset: int, size_bytes: int, start: int, end: int, what: str) -> Row:
        first = bisect_left(call_steps, start)
        return Row(offset, size_bytes, first, max(first, bisect_left(call_steps, end) - 1), what)

    found = [
        row(offset, plan.graph.tensors[name].size_bytes, *arena.lifetimes[name], name)
        for name, offset in arena.offsets.items()
    ]
    found += [
        row(offset, sizes[name], step_of[name], step_of[name] + 1, f"scratch of {name}")
        for name, offset in arena.scratch_offsets.items()
    ]
    return tuple(sorted(found, key=lambda r: (r.first, r.offset, r.last, r.what)))
