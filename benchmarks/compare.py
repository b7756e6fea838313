"""The figures of two trees side by side: bytes equal, arenas no larger, instructions no more.

    python -m benchmarks.compare OLD.json NEW.json [--percent 0.5]

The files are what `benchmarks.firmware`, `benchmarks.reach` or `benchmarks.partition` wrote with
--json, each started in its own tree with the same options. Of every row of OLD:

- what was compared with a reference (`verdict`, `differing` and the like) must be equal in NEW,
- an arena must be no larger,
- instructions must be at most `--percent` more.

Rows that only NEW has are left out. Every figure that changed is listed. The exit code is 1 where
one is worse or missing, 2 where the files have no figure in common.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

SMALLEST = ("benchmarks/arena_published.json benchmarks/arena_published.json",)
EQUAL = {"verdict", "matches", "elements", "differing", "max_difference", "equal", "compared_bytes"}
ARENA, INSTRUCTIONS = "arena_bytes", "instructions"
KEYS = ("model", "network", "board", "factor", "budget")
"""What a row of a list is known by, as far as it has it; a row without is known by its number."""
Value = bool | int | float | str
Figures = Mapping[tuple[str, ...], Value]


@dataclass(frozen=True)
class Difference:
    """A figure that changed: `place` is its path in the file, `new` is None where it is missing."""

    place: tuple[str, ...]
    old: Value
    new: Value | None
    worse: bool

    @property
    def change(self) -> str:
        """In percent of the old figure, where both are numbers."""
        if isinstance(self.old, str) or not self.old or isinstance(self.new, str | None):
            return ""
        return f"{self.new / self.old - 1:+.2%}"


def figures(data: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Value]]:
    """The figures that are compared, by their path in the file."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from figures(value, (*place, name))
    elif isinstance(data, list):
        for index, row in enumerate(data):
            known = [row[key] for key in KEYS if key in row] if isinstance(row, dict) else []
            yield from figures(row, (*place, " ".join(map(str, known)) or f"{index}"))
    elif data is not None and place:
        name = next((part for part in reversed(place) if not part.isdigit()), "")
        if name in EQUAL or name.endswith((ARENA, INSTRUCTIONS)):
            yield place, data


def differences(old: Figures, new: Figures, percent: float) -> Iterator[Difference]:
    """What changed from `old` to `new`, and what `new` lacks."""
    for place, before in old.items():
        after = new.get(place)
        if after is None:
            yield Difference(place, before, None, worse=True)
        elif after != before:
            most = before
            if any(part.endswith(INSTRUCTIONS) for part in place):
                most = float(before) * (100 + percent) / 100
            exact = place[-1] in EQUAL
            yield Difference(place, before, after, worse=exact or float(after) > float(most))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path, metavar="OLD.json")
    parser.add_argument("new", type=Path, metavar="NEW.json")
    parser.add_argument("--percent", type=float, default=0.5, help="of instructions, at most more")
    chosen = parser.parse_args()
    console = Console(width=150)
    try:
        old, new = (
            dict(figures(json.loads(path.read_text(encoding="utf-8"))))
            for path in (chosen.old, chosen.new)
        )
    except (OSError, ValueError) as error:
        console.print(f"error: {error}", markup=False)
        return 2
    if not old.keys() & new.keys():
        console.print("error: the files have no figure in common", markup=False)
        return 2
    found = list(differences(old, new, chosen.percent))
    table = Table("figure", "old", "new", "change", "", header_style="bold")
    for each in sorted(found, key=lambda each: not each.worse):
        new_text = "missing" if each.new is None else f"{each.new}"
        worse = "WORSE" if each.worse else ""
        table.add_row(" / ".join(each.place), f"{each.old}", new_text, each.change, worse)
    if found:
        console.print(table)
    worse_count = sum(each.worse for each in found)
    console.print(
        f"{len(old)} figures: {len(old) - len(found)} equal, {len(found) - worse_count} better or "
        f"within {chosen.percent:g}% of instructions, {worse_count} worse or missing."
    )
    return 1 if worse_count else 0


if __name__ == "__main__":
    sys.exit(main())
