"""The analytic cost model beside what QEMU counts: measure a grid of shapes, fit, show the errors.

    python -m benchmarks.cost [--board BOARD] [--only KIND,..] [--shapes N] [--write]
                              [--database FILE]

Each kind of operator is measured at seeded random shapes (`_cost_grid.py`), twice over: one half to
fit the coefficients of its kernel by, one that the fit has not seen. Coefficients are non-negative
least squares of the relative error. The table has the mean and the worst error of each kernel on
both halves. --write puts the coefficients into `toolchain/cost/coefficients/`, those of the
board's family of cores: by default mps2-an500 for cores with the DSP extension (Cortex-M4 and M7
run the same kernels; the counts differ by less than 0.5%), and with --board mps3-an547 for Helium.
Without it the table is that of the coefficients there are. What was counted is kept in FILE, so
that another run counts only what is new. It takes two or three minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks._cost_grid import families, kernels
from toolchain.boards import board as find_board
from toolchain.cost.database import Database
from toolchain.cost.fitted import COEFFICIENTS, kernel_terms, memcpy_terms
from toolchain.cost.key import COPIES
from toolchain.deployment.measurements import current_build
from toolchain.errors import ThimbleError
from toolchain.kernels import cmsis_nn
from toolchain.ops.kernel import Terms
from toolchain.ops.lowering import lower
from toolchain.ops.terms import SELDOM
from toolchain.timing.kernel_timing import Kernel, time_kernels

SMALLEST = ("--only relu,add --shapes 2 --database {scratch}/counted.sqlite",)
FIT, HELD_OUT = 1, 2
AT_ONCE = 32
"""Kernels in one firmware: the code and weights of twice as many overrun 512 KiB."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """What a kernel's loops do at one shape, and the instructions that QEMU counted."""

    terms: Terms
    count: int


Points = Mapping[str, Sequence[Point]]


def measure(found: Sequence[Kernel], board: str, database: Database) -> Points:
    """Of each C kernel, by its name."""
    core = find_board(board).core
    for first in range(0, len(found), AT_ONCE):
        time_kernels(found[first : first + AT_ONCE], board, runs=1, database=database)
    counts = {row.key: row.count for row in database.rows(board)}
    points: dict[str, list[Point]] = defaultdict(list)
    for kernel in found:
        if counts.get(kernel.key):
            name, terms = COPIES, memcpy_terms(kernel.copies)
            if not kernel.copies:
                name, terms = kernel_terms(lower(kernel.graph, core, kernel.preference), 0)
            points[name].append(Point(terms, counts[kernel.key]))
    return points


def fit(points: Sequence[Point]) -> dict[str, float]:
    """Coefficients of all terms that matter, by name: first of what every model has."""
    usual = [point for point in points if not any(map(point.terms.get, seldom(point.terms)))]
    base = least_squares(usual, {})
    return base | least_squares([point for point in points if point not in usual], base)


def seldom(names: Iterable[str]) -> list[str]:
    """Those terms that few models have."""
    return [name for name in names if any(word in name for word in SELDOM)]


def least_squares(points: Sequence[Point], known: Mapping[str, float]) -> dict[str, float]:
    """Coefficients of all terms; where some are known, of those that few models have."""
    names = sorted({name for point in points for name in point.terms})
    names = seldom(names) if known else names
    if not points or not names:
        return {}
    counts = np.array([point.count for point in points], float)
    amounts = np.array([[point.terms.get(name, 0.0) for name in names] for point in points])
    found = non_negative(amounts / counts[:, None], -errors(points, known))
    return {n: float(f"{c:.5g}") for n, c in zip(names, found, strict=True) if c > 0}


