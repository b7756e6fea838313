"""The published graphs: counted as HMCOS counts, and proved optimal."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from toolchain.frontends.neutral import read_neutral
from toolchain.schedule import scheduler

GRAPHS = Path(__file__).resolve().parents[2].parent / "shared" / "graphs"


@pytest.mark.skipif(not GRAPHS.is_dir(), reason="the shared graphs are not here")
def test_the_published_graphs_reach_their_anchors() -> None:
    with (GRAPHS / "ANCHORS.csv").open() as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    for path in sorted(GRAPHS.glob("*.json")):
        problem = read_neutral(path).memory_problem()
        row = rows[path.stem]
        assert scheduler("rpo").schedule(problem).peak_bytes == int(row["rpo"])
        assert scheduler("kahn").schedule(problem).peak_bytes == int(row["kahn_bfs"])
        found = scheduler("auto").schedule(problem, 60)
        assert (found.peak_bytes, found.proved_optimal) == (int(row["optimal_exact"]), True)
