"""Rows beside those of the sweep before, and beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolchain.sweep.store import COMPARED, Before, Row


@dataclass(frozen=True)
class Change:
    """One figure of one case that is another than before. None: it had none.

    `figure`: one of `store.COMPARED`, or `ok`.
    """

    case: str
    figure: str
    before: float | None
    now: float | None


@dataclass(frozen=True)
class Changes:
    """`new`: cases that the sweep before did not have; `gone`: those that only it had."""

    changes: tuple[Change, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]


def changes(rows: Sequence[Row], before: Mapping[str, Before]) -> Changes:
    """The changes since the sweep before. No case is new where there was none."""
    names = [row.case.name for row in rows]
    return Changes(
        tuple(change for row in rows for change in _of(row, before.get(row.case.name))),
        tuple(name for name in names if before and name not in before),
        tuple(name for name in before if name not in set(names)),
    )


def figures(row: Row) -> dict[str, float | None]:
    """The figures of a row that COMPARED names."""
    shown = {name: row.done.fields.get(name) for name in COMPARED}
    return {**shown, "milliseconds": row.latency.get("milliseconds")}


def _of(row: Row, before: Before | None) -> Iterator[Change]:
    if before is None:
        return
    name, now = row.case.name, figures(row)
    if row.ok != before.ok:
        yield Change(name, "ok", before.ok, row.ok)
    for figure in COMPARED:
        if now[figure] != before.figures[figure]:
            yield Change(name, figure, before.figures[figure], now[figure])


def pareto(rows: Sequence[Row]) -> frozenset[int]:
    """The rows of which no other needs no more RAM, flash and time, and less of one; rows that
    failed or have no time are left out. The first of equal rows counts.
    """
    points = []
    for place, row in enumerate(rows):
        figures_of_row = figures(row)
        point = tuple(figures_of_row[name] for name in ("ram_bytes", "flash_bytes", "milliseconds"))
        if row.ok and None not in point:
            points.append((point, place))
    kept: list[tuple[tuple[float | None, ...], int]] = []
    for point, place in sorted(
        points, key=lambda one: (one[0], one[1])
    ):  # a point's betters go before it
        if not any(all(a <= b for a, b in zip(other, point, strict=True)) for other, _ in kept):  # type: ignore[operator]
            kept.append((point, place))
    return frozenset(place for _, place in kept)
