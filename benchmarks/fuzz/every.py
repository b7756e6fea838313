"""`all`: every level to its end, and the table of `docs/fuzzing.md` from what was found."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.fuzz.outcome import (
    ACCEPTED,
    BUILD,
    DEATH,
    FAILED,
    HANG,
    PLANNED,
    SANITIZER,
    SILENT,
    TRACEBACK,
    WRONG,
    Tally,
)
from benchmarks.fuzz.seeds import ROOT


@dataclass(frozen=True)
class Run:
    """One level, and how many cases count as its end."""

    level: str
    cases: int


RUNS = (
    Run("read", 1_000_000),
    Run("plan", 100_000),
    Run("c", 10_000),
    Run("split", 600),
    Run("devices", 200_000),
    Run("files", 10_000),
)
_COLUMNS = (
    ("tracebacks", (TRACEBACK, SILENT)),
    ("sanitizer reports", (SANITIZER, BUILD)),
    ("wrong bytes", (WRONG, FAILED)),
    ("hangs, deaths", (HANG, DEATH)),
)


def commit() -> str:
    """The checked-out commit, with a mark where files differ from it; '' outside of git."""
    command = ("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def table(runs: Sequence[tuple[Run, Tally, int]]) -> str:
    """Markdown: each run, its tally, and how many of its cases counted."""
    seconds = sum(tally.seconds for _, tally, _ in runs)
    heads = ["level", "asked for", "done", *(name for name, _ in _COLUMNS), "minutes"]
    rows = [heads, ["---"] * len(heads)]
    for run, tally, counted in runs:
        done = f"{counted:,}"
        if PLANNED in tally.counts or counted != tally.cases:
            done += f" of {tally.cases:,} cases"
        elif ACCEPTED in tally.counts:
            done += f" ({tally.counts[ACCEPTED]:,} accepted)"
        found = [str(sum(tally.counts[kind] for kind in kinds)) for _, kinds in _COLUMNS]
        level = f"`{run.level}`, seed {tally.seed}"
        rows.append([level, f"{run.cases:,}", done, *found, f"{tally.seconds / 60:.1f}"])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    day = time.strftime("%Y-%m-%d")
    return "\n".join([*lines, "", f"Commit {commit()}, {day}, {seconds / 60:.0f} minutes."])
