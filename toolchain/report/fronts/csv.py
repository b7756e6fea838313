"""The front of plans as CSV, for a spreadsheet: one line a row, the quickest first."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from toolchain.report.front import FrontRow, front_json
from toolchain.report.splits import Split


def front_csv(rows: Sequence[FrontRow], title: str) -> str:
    """The columns of `--json` by its names; what is split as `conv2d_0 add_1 in 4`; no title."""
    text = io.StringIO()
    joined = ("; ".join(map(_split, row.splits)) for row in rows)
    each = [
        {**entry, "splits": splits} for entry, splits in zip(front_json(rows), joined, strict=True)
    ]
    lines = csv.DictWriter(text, list(each[0]), lineterminator="\n")
    lines.writeheader()
    lines.writerows(each)
    return text.getvalue()


def _split(split: Split) -> str:
    return f"{' '.join(split.operators)} in {split.blocks}"


FORMAT = front_csv
