"""A plan as the JSON that others rely on, and as a few lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from toolchain.ir.plan import Plan
from toolchain.report.text import share, size


def plan_json(
    plan: Plan,
    *,
    ram_bytes: int,
    flash_bytes: int,
    code_bytes: int,
    latency_total: int,
    latency_unit: str,
    measured_share: float,
    seconds: float,
) -> dict[str, Any]:
    """The fields of `thimble plan --json` and `thimble compile --json`."""
    graph = plan.graph
    return {
        "model": graph.name,
        "board": plan.board,
        "scheduler": plan.schedule.method,
        "allocator": plan.arena.allocator,
        "peak_bytes": plan.schedule.peak_bytes,
        "arena_bytes": plan.arena.size_bytes,
        "lower_bound_bytes": plan.schedule.lower_bound_bytes,
        "proved_optimal": plan.schedule.proved_optimal
        and plan.arena.size_bytes == plan.schedule.peak_bytes,
        "ram_bytes": ram_bytes,
        "flash_bytes": flash_bytes,
        "code_bytes": code_bytes,
        "slowdown_percent": 0.0,
        "latency": {
            "total": latency_total,
            "unit": latency_unit,
            "measured_share": measured_share,
        },
        "seconds": seconds,
        "macs": plan.macs,
        "operators": [
            {
                "step": step,
                "name": graph.ops[index].name,
                "kind": graph.ops[index].kind,
                "macs": plan.operators[index].macs,
                "scratch_bytes": plan.operators[index].scratch_bytes,
                "live_bytes": plan.step_bytes[step],
                "functions": list(plan.operators[index].functions),
            }
            for step, index in enumerate(plan.schedule.order)
        ],
        "tensors": {
            name: {
                "offset": offset,
                "bytes": graph.tensors[name].size_bytes,
                "shape": list(graph.tensors[name].shape),
                "dtype": graph.tensors[name].dtype.value,
                "live": list(plan.arena.lifetimes[name]),
            }
            for name, offset in plan.arena.offsets.items()
        },
    }


def memory_table(
    plan: Plan, rows: Mapping[str, tuple[int, int]], notes: Mapping[str, str] | None = None
) -> Table:
    """Memory against the board's: `rows` maps a name to (used, available) bytes; 0 is no limit."""
    table = Table(title=f"{plan.graph.name} on {plan.board}", header_style="bold", title_style="")
    table.add_column("memory")
    table.add_column("needed", justify="right")
    table.add_column("of the board's", justify="right")
    table.add_column("", justify="left")
    for name, (used, available) in rows.items():
        of = f"{size(available)}, {share(used, available)}" if available else "-"
        table.add_row(name, size(used), of, (notes or {}).get(name, ""))
    return table


def proof_line(plan: Plan) -> str:
    """What is proved about the arena, in one sentence."""
    arena, bound = plan.arena.size_bytes, plan.schedule.lower_bound_bytes
    if arena == bound:
        return f"The arena of {size(arena)} is proved minimal: one step alone needs that much."
    return (
        f"Arena {size(arena)}, peak of this order {size(plan.schedule.peak_bytes)}; no order of "
        f"these operators needs less than {size(bound)} (gap {share(arena - bound, arena)})."
    )
