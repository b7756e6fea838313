"""The arena of one model with operators whole and with operators split, as one SVG picture.

    .venv/bin/python -m benchmarks.picture MODEL --board NAME -o docs/arena.svg
                                           [--ram SIZE | --max-slowdown PERCENT]

Two panels of one scale. Time runs to the right, by predicted cycles; bytes of the arena run up.
Each buffer is a shape, at the bytes where it lies, from its first step to its last one. Without
`--ram` and `--max-slowdown`, the split plan is the default one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from xml.sax.saxutils import escape

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
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    wanted = {"ram": arguments.ram, "max_slowdown": arguments.max_slowdown}
    asked = {key: value for key, value in wanted.items() if value is not None}
    whole, split = (
        plan_model(arguments.model, board=arguments.board, options=PlanOptions.of(each))
        for each in ({"no_split": True}, asked)
    )
    arguments.output.write_text(picture([("whole operators", whole), ("split", split)]))
    return 0


def picture(plans: Sequence[tuple[str, Plan]]) -> str:
    """SVG text: a panel for each plan, side by side, of one scale of bytes."""
    most = max(plan.arena.size_bytes for _, plan in plans)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for index, (title, plan) in enumerate(plans):
        left = _LEFT + index * (_PANEL + _GAP)
        parts += _panel(title, plan, left, most)
    return "\n".join([*parts, "</svg>", ""])


def _panel(title: str, plan: Plan, left: float, most_bytes: int) -> Iterator[str]:
    latency = predict_latency(plan)
    counts = [latency.costs[index].count for index in plan.schedule.order]
    ends = [0.0, *accumulate(counts)]
    across, up = _PANEL / (ends[-1] or 1), _TALL / most_bytes
    bottom = _TOP + _TALL
    arena = plan.arena.size_bytes
    yield _text(left, 18, f"{title}: {arena:,} B, {ends[-1] / 1e6:.2f} M {latency.unit}", "14")
    for index, buffer in enumerate(planned_buffers(plan)):
        colour = _COLOURS[index % len(_COLOURS)]
        outline = " ".join(
            f"{left + ends[min(step, len(counts))] * across:.1f},{bottom - at * up:.1f}"
            for step, at in _outline(buffer)
        )
        yield (
            f'<polygon points="{outline}" fill="{colour}" stroke="white" stroke-width="0.5">'
            f"<title>{escape(buffer.tensors[0])}: {buffer.bytes:,} B</title></polygon>"
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
