"""The front of plans as SVG text: arena against predicted slowdown, without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from toolchain.files.printable import printable
from toolchain.report.front import FrontRow

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 420, 80, 25, 40, 55
_LINE, _GRID = "#1b6ca8", "#dddddd"
_TICKS = 6


def front_svg(rows: Sequence[FrontRow], title: str) -> str:
    """A staircase: between two rows, a RAM budget buys the cheaper one. Rows above it take less
    flash.

    Each point's tooltip has its figures.
    """
    x_step = _tick(100 * max(row.slowdown for row in rows) or 1.0)
    y_step = _tick(max(row.peak_bytes for row in rows) / 1024 or 1.0)
    x_ticks = math.ceil(100 * max(row.slowdown for row in rows) / x_step) or 1
    y_ticks = math.ceil(max(row.peak_bytes for row in rows) / 1024 / y_step) or 1

    def x_of(percent: float) -> float:
        return _LEFT + percent / (x_ticks * x_step) * (_WIDTH - _LEFT - _RIGHT)

    def y_of(kib: float) -> float:
        return _HEIGHT - _BOTTOM - kib / (y_ticks * y_step) * (_HEIGHT - _BOTTOM - _TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="14">{escape(printable(title))}</text>',
        *_axes([(x_of(i * x_step), f"{i * x_step:g}%") for i in range(x_ticks + 1)], across=True),
        *_axes([(y_of(i * y_step), f"{i * y_step:g}") for i in range(y_ticks + 1)], across=False),
        _text(_WIDTH / 2, _HEIGHT - 12, "predicted slowdown"),
        f'<g transform="rotate(-90 18 {_HEIGHT / 2:.0f})">',
        _text(18, _HEIGHT / 2, "arena in KiB"),
        "</g>",
    ]
    points = [(x_of(100 * row.slowdown), y_of(row.peak_bytes / 1024)) for row in rows]
    corners = [points[0]]
    for x, y in points:
        if y > corners[-1][1]:  # downwards
            corners += [(x, corners[-1][1]), (x, y)]
    corners.append((x_of(x_ticks * x_step), corners[-1][1]))
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    parts.append(f'<polyline points="{path}" fill="none" stroke="{_LINE}"/>')
    for row, (x, y) in zip(rows, points, strict=True):
        figures = f"{row.peak_bytes:,} B at {row.slowdown:.2%}"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{_LINE}">'
            f"<title>{figures}</title></circle>"
        )
    return "\n".join([*parts, "</svg>", ""])


FORMAT = front_svg


def _tick(most: float) -> float:
    """1, 2 or 5 times a power of ten, about `_TICKS` of which make `most`."""
    power: float = 10.0 ** math.floor(math.log10(most / _TICKS))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit * _TICKS >= most)


def _axes(ticks: Sequence[tuple[float, str]], *, across: bool) -> Iterator[str]:
    for at, label in ticks:
        if across:
            yield _text(at, _HEIGHT - _BOTTOM + 18, label)
            yield _line(at, _TOP, at, _HEIGHT - _BOTTOM)
        else:
            yield _text(_LEFT - 28, at + 4, label)
            yield _line(_LEFT, at, _WIDTH - _RIGHT, at)


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{_GRID}"/>'


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(printable(text))}</text>'
