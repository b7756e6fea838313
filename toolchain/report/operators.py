"""The operator table of a plan: when each runs, where it lies, what it costs."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.markup import escape

from toolchain.cost.basis import Basis
from toolchain.memory.plan import Plan
from toolchain.report.latency import Latency
from toolchain.report.splits import is_block
from toolchain.report.text import operator_name, shape, share
from toolchain.report.width import Shown

_MARKS = {Basis.PREDICTED: "~", Basis.TRACE: "*", Basis.MEASURED: ""}
"""Before a count."""
_WORDS = ("operator", "kind", "output")
_LEFT_OUT = ("offset", "output", "scratch B", "kind", "MACs", "live B")
"""Columns that a narrow terminal goes without, the first one first."""


def operator_table(plan: Plan, latency: Latency, *, blocks: bool = False) -> Shown:
    """One row per operator of the network in running order. The step with the peak is marked, and
    what counts rest on: the caption says how.

    The blocks of a split operator, and what cuts and joins them, are one row, at the first of them:
    the number of blocks, sums of MACs and counts, the most of bytes. `blocks`: a row for each.
    """
    bases = dict.fromkeys(cost.basis for cost in latency.costs if cost.count)
    marks = ", ".join(f"{_MARKS[basis]} {basis.text}".strip() for basis in bases)
    timed = latency.milliseconds is not None
    graph, total = plan.graph, latency.total
    headings = ["step", "operator", "kind", "output", "offset", "scratch B", "live B", "MACs"]
    headings += [latency.unit, *(["ms"] if timed else []), "share"]
    table = Shown(
        header_style="bold",
        row_styles=("", "dim"),
        caption=marks,
        caption_justify="right",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        first_to_go=_LEFT_OUT,
    )
    for heading in headings:
        table.add_column(heading, justify="left" if heading in _WORDS else "right", no_wrap=True)
    for steps in _rows(plan, blocks=blocks):
        places = [plan.schedule.order[step] for step in steps]
        costs, several = [latency.costs[place] for place in places], len(steps) > 1
        computing = [graph.ops[place] for place in places if is_block(graph.ops[place])]
        op, split = (computing or [graph.ops[places[0]]])[0], len(computing) > 1
        output = op.outputs[0]
        scratch = max(plan.operators[place].scratch_bytes for place in places)
        macs = sum(plan.operators[place].macs for place in places)
        count = sum(cost.count for cost in costs)
        peak = plan.peak_step in steps
        cells = (
            f"{steps[0]}-{steps[-1]}" if several else str(steps[0]),
            operator_name((op.part_of or op.name) if several else op.name),
            f"{op.kind} x{len(computing)}" if split else op.kind,
            "-" if split else shape(graph.tensors[output].shape),
            "-" if split else _place(plan, output),
            f"{scratch:,}" if scratch else "-",
            ("▶ " if peak else "") + f"{max(plan.step_bytes[step] for step in steps):,}",
            f"{macs:,}" if macs else "-",
            (_MARKS[costs[0].basis] if count else "") + f"{count:,}",
            *([f"{1e3 * count / latency.clock_hz:.3f}"] if timed else []),
            share(count, total),
        )
        table.add_row(*map(escape, cells), style="bold" if peak else None)
    return table


def _rows(plan: Plan, *, blocks: bool) -> list[list[int]]:
    """The steps of each row."""
    if blocks:
        return [[step] for step in range(len(plan.schedule.order))]
    rows: dict[str, list[int]] = {}
    for step, index in enumerate(plan.schedule.order):
        op = plan.graph.ops[index]
        rows.setdefault(op.part_of or op.name, []).append(step)
    return list(rows.values())


def _place(plan: Plan, tensor: str) -> str:
    """An operator's place: its offset; in an arena over banks the bank and the offset there."""
    arena = plan.arena
    if tensor not in arena.offsets:
        return "-"
    offset = arena.offsets[tensor]
    if not arena.parts:
        return f"{offset:,}"
    part = arena.part_of(offset)
    return f"{part.bank} {offset - part.start_bytes:,}"
