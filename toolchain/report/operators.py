"""The operator table of a plan: when each runs, where it lies, what it costs."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.markup import escape

from toolchain.cost.basis import Basis
from toolchain.memory.plan import Plan
from toolchain.report.latency import Latency
from toolchain.report.text import operator_name, shape, share
from toolchain.report.width import Shown

_MARKS = {Basis.PREDICTED: "~", Basis.TRACE: "*", Basis.MEASURED: ""}
"""Before a count."""
_WORDS = ("operator", "kind", "output")
_LEFT_OUT = ("offset", "output", "scratch B", "kind", "MACs", "live B")
"""Columns that a narrow terminal goes without, the first one first."""


def operator_table(plan: Plan, latency: Latency) -> Shown:
    """One row per operator in running order. The step with the peak is marked, and what counts
    rest on: the caption says how."""
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
    for step, index in enumerate(plan.schedule.order):
        op, planned, cost = graph.ops[index], plan.operators[index], latency.costs[index]
        output = op.outputs[0]
        peak = step == plan.peak_step
        cells = (
            str(step),
            operator_name(op.name),
            op.kind,
            shape(graph.tensors[output].shape),
            _place(plan, output),
            f"{planned.scratch_bytes:,}" if planned.scratch_bytes else "-",
            ("▶ " if peak else "") + f"{plan.step_bytes[step]:,}",
            f"{planned.macs:,}" if planned.macs else "-",
            (_MARKS[cost.basis] if cost.count else "") + f"{cost.count:,}",
            *([f"{1e3 * cost.count / latency.clock_hz:.3f}"] if timed else []),
            share(cost.count, total),
        )
        table.add_row(*map(escape, cells), style="bold" if peak else None)
    return table


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
