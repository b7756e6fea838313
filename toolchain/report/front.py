"""RAM against predicted slowdown: the Pareto front as a table with bars, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from toolchain.cost.basis import milliseconds
from toolchain.report.latency import Latency
from toolchain.report.text import size

_BAR_WIDTH = 30
_EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True)
class Split:
    """Operators by name, computed together in `blocks` blocks; `mode` is as in `partition.Mode`."""

    operators: tuple[str, ...]
    blocks: int
    mode: str


@dataclass(frozen=True)
class FrontRow:
    """One way to split a graph: its peak, and slowdown as a fraction.

    `choice`: the number with which `--choice` takes it, as a plan that needs `ram_bytes` and
    `flash_bytes`, as estimated before linking, and whose arena is `peak_bytes`; 0: what the options
    give without it. None: of a front alone, where these are unknown and the peak is predicted.
    """

    peak_bytes: int
    slowdown: float
    splits: tuple[Split, ...]
    flash_bytes: int = 0
    ram_bytes: int = 0
    choice: int | None = None


def front_json(rows: Sequence[FrontRow], whole: Latency) -> list[dict[str, Any]]:
    """One entry per row, from the unsplit graph, which takes `whole`, to the smallest.

    `total` is in the unit of `whole`.
    """
    return [
        {
            "peak_bytes": row.peak_bytes,
            **(
                {"choice": row.choice, "ram_bytes": row.ram_bytes, "flash_bytes": row.flash_bytes}
                if row.choice is not None
                else {}
            ),
            "slowdown_percent": round(100 * row.slowdown, 4),
            "total": _slower(whole, row),
            "milliseconds": milliseconds(_slower(whole, row), whole.unit, whole.clock_hz),
            "splits": [asdict(split) for split in row.splits],
        }
        for row in rows
    ]


def _slower(whole: Latency, row: FrontRow) -> int:
    return round(whole.total * (1 + row.slowdown))


def front_table(rows: Sequence[FrontRow], title: str, whole: Latency) -> Table:
    """One row per point: its slowdown against `whole`, a bar for its peak, and what is split."""
    table = Table(title=title, header_style="bold", title_style="")
    chosen = any(row.choice is not None for row in rows)
    if chosen:
        table.add_column("choice", justify="right")
    table.add_column("slowdown", justify="right")
    table.add_column(whole.unit, justify="right")
    timed = whole.milliseconds is not None
    if timed:
        table.add_column("ms", justify="right")
    if chosen:
        table.add_column("flash", justify="right")
    table.add_column("RAM" if chosen else "peak", justify="right")
    table.add_column("")
    table.add_column("operators split, into blocks")
    most = max(row.peak_bytes for row in rows)
    for row in rows:
        splits = (f"{len(s.operators)} in {s.blocks} {s.mode}" for s in row.splits)
        table.add_row(
            *([str(row.choice or "-")] if chosen else []),
            f"{math.ceil(row.slowdown * 1e4) / 100:.2f}%",  # upwards: as a budget it takes the row
            f"{_slower(whole, row):,}",
            *([f"{1e3 * _slower(whole, row) / whole.clock_hz:.3f}"] if timed else []),
            *([size(row.flash_bytes)] if chosen else []),
            size(row.ram_bytes if chosen else row.peak_bytes),
            _bar(row.peak_bytes / most),
            ", ".join(splits) or "-",
        )
    return table


def _bar(share: float) -> str:
    """A bar of up to `_BAR_WIDTH` characters, to an eighth of one."""
    eighths = round(share * _BAR_WIDTH * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip() or _EIGHTHS[1]
