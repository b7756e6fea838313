"""The arena of one model with operators whole and with operators split, as one SVG picture.

    .venv/bin/python -m benchmarks.picture MODEL --board NAME [-o FILE.svg] [--json FILE]
                                           [--ram SIZE | --max-slowdown PERCENT]

Two panels of one scale. Time runs to the right, by predicted cycles; bytes of the arena run up.
Each buffer is a shape, at the bytes where it lies, from its first step to its last one. Without
`--ram` and `--max-slowdown`, the split plan is the default one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from benchmarks._results import json_option, write_results
from toolchain import PlanOptions, plan_model
from toolchain.memory.plan import Plan
from toolchain.report.buffers import planned_buffers
from toolchain.report.latency import predict_latency
from toolchain.report.planned import PlannedBuffer

SMALLEST = (
    "examples/digits/digits_int8.tflite --board netduinoplus2 --max-slowdown 20% "
    "-o {scratch}/arena.svg",
)
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 860, 300, 10, 46, 30
_PANEL = (_WIDTH - _LEFT - _GAP - 10) / 2
_TALL = _HEIGHT - _TOP - 34
_COLOURS = ("#1b6ca8", "#5aa0d0", "#0f4c75", "#8fc1e3", "#2f8f9d", "#3f7cac")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--board", required=True)
    parser.add_argument("--ram", default=None)
    parser.add_argument("--max-slowdown", default=None)
    parser.add_argument("-o", "--output", type=Path, help="where the picture goes, as SVG")
    json_option(parser)
    arguments = parser.parse_args()
    wanted = {"ram": arguments.ram, "max_slowdown": arguments.max_slowdown}
    asked = {key: value for key, value in wanted.items() if value is not None}
    whole, split = (
        plan_model(arguments.model, board=arguments.board, options=PlanOptions.of(each))
        for each in ({"no_split": True}, asked)
    )
    panels = [panel("whole operators", whole), panel("split", split)]
    write_results(arguments.json, panels)
    if arguments.output:
        arguments.output.write_text(picture(panels))
    return 0


def panel(title: str, plan: Plan) -> dict[str, Any]:
    """What a panel shows: `ends` of the steps in cycles from the start, and each buffer's `outline`
    of (step, byte of the arena).
    """
    latency = predict_latency(plan)
    return {
        "title": title,
        "arena_bytes": plan.arena.size_bytes,
        "unit": latency.unit,
        "ends": [0, *accumulate(latency.costs[index].count for index in plan.schedule.order)],
        "buffers": [
            {"tensor": buffer.tensors[0], "bytes": buffer.bytes, "outline": list(_outline(buffer))}
            for buffer in planned_buffers(plan)
        ],
    }


def picture(panels: Sequence[Mapping[str, Any]]) -> str:
    """SVG text: the panels side by side, of one scale of bytes."""
    most = max(panel["arena_bytes"] for panel in panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for index, one in enumerate(panels):
        parts += _panel(one, _LEFT + index * (_PANEL + _GAP), most)
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Mapping[str, Any], left: float, most_bytes: int) -> Iterator[str]:
    ends, arena = panel["ends"], panel["arena_bytes"]
    across, up = _PANEL / (ends[-1] or 1), _TALL / most_bytes
    bottom = _TOP + _TALL
    title = f"{panel['title']}: {arena:,} B, {ends[-1] / 1e6:.2f} M {panel['unit']}"
    yield _text(left, 18, title, "14")
    for index, buffer in enumerate(panel["buffers"]):
        colour = _COLOURS[index % len(_COLOURS)]
        outline = " ".join(
            f"{left + ends[min(step, len(ends) - 1)] * across:.1f},{bottom - at * up:.1f}"
            for step, at in buffer["outline"]
        )
        yield (
            f'<polygon points="{outline}" fill="{colour}" stroke="white" stroke-width="0.5">'
            f"<title>{escape(buffer['tensor'])}: {buffer['bytes']:,} B</title></polygon>"
        )
    top = bottom - arena * up
    right = left + _PANEL
    yield _line(left, bottom, right, bottom, "#444444")
    yield _line(left, top, right, top, "#d1495b")
    yield _text(left, top - 6, f"{arena / 1024:.1f} KiB", "11")
    yield _text(left, _HEIGHT - 10, "time", "11")


def _outline(buffer: PlannedBuffer) -> Iterator[tuple[int, int]]:
    """The corners of a buffer's live bytes: along the top in time, back along the bottom."""
    spans = [(first, after, low, high) for (first, low, high), (after, *_) in pairwise(buffer.runs)]
    for first, after, _, high in spans:
        yield first, buffer.offset + high
        yield after, buffer.offset + high
    for first, after, low, _ in reversed(spans):
        yield after, buffer.offset + low
        yield first, buffer.offset + low


def _text(x: float, y: float, text: str, size: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}">{escape(text)}</text>'


def _line(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    return f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}" stroke="{colour}"/>'


if __name__ == "__main__":
    sys.exit(main())
