"""The code of a firmware, function by function, before it is linked."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from toolchain.memory.firmware_size import code_of
from toolchain.memory.plan import Plan

_SHOWN = 12
"""Functions that have a row of their own, at most."""
_LEAST_BYTES = 100


def code_json(plan: Plan) -> dict[str, Any]:
    """Predicted bytes of code: of each function of C, of the model's own ones, and around."""
    code = code_of(plan)
    return {
        "functions": dict(code.functions),
        "calls_bytes": code.calls,
        "firmware_bytes": code.rest,
    }


def code_table(plan: Plan) -> Table:
    """The largest functions of the firmware, and what the others take together."""
    code = code_of(plan)
    table = Table(title="Code by function, predicted", header_style="bold", title_style="")
    table.add_column("function")
    table.add_column("bytes", justify="right")
    rows = list(code.functions.items())
    shown = [row for row in rows[:_SHOWN] if row[1] >= _LEAST_BYTES]
    others = rows[len(shown) :]
    for name, size in shown:
        table.add_row(name, f"{size:,}")
    if others:
        noun = "function" if len(others) == 1 else "functions"
        table.add_row(f"{len(others)} smaller {noun}", f"{sum(size for _, size in others):,}")
    table.add_row("calls of the operators", f"{code.calls:,}")
    table.add_row("firmware around", f"{code.rest:,}")
    table.add_row("all", f"{code.size_bytes:,}")
    return table
