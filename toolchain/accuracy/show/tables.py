"""The figures as tables and lines for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from toolchain.accuracy.metrics.boxes import Detection
from toolchain.accuracy.metrics.classes import Classification
from toolchain.accuracy.metrics.numbers import Regression
from toolchain.accuracy.run.result import Accuracy, Measured
from toolchain.accuracy.run.tasks import Figures

_SHOWN = 15
"""Classes, numbers and confusions that are listed."""
_Row = tuple[str, ...]


def accuracy_lines(result: Accuracy) -> Iterator[Table | str]:
    """Tables and sentences, in the order in which they are shown."""
    many = f", {result.inferences:,} inferences" if result.inferences != result.samples else ""
    yield f"{result.model}: {result.samples:,} samples{many}"
    yield _runtimes(result.columns)
    final = result.final
    if not isinstance(final.figures, Regression) or len(final.figures.numbers) > 1:
        yield _parts(final.figures, f"{final.name}, {final.title}")
    if isinstance(final.figures, Classification):
        yield _confusions(final.figures)
    if final.keywords is not None:
        yield _keywords(result.columns)
    if result.agreement is not None:
        same, most = result.agreement, result.agreement.max_difference
        by = f", by up to {most:g}" if same.differing else ""
        yield (
            f"Board beside reference: {same.differing:,} of {same.elements:,} output elements "
            f"differ{by}; {same.same:,} of {same.predictions:,} predictions are equal."
        )


def _runtimes(columns: Sequence[Measured]) -> Table:
    """One row for each runtime."""
    first = columns[0].figures
    headings, cells = _headings(first)
    table = Table(header_style="bold")
    table.add_column("runtime")
    table.add_column("")
    for heading in headings:
        table.add_column(heading, justify="right")
    for one in columns:
        table.add_row(one.name, escape(one.title), *cells(one.figures))
    return table


def _headings(figures: Figures) -> tuple[_Row, Callable[[Figures], _Row]]:
    """Headings of the figures of a task, and its cells."""
    if isinstance(figures, Classification):
        return ("accuracy", "95% interval", "top-5", "macro F1"), _class_cells
    if isinstance(figures, Regression):
        return ("MAE", "RMSE", "R2", "largest error"), _number_cells
    return ("mAP@0.5:0.95", "mAP@0.5", "mAP@0.75", "boxes", "found"), _box_cells


def _class_cells(figures: Figures) -> _Row:
    assert isinstance(figures, Classification)
    low, high = figures.interval
    return (
        f"{figures.accuracy:.2%}",
        f"{low:.2%} to {high:.2%}",
        "-" if figures.top_5 is None else f"{figures.top_5:.2%}",
        f"{figures.macro_f1:.4f}",
    )


def _number_cells(figures: Figures) -> _Row:
    assert isinstance(figures, Regression)
    numbers = (figures.mae, figures.rmse)
    return (*(f"{one:.4g}" for one in numbers), _share(figures.r2), f"{figures.largest_error:.4g}")


def _box_cells(figures: Figures) -> _Row:
    assert isinstance(figures, Detection)
    shares = (figures.map, figures.map_50, figures.map_75)
    return (*map(_share, shares), f"{figures.boxes:,}", f"{figures.found:,}")


def _parts(figures: Figures, where: str) -> Table:
    """The classes or numbers of one runtime, the worst first."""
    if isinstance(figures, Classification):
        classes = sorted(figures.classes, key=lambda one: math.inf if one.f1 is None else one.f1)
        headings: _Row = ("class", "samples", "predicted", "precision", "recall", "F1")
        rows = [
            (
                c.name,
                f"{c.samples:,}",
                f"{c.predicted:,}",
                *map(_share, (c.precision, c.recall, c.f1)),
            )
            for c in classes
        ]
    elif isinstance(figures, Regression):
        headings = ("number", "MAE", "RMSE", "R2")
        worst = sorted(enumerate(figures.numbers), key=lambda one: -one[1].mae)
        rows = [(str(n), f"{f.mae:.4g}", f"{f.rmse:.4g}", _share(f.r2)) for n, f in worst]
    else:
        boxes = sorted(figures.classes, key=lambda one: math.inf if one.ap is None else one.ap)
        headings = ("class", "boxes", "found", "AP@0.5:0.95", "AP@0.5")
        rows = [
            (b.name, f"{b.boxes:,}", f"{b.found:,}", _share(b.ap), _share(b.ap_50)) for b in boxes
        ]
    more = f" ({_SHOWN} of {len(rows)}; --json has all)" if len(rows) > _SHOWN else ""
    table = Table(title=f"{escape(where)}, worst first{more}", header_style="bold")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left")
    for row in rows[:_SHOWN]:
        table.add_row(escape(row[0]), *row[1:])
    return table


def _confusions(figures: Classification) -> str:
    """The pairs of classes that are confused most."""
    found = figures.confusions
    if not found:
        return "No class was confused with another."
    pairs = (f"{one.truth} taken for {one.predicted} ({one.count:,})" for one in found[:_SHOWN])
    rest = len(found) - _SHOWN
    more = f", and {rest:,} more pairs" if rest > 0 else ""
    return f"Confused most: {', '.join(pairs)}{more}. --json and --html have the whole matrix."


def _keywords(columns: Sequence[Measured]) -> Table:
    """False accepts and false rejects of each runtime."""
    known = [(one.name, one.keywords) for one in columns if one.keywords is not None]
    _, first = known[0]
    table = Table(
        title=f"keywords from a score of {first.threshold:g} on, in {first.hours:.3g} hours of "
        "sound without keywords",
        header_style="bold",
    )
    table.add_column("runtime")
    headings = ("false accepts", "an hour", "false rejects", *map(escape, first.names))
    for heading in headings:
        table.add_column(heading, justify="right")
    for name, keywords in known:
        rate = keywords.false_reject_rate
        table.add_row(
            name,
            f"{keywords.false_accepts:,}",
            f"{keywords.false_accepts_per_hour:.2f}",
            "-" if rate is None else f"{rate:.2%}",
            *(f"{count:,}" for count in keywords.accepts),
        )
    return table


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