def non_negative(design: Floats, target: Floats) -> Floats:
    """Least squares without negative coefficients (Lawson and Hanson 1974, algorithm NNLS)."""
    size = np.maximum(np.linalg.norm(design, axis=0), np.finfo(float).tiny)
    design = design / size
    count = design.shape[1]
    used, found = np.zeros(count, bool), np.zeros(count)
    for _ in range(10 * count):
        slope = np.where(used, -np.inf, design.T @ (target - design @ found))
        if slope.max() < 1e-9:
            break
        used[slope.argmax()] = True
        while True:
            best = np.zeros(count)
            best[used] = np.linalg.lstsq(design[:, used], target, rcond=None)[0]
            wrong = used & (best <= 0)
            if not wrong.any():
                break
            share = np.min(found[wrong] / (found[wrong] - best[wrong]))
            found += share * (best - found)
            used &= found > 1e-12
            found[~used] = 0.0
        found = best
    result: Floats = found / size
    return result


def errors(points: Iterable[Point], each: Mapping[str, float]) -> Floats:
    """Predicted over counted, less 1."""
    return np.array(
        [
            sum(each.get(name, 0.0) * count for name, count in point.terms.items()) / point.count
            - 1
            for point in points
        ]
    )


def show(halves: Sequence[Points], fitted: Mapping[str, Mapping[str, float]], title: str) -> Table:
    """A line for each kernel."""
    table = Table(title=title)
    for heading in ("kernel", "terms", "fitted by", "mean", "worst", "held out", "mean", "worst"):
        table.add_column(heading, justify="left" if heading == "kernel" else "right")
    for kernel in sorted(set(halves[0]) | set(halves[1])):
        if kernel not in fitted:
            table.add_row(kernel, "none")
            continue
        row = [kernel, str(len(fitted[kernel]))]
        for half in halves:
            found = errors(half.get(kernel, ()), fitted[kernel])
            worst = found[np.abs(found).argmax()] if len(found) else 0.0
            mean = np.abs(found).mean() if len(found) else 0.0
            row += [str(len(found)), f"{mean:.1%}", f"{worst:+.1%}"]
        table.add_row(*row)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--board", default="mps2-an500", help="in QEMU (default mps2-an500)")
    parser.add_argument("--only", default="", help="only these kinds, by comma")
    parser.add_argument("--shapes", type=int, help="at most so many of each kind")
    parser.add_argument("--write", action="store_true", help="keep the new coefficients")
    parser.add_argument("--database", type=Path, metavar="FILE", help="of what was counted")
    options = parser.parse_args()
    console, log = Console(width=140), Console(stderr=True)
    only = [name for name in options.only.split(",") if name]
    for name in only:
        if name not in families():
            parser.error(f"no kind {name!r}; there are: {', '.join(families())}")
    if options.write and (only or options.shapes is not None):
        parser.error("--write fits all kinds at all shapes: leave --only and --shapes out")
    file = options.database or cmsis_nn.cache_folder() / "cost-grid.sqlite"
    try:
        core = find_board(options.board).core
        halves: list[dict[str, list[Point]]] = []
        with Database(file) as database:
            for seed in (FIT, HELD_OUT):
                half: dict[str, list[Point]] = defaultdict(list)
                for name in only or families():
                    with log.status(f"{name} on {options.board}"):
                        found = kernels(name, seed, core, options.shapes)
                        for kernel, points in measure(found, options.board, database).items():
                            half[kernel] += points
                halves.append(half)
        build = current_build(cmsis_nn.find())
    except ThimbleError as error:
        log.print(f"error: {error}", markup=False)
        return 2
    family = COEFFICIENTS / f"{'helium' if core.mve else 'dsp'}.json"
    entry = json.loads(family.read_text(encoding="utf-8"))
    if options.write:
        entry["kernels"] |= {name: fit(halves[0][name]) for name in sorted(halves[0])}
        entry |= {"board": options.board, "compiler": build.compiler, "cmsis_nn": build.cmsis_nn}
        family.write_text(json.dumps(entry, indent=1) + "\n", encoding="utf-8")
    console.print(show(halves, entry["kernels"], f"predicted against counted, {options.board}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
