"""A scatter plot on logarithmic axes, as SVG text: no plotting library is needed for one figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 640, 380, 70, 50, 30, 150
_COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44", "#8a5a9e", "#b07d12")


def scatter(
    title: str,
    across: str,
    up: str,
    series: Mapping[str, Sequence[tuple[float, float, bool]]],
) -> str:
    """Points (x, y, filled) by series; all x and y must be positive."""
    points = [p for entries in series.values() for p in entries]
    x_low, x_high = _decades([p[0] for p in points])
    y_low, y_high = _decades([p[1] for p in points])

    def x_of(value: float) -> float:
        share = (math.log10(value) - x_low) / (x_high - x_low)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y_of(value: float) -> float:
        share = (math.log10(value) - y_low) / (y_high - y_low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-size="14">{escape(title)}</text>',
    ]
    for exponent in range(x_low, x_high + 1):
        x = x_of(10.0**exponent)
        parts.append(_line(x, _TOP, x, _HEIGHT - _BOTTOM))
        parts.append(
            f'<text x="{x:.0f}" y="{_HEIGHT - 32}" text-anchor="middle">{10.0**exponent:g}</text>'
        )
    for exponent in range(y_low, y_high + 1):
        y = y_of(10.0**exponent)
        parts.append(_line(_LEFT, y, _WIDTH - _RIGHT, y))
        parts.append(
            f'<text x="{_LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{10.0**exponent:g}</text>'
        )
    parts.append(f'<text x="{_LEFT + 150}" y="{_HEIGHT - 10}">{escape(across)}</text>')
    parts.append(f'<text x="14" y="{_TOP + 130}" transform="rotate(-90 14 {_TOP + 130})">')
    parts.append(f"{escape(up)}</text>")
    for index, (name, entries) in enumerate(series.items()):
        colour = _COLOURS[index % len(_COLOURS)]
        for x, y, filled in entries:
            parts.append(
                f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="4" stroke="{colour}" '
                f'fill="{colour if filled else "white"}"/>'
            )
        y = _TOP + 20 + 20 * index
        parts.append(f'<circle cx="{_WIDTH - _RIGHT + 15}" cy="{y}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{_WIDTH - _RIGHT + 25}" y="{y + 4}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="#ddd"/>'


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low = math.floor(math.log10(min(values)))
    return low, max(math.ceil(math.log10(max(values))), low + 1)
