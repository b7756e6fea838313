"""The operator table of a plan: when each runs, where it lies, what it costs."""

from __future__ import annotations

from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.table import Table

from toolchain.cost.basis import Basis
from toolchain.memory.plan import Plan
from toolchain.report.latency import Latency
from toolchain.report.text import shape, share

_MARKS = {Basis.PREDICTED: "~", Basis.TRACE: "*", Basis.MEASURED: ""}
"""Before a count."""
_WORDS = ("operator", "kind", "output")
"""Columns that a narrow terminal may cut; numbers are never cut."""
_WIDEST = 10_000
_LEFT_OUT = ("offset", "output", "scratch B", "kind", "MACs", "live B")
"""Columns that a narrow terminal goes without, the first one first."""


@dataclass(frozen=True)
class OperatorTable:
    """A table as wide as the terminal: where that is too narrow, without its least telling columns.

    Step, operator, latency and share are always there; names are cut before a column goes.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    peak: int
    caption: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for count in range(len(_LEFT_OUT) + 1):
            table = self._without(_LEFT_OUT[:count])
            if console.measure(table, options=options.update(width=_WIDEST)).minimum <= (
                options.max_width
            ):
                break
        yield table

    def _without(self, left_out: tuple[str, ...]) -> Table:
        """The table without some columns, which its caption names."""
        missing = f"left out for want of width: {', '.join(left_out)}" if left_out else ""
        table = Table(
            header_style="bold",
            row_styles=("", "dim"),
            caption="; ".join(filter(None, (self.caption, missing))),
            caption_justify="right",
            box=SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            collapse_padding=True,
        )
        kept = [at for at, heading in enumerate(self.headings) if heading not in left_out]
        for at in kept:
            heading = self.headings[at]
            widest = max(len(cell) for cell in (heading, *(row[at] for row in self.rows)))
            table.add_column(
                heading,
                justify="left" if heading in _WORDS else "right",
                no_wrap=True,
                min_width=len(heading) if heading in _WORDS else widest,
            )
        for step, row in enumerate(self.rows):
            style = "bold" if step == self.peak else None
            table.add_row(*(escape(row[at]) for at in kept), style=style)
        return table


def operator_table(plan: Plan, latency: Latency) -> OperatorTable:
    """One row per operator in running order. The step with the peak is marked, and what counts
    rest on: the caption says how."""
    bases = dict.fromkeys(cost.basis for cost in latency.costs if cost.count)
    marks = ", ".join(f"{_MARKS[basis]} {basis.text}".strip() for basis in bases)
    timed = latency.milliseconds is not None
    graph, total = plan.graph, latency.total
    headings = ["step", "operator", "kind", "output", "offset", "scratch B", "live B", "MACs"]
    headings += [latency.unit, *(["ms"] if timed else []), "share"]
    rows = []
    for step, index in enumerate(plan.schedule.order):
        op, planned, cost = graph.ops[index], plan.operators[index], latency.costs[index]
        output = op.outputs[0]
        peak = step == plan.peak_step
        rows.append(
            (
                str(step),
                _short(op.name),
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
        )
    return OperatorTable(tuple(headings), tuple(rows), plan.peak_step, marks)


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


def _short(name: str, width: int = 24) -> str:
    """The end of a long name: frameworks put what tells operators apart last."""
    return name if len(name) <= width else "…" + name[1 - width :]
