"""The buffers of an arena with the bytes of each that are live from step to step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolchain.ir import Buffer
from toolchain.ir.progress import LiveRun
from toolchain.memory.plan import Plan
from toolchain.memory.problem import memory_problem
from toolchain.report.planned import PlannedBuffer


def planned_buffers(plan: Plan) -> list[PlannedBuffer]:
    """The buffers that are ever live. Tensors that lie in one buffer as views of it are together;
    those for which the plan chose a copy are a buffer of their own.
    """
    problem = memory_problem(plan.lowered, progressive=bool(plan.unsplit_bytes))
    entries: list[PlannedBuffer] = []
    runs = problem.live_runs(plan.schedule.order)
    for buffer, live in zip(problem.buffers, runs, strict=True):
        base = _base(plan, buffer, live)
        if base is not None:
            names = [member.tensor for member in buffer.members]
            entries.append(_entry(names, base, buffer.size_bytes, live))
            continue
        entries += _as_laid(plan, [member.tensor for member in buffer.members])
    return [entry for entry in entries if entry.runs]


def _base(plan: Plan, buffer: Buffer, live: Sequence[LiveRun]) -> int | None:
    """The offset of a buffer; None if the plan laid its tensors otherwise."""
    offsets, lifetimes = plan.arena.offsets, plan.arena.lifetimes
    if not live or any(member.tensor not in offsets for member in buffer.members):
        return None
    bases = {offsets[member.tensor] - member.offset_bytes for member in buffer.members}
    lived = {lifetimes[member.tensor] for member in buffer.members}
    if len(bases) == 1 and lived == {(live[0].step, live[-1].step)}:
        return bases.pop()
    return None


def _as_laid(plan: Plan, names: Sequence[str]) -> Iterator[PlannedBuffer]:
    """Tensors of which the plan copies some: those that live together in one place are an entry."""
    offsets, lifetimes = plan.arena.offsets, plan.arena.lifetimes
    placed = sorted((lifetimes[name], offsets[name], name) for name in names if name in offsets)
    groups: list[tuple[tuple[int, int], int, int, list[str]]] = []
    for lived, begin, name in placed:
        end = begin + plan.graph.tensors[name].size_bytes
        if groups and groups[-1][0] == lived and begin < groups[-1][2]:
            _, first, last, held = groups.pop()
            groups.append((lived, first, max(last, end), [*held, name]))
        else:
            groups.append((lived, begin, end, [name]))
    for (start, stop), begin, end, held in groups:
        whole = (LiveRun(start, 0, end - begin), LiveRun(stop, 0, 0))
        yield _entry(held, begin, end - begin, whole)


def _entry(
    names: Sequence[str], offset: int, size_bytes: int, runs: Sequence[LiveRun]
) -> PlannedBuffer:
    return PlannedBuffer(tuple(names), offset, size_bytes, tuple(runs))
