"""The operator table of a plan: when each runs, where it lies, what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from toolchain.memory.plan import Plan
from toolchain.report.text import shape, share


def operator_table(plan: Plan, counts: Sequence[int], unit: str) -> Table:
    """One row per operator in running order; the step with the peak is marked.

    `counts` (per graph operator) are in `unit`.
    """
    table = Table(title=None, header_style="bold", row_styles=("", "dim"))
    for heading in ("step", "operator", "kind", "output"):
        table.add_column(heading, justify="right" if heading == "step" else "left", no_wrap=True)
    for heading in ("offset", "scratch B", "live B", "MACs", unit, "share"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=len(heading))
    graph, total = plan.graph, sum(counts)
    for step, index in enumerate(plan.schedule.order):
        op, planned = graph.ops[index], plan.operators[index]
        output = op.outputs[0]
        peak = step == plan.peak_step
        table.add_row(
            str(step),
            escape(_short(op.name)),
            op.kind,
            shape(graph.tensors[output].shape),
            _place(plan, output),
            f"{planned.scratch_bytes:,}" if planned.scratch_bytes else "-",
            ("▶ " if peak else "") + f"{plan.step_bytes[step]:,}",
            f"{planned.macs:,}" if planned.macs else "-",
            f"{counts[index]:,}",
            share(counts[index], total),
            style="bold" if peak else None,
        )
    return table


def _place(plan: Plan, tensor: str) -> str:
    """Its offset; in an arena over banks the bank and the offset there."""
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
