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
    """One way to split a graph: predicted peak, and slowdown as a fraction.

    `flash_bytes`: of the firmware unsplit, with the kernels of this row; 0 where all rows have the
    same.
    """

    peak_bytes: int
    slowdown: float
    splits: tuple[Split, ...]
    flash_bytes: int = 0


def front_json(rows: Sequence[FrontRow], whole: Latency) -> list[dict[str, Any]]:
    """One entry per row, from the unsplit graph, which takes `whole`, to the smallest.

    `total` is in the unit of `whole`.
    """
    return [
        {
            "peak_bytes": row.peak_bytes,
            **({"flash_bytes": row.flash_bytes} if row.flash_bytes else {}),
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
    table.add_column("slowdown", justify="right")
    table.add_column(whole.unit, justify="right")
    timed = whole.milliseconds is not None
    if timed:
        table.add_column("ms", justify="right")
    flash = any(row.flash_bytes for row in rows)
    if flash:
        table.add_column("flash", justify="right")
    table.add_column("peak", justify="right")
    table.add_column("")
    table.add_column("operators split, into blocks")
    most = max(row.peak_bytes for row in rows)
    for row in rows:
        splits = (f"{len(s.operators)} in {s.blocks} {s.mode}" for s in row.splits)
        table.add_row(
            f"{math.ceil(row.slowdown * 1e4) / 100:.2f}%",  # upwards: as a budget it takes the row
            f"{_slower(whole, row):,}",
            *([f"{1e3 * _slower(whole, row) / whole.clock_hz:.3f}"] if timed else []),
            *([size(row.flash_bytes)] if flash else []),
            size(row.peak_bytes),
            _bar(row.peak_bytes / most),
            ", ".join(splits) or "-",
        )
    return table


def _bar(share: float) -> str:
    """A bar of up to `_BAR_WIDTH` characters, to an eighth of one."""
    eighths = round(share * _BAR_WIDTH * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip() or _EIGHTHS[1]
