"""The Pareto front as CSV, for a spreadsheet: one line a row, from the unsplit graph on."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from toolchain.report.front import FrontRow


def front_csv(rows: Sequence[FrontRow], title: str) -> str:
    """Peak in bytes, slowdown in percent, what is split: `conv2d_0 add_1 in 4 rows`; no title."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("peak_bytes", "slowdown_percent", "splits"))
    for row in rows:
        splits = (f"{' '.join(s.operators)} in {s.blocks} {s.mode}" for s in row.splits)
        lines.writerow((row.peak_bytes, round(100 * row.slowdown, 4), "; ".join(splits)))
    return text.getvalue()


FORMAT = front_csv
