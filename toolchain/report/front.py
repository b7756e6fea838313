"""The front of plans in RAM, flash and predicted time: as a table with bars, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from toolchain.report.latency import Latency
from toolchain.report.splits import Split

_BAR_WIDTH = 16
_EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True)
class FrontRow:
    """A finished plan that no other is as good as in RAM, copies apart, flash and time.

    `choice`: the number with which `--choice` takes it. `peak_bytes`: of its arena. `ram_bytes`, of
    which copies take `copied_bytes`, and `flash_bytes` are estimated before linking.
    `lower_bound_bytes`: no order of the row's operators needs a smaller arena. `slowdown`: beside
    the quickest plan, as a fraction.
    """

    choice: int
    peak_bytes: int
    lower_bound_bytes: int
    ram_bytes: int
    copied_bytes: int
    flash_bytes: int
    slowdown: float
    latency: Latency
    splits: tuple[Split, ...]


def front_json(rows: Sequence[FrontRow]) -> list[dict[str, Any]]:
    """One entry per row, the quickest first."""
    return [
        {
            "peak_bytes": row.peak_bytes,
            "lower_bound_bytes": row.lower_bound_bytes,
            "choice": row.choice,
            "ram_bytes": row.ram_bytes,
            "copied_bytes": row.copied_bytes,
            "flash_bytes": row.flash_bytes,
            "slowdown_percent": round(100 * row.slowdown, 4),
            "total": row.latency.total,
            "milliseconds": row.latency.milliseconds,
            "splits": [asdict(split) for split in row.splits],
        }
        for row in rows
    ]


def front_table(rows: Sequence[FrontRow], title: str) -> Table:
    """One row per plan: its figures, a bar for its arena, and what is split."""
    table = Table(title=title, header_style="bold", title_style="")
    table.add_column("choice", justify="right")
    table.add_column("slowdown", justify="right")
    table.add_column(rows[0].latency.unit, justify="right")
    timed = rows[0].latency.milliseconds is not None
    if timed:
        table.add_column("ms", justify="right")
    table.add_column("flash", justify="right")
    table.add_column("RAM", justify="right")
    copying = any(row.copied_bytes for row in rows)
    if copying:
        table.add_column("of it copies", justify="right")
    table.add_column("arena", justify="right")
    table.add_column("its bound", justify="right")
    table.add_column("")
    table.add_column("operators split, into blocks")
    most = max(row.peak_bytes for row in rows)
    for row in rows:
        splits = (f"{len(s.operators)} in {s.blocks}" for s in row.splits)
        table.add_row(
            str(row.choice),
            f"{math.ceil(row.slowdown * 1e4) / 100:.2f}%",  # upwards: as a budget it takes the row
            f"{row.latency.total:,}",
            *([f"{row.latency.milliseconds:.3f}"] if timed else []),
            f"{row.flash_bytes:,}",
            f"{row.ram_bytes:,}",
            *([f"{row.copied_bytes:,}"] if copying else []),
            f"{row.peak_bytes:,}",
            f"{row.lower_bound_bytes:,}",
            _bar(row.peak_bytes / most),
            ", ".join(splits) or "-",
        )
    return table


def _bar(share: float) -> str:
    """A bar of up to `_BAR_WIDTH` characters, to an eighth of one."""
    eighths = round(share * _BAR_WIDTH * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip() or _EIGHTHS[1]
