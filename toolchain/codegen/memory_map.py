"""The table of the arena at the top of the generated source."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.ir import Op
from toolchain.memory.plan import Plan


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
    The blocks of one operator share a row, from their lowest to their highest byte.
    """
    arena, graph = plan.arena, plan.graph
    step_of = {graph.ops[op].name: step for step, op in enumerate(plan.schedule.order)}
    sizes = {op.name: op.scratch_bytes for op in plan.operators}
    scratch_of = {graph.ops[op].name: graph.ops[op] for op in plan.schedule.order}
    whole = frozenset((*graph.inputs, *graph.outputs))
    found: list[Row] = []
    shared: dict[str, list[Row]] = {}

    def add(op: Op | None, offset: int, size_bytes: int, life: tuple[int, int], what: str) -> None:
        first = bisect_left(call_steps, life[0])
        last = max(first, bisect_left(call_steps, life[1]) - 1)
        if op is None or not op.part_of:
            found.append(Row(offset, size_bytes, first, last, what))
        else:
            name = f"scratch of {op.part_of}" if what.startswith("scratch") else op.part_of
            shared.setdefault(name, []).append(Row(offset, size_bytes, first, last, what))

    for name, offset in arena.offsets.items():
        maker = None if name in whole or name not in graph.producers else graph.producers[name]
        op = None if maker is None else graph.ops[maker]
        add(op, offset, graph.tensors[name].size_bytes, arena.lifetimes[name], name)
    for name, offset in arena.scratch_offsets.items():
        life = (step_of[name], step_of[name] + 1)
        add(scratch_of[name], offset, sizes[name], life, f"scratch of {name}")
    return tuple(
        sorted(
            (*found, *(_together(name, rows) for name, rows in shared.items())),
            key=lambda r: (r.first, r.offset, r.last, r.what),
        )
    )


def _together(name: str, rows: Sequence[Row]) -> Row:
    offset = min(row.offset for row in rows)
    return Row(
        offset,
        max(row.offset + row.size_bytes for row in rows) - offset,
        min(row.first for row in rows),
        max(row.last for row in rows),
        f"{name}, in blocks",
    )
