"""The table of the arena at the top of the generated source."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolchain.ir import Graph
from toolchain.ir.names import Names
from toolchain.memory.plan import Plan
from toolchain.ops import spec_of
from toolchain.ops.moves import moves

VIEW, PART, STRIDED, STATE = "view", "part", "strided", "state"
OVER, TURNS = "over", "turns"


@dataclass(frozen=True)
class Reason:
    """Why a tensor may share bytes with another that is needed at the same time.

    `how`     VIEW: it is the same bytes; PART: a part of them; STRIDED: a part of each line of that
              image; STATE: the value that a state is to have in the next run; OVER: the kernel
              that makes it reads each byte of the other before it writes there; TURNS: no byte is
              needed for both at the same time.
    `other`   the name of the other's row.
    `below`   of OVER, how many bytes it begins below the other, and `call`, which call makes it;
              None where that is not the same for all blocks.
    """

    how: str
    other: str
    below: int | None = None
    call: int | None = None


@dataclass(frozen=True)
class Row:
    """Bytes [offset, offset + size) hold `what` from call `first` to call `last`, both included."""

    offset: int
    size_bytes: int
    first: int
    last: int
    what: str
    life: tuple[int, int]
    in_blocks: bool = False
    reasons: tuple[Reason, ...] = ()

    def meets(self, other: Row) -> bool:
        """Whether the two share a byte while both are needed."""
        return (
            self.offset < other.offset + other.size_bytes
            and other.offset < self.offset + self.size_bytes
            and max(self.life[0], other.life[0]) < min(self.life[1], other.life[1])
        )


def memory_map(plan: Plan, call_steps: Sequence[int]) -> tuple[Row, ...]:
    """One row per tensor in the arena and per operator with scratch, by first call, then offset.

    `call_steps[k]` is the step of the schedule whose operator is the k-th call; views have no call.
    The blocks of one operator share a row, from their lowest to their highest byte.
    """
    arena, graph = plan.arena, plan.graph
    step_of = {graph.ops[op].name: step for step, op in enumerate(plan.schedule.order)}
    sizes = {op.name: op.scratch_bytes for op in plan.operators}
    labels = _Labels(Names(graph.tensors))
    row_of = _rows_of_tensors(graph, labels)
    blocks: dict[str, list[Row]] = {}

    def add(row: str, offset: int, size_bytes: int, life: tuple[int, int]) -> None:
        first = bisect_left(call_steps, life[0])
        last = max(first, bisect_left(call_steps, life[1]) - 1)
        blocks.setdefault(row, []).append(Row(offset, size_bytes, first, last, row, life))

    for name, offset in arena.offsets.items():
        add(row_of[name], offset, graph.tensors[name].size_bytes, arena.lifetimes[name])
    for number in plan.schedule.order:
        op = graph.ops[number]
        if op.name in arena.scratch_offsets:
            owner = op.part_of or op.name
            life = (step_of[op.name], step_of[op.name] + 1)
            add(
                labels.of(f"scratch of {owner}"),
                arena.scratch_offsets[op.name],
                sizes[op.name],
                life,
            )
    for name, offset in arena.fetch_offsets.items():
        row = labels.of(f"constants of {name}, fetched")
        add(row, offset, arena.fetch_bytes[name], arena.fetch_steps[name])
    rows = sorted(
        (_together(name, each) for name, each in blocks.items()),
        key=lambda r: (r.first, r.offset, r.last, r.what),
    )
    return _explained(rows, _reasons(plan, row_of, call_steps))


@dataclass(frozen=True)
class _Labels:
    """Labels of rows that are no tensor's: no label is a tensor's name. `names`: those of
    tensors."""

    names: Names
    known: dict[str, str] = field(default_factory=dict)

    def of(self, wished: str) -> str:
        if wished not in self.known:
            self.known[wished] = self.names.fresh(wished)
        return self.known[wished]


def _rows_of_tensors(graph: Graph, labels: _Labels) -> Mapping[str, str]:
    """The row of each tensor: its own, or that of the operator of which it is a block."""
    whole = frozenset((*graph.inputs, *graph.outputs))
    parts = {
        name: op.part_of
        for op in graph.ops
        if op.part_of
        for name in op.outputs
        if name not in whole
    }
    return {
        name: labels.of(f"output of {parts[name]}") if name in parts else name
        for name in graph.tensors
    }


def _together(name: str, rows: Sequence[Row]) -> Row:
    offset = min(row.offset for row in rows)
    return Row(
        offset,
        max(row.offset + row.size_bytes for row in rows) - offset,
        min(row.first for row in rows),
        max(row.last for row in rows),
        name,
        (min(row.life[0] for row in rows), max(row.life[1] for row in rows)),
        in_blocks=len(rows) > 1,
    )


def _reasons(
    plan: Plan, row_of: Mapping[str, str], call_steps: Sequence[int]
) -> Mapping[str, tuple[Reason, ...]]:
    """The reasons why others may share a row's bytes, by row; of several reasons for two rows the
    first."""
    reasons: dict[str, dict[str, Reason]] = {}
    for name, reason in _laid(plan, call_steps):
        row, other = row_of[name], row_of[reason.other]
        if row != other:
            each = reasons.setdefault(row, {})
            mine = replace(reason, other=other)
            first = each.setdefault(other, mine)
            if first != mine and first.how == mine.how:
                each[other] = Reason(mine.how, other)
    return {row: tuple(each.values()) for row, each in reasons.items()}


def _laid(plan: Plan, call_steps: Sequence[int]) -> Iterator[tuple[str, Reason]]:
    """Each tensor that lies in or over another, and why it may."""
    graph, arena = plan.graph, plan.arena
    offsets = arena.offsets
    for state in graph.states:
        if offsets[state.input] == offsets[state.output]:
            yield state.output, Reason(STATE, state.input)
    for step, number in enumerate(plan.schedule.order):
        op, kernel = graph.ops[number], plan.lowered.kernels[number]
        inputs = [name for name in dict.fromkeys(op.present_inputs()) if name in offsets]
        if moves(op, graph, arena) == ():
            yield from _views(plan, inputs, op.outputs)
            continue
        for alias in spec_of(op.kind).aliases(op, graph):
            at = offsets.get(alias.base, 0) + alias.offset_bytes
            if alias.base in offsets and offsets.get(alias.view, -1) == at:
                yield from _views(plan, [alias.base], [alias.view])
        for safe in kernel.overlaps:
            source, target = op.inputs[safe.input], op.outputs[safe.output]
            if source not in offsets:
                continue
            below = offsets[source] - offsets[target]
            sizes = graph.tensors[source].size_bytes, graph.tensors[target].size_bytes
            safely = below == safe.lead_bytes if safe.exact else below >= safe.lead_bytes
            if safely and -sizes[0] < below < sizes[1]:
                yield target, Reason(OVER, source, below, bisect_left(call_steps, step))


def _views(
    plan: Plan, inputs: Sequence[str], outputs: Sequence[str]
) -> Iterator[tuple[str, Reason]]:
    """The smaller of two is a view of the larger, of equals the later of the earlier."""
    sizes = {name: plan.graph.tensors[name].size_bytes for name in (*inputs, *outputs)}
    for source in inputs:
        for target in outputs:
            view, base = (source, target) if sizes[source] < sizes[target] else (target, source)
            if view in plan.arena.pitches:
                yield view, Reason(STRIDED, base)
            else:
                yield view, Reason(VIEW if sizes[view] == sizes[base] else PART, base)


def _explained(rows: Sequence[Row], known: Mapping[str, tuple[Reason, ...]]) -> tuple[Row, ...]:
    """The rows with their reasons. Where two share bytes and nothing links them, parts of them do
    so by turns."""
    links: dict[str, str] = {}

    def linked(name: str) -> str:
        while name in links:
            name = links[name]
        return name

    def link(one: str, two: str) -> None:
        first, second = linked(one), linked(two)
        if first != second:
            links[first] = second

    for name, reasons in known.items():
        for reason in reasons:
            link(name, reason.other)
    made: list[Row] = []
    alive: list[Row] = []
    for row in rows:
        alive = [other for other in alive if other.last >= row.first]
        turns = []
        for other in alive:
            if row.meets(other) and linked(row.what) != linked(other.what):
                turns.append(Reason(TURNS, other.what))
                link(row.what, other.what)
        made.append(replace(row, reasons=(*known.get(row.what, ()), *turns)))
        alive.append(row)
    return tuple(made)
