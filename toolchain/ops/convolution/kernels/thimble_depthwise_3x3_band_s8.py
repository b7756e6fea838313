"""`thimble_depthwise_3x3_band_s8`, and `thimble_depthwise_3x3_band_step_2_s8` of a stride of 2
along rows: a depthwise convolution of 3x3 from bands of short lines, the quicker the more rows a
band has. Lines are made channel by channel, or of four channels at once.
"""

from __future__ import annotations

from types import MappingProxyType

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import lines_3x3, walks, windows

FUNCTIONS = MappingProxyType(
    {1: "thimble_depthwise_3x3_band_s8", 2: "thimble_depthwise_3x3_band_step_2_s8"}
)
"""By the stride along rows."""
_HEADER = "source/convolution/thimble_depthwise_3x3_band.h"
FOURS = kit.defined(_HEADER, "THIMBLE_FOURS")
"""Channels whose lines are made together."""
LINE_BYTES = (
    kit.defined(_HEADER, "THIMBLE_NARROW_LINE"),
    kit.defined(_HEADER, "THIMBLE_WIDE_LINE"),
)
"""How long lines may be that are made channel by channel."""
FOURS_LINE_BYTES = (
    kit.defined(_HEADER, "THIMBLE_FOURS_LINE"),
    kit.defined(_HEADER, "THIMBLE_WIDE_FOURS_LINE"),
)
"""How long lines of each of FOURS channels may be."""


def kernel(op: kit.Operator[Convolution], walk: walks.Walk, endings: walks.Ended) -> kit.Kernel:
    """One of its lines must be long enough. `endings` is as in `lines_kernel`."""
    transposed = " transposed" if walk.transposed else ""
    fours = " of four channels" if walk.at_once else ""
    rows = op.y.shape[2 if walk.transposed else 1]
    lines = lines_3x3.Lines(
        scratch_bytes(walk, op.y.shape),
        _scratch_touched,
        _lines_of_four if walk.at_once else _lines,
        bands=-(-rows // walk.band),
        form=f"{walk.band} rows{fours}{transposed}",
    )
    function = FUNCTIONS[walk.window.stride[1]]
    return lines_3x3.lines_kernel(op, function, walk, endings, lines)


def line_of(columns: int, stride: int, at_once: int) -> int | None:
    """Bytes of the shortest line that holds so many columns; None if all are shorter. `at_once`: of
    each of FOURS channels, or of one (0).
    """
    seen = lines_3x3.line_bytes(columns, stride)
    lengths = FOURS_LINE_BYTES if at_once else LINE_BYTES
    return next((line for line in lengths if seen <= line), None)


def scratch_bytes(walk: walks.Walk, output: tuple[int, ...]) -> int:
    """Scratch of the lines of a band, for an output of this shape."""
    columns = output[1 if walk.transposed else 2]
    line = line_of(columns, walk.window.stride[1], walk.at_once)
    assert line is not None
    return line * max(walk.at_once, 1) * ((walk.band - 1) * walk.window.stride[0] + lines_3x3.LINES)


def _scratch_touched(call: kit.Call) -> int:
    seen, at_once = lines_3x3.line_bytes(call["shape.output_w"], call["shape.stride_w"]), 1
    lengths = LINE_BYTES
    if call.get("shape.at_once"):
        lengths, at_once = FOURS_LINE_BYTES, call["shape.at_once"]
    line = at_once * next(n for n in lengths if seen <= n)
    return line * ((call["shape.band"] - 1) * call["shape.stride_h"] + lines_3x3.LINES)


def _bands(
    call: kit.Call, channels: int, lengths: tuple[int, ...], at_once: int
) -> tuple[int, windows.Counts]:
    """Image rows that are read for a channel, and the terms of the rest that is done with lines.
    `at_once`: channels whose lines lie together, in lines of the first of `lengths` bytes that is
    enough.
    """
    pitch = at_once * next(n for n in lengths if 4 * lines_3x3.pairs_of(call) <= n) / 16
    out_h, band, stride = (call[f"shape.{name}"] for name in ("output_h", "band", "stride_h"))
    in_h, times = call["shape.input_h"], channels / at_once
    lines = blank = kept = of_rows = of_lines = 0
    for row in range(0, out_h, band):
        had = max(lines_3x3.LINES - stride, 0) if row else 0
        top = row * stride - call["shape.pad_top"] + had
        rows = min(band, out_h - row)
        wanted = (rows - 1) * stride + lines_3x3.LINES - had
        seen = max(min(top + wanted, in_h) - max(top, 0), 0)
        lines, blank, kept = lines + seen, blank + wanted - seen, kept + had
        of_rows, of_lines = of_rows + (rows > 1), of_lines + (seen > 1)
    bands = -(-out_h // band)
    several = times * (bands > 1)
    return lines, {
        "first blank": ((band - 1) * stride + lines_3x3.LINES) * pitch,
        "band": times * bands,
        "band of several lines": times * of_lines,
        "channel of several rows": channels * of_rows,
        "begun band": several * bands,
        "four words blank": several * blank * pitch,
        "four words kept": several * kept * pitch,
    }


def _lines(call: kit.Call, channels: int, inside: int) -> windows.Counts:
    """Lines are made channel by channel."""
    lines, terms = _bands(call, channels, LINE_BYTES, 1)
    return terms | {
        "line": channels * lines,
        "line of several fours": channels * lines * (inside >= 2 * lines_3x3.FOUR),
        "line four": channels * lines * (inside // 4),
        "line two": channels * lines * (inside % 4 // 2),
        "line one": channels * lines * (inside % 2),
    }


def _lines_of_four(call: kit.Call, channels: int, inside: int) -> windows.Counts:
    """Lines are made of four channels at once."""
    lines, terms = _bands(call, channels, FOURS_LINE_BYTES, FOURS)
    odd = call["shape.pad_left"] % 2 if inside else 0
    each, pairs = channels / FOURS * lines, (inside - odd) // 2
    return terms | {
        "line of four channels": each,
        "line of several pairs": each * (pairs > 1),
        "first pixel of four channels": each * odd,
        "pair of pixels of four channels": each * pairs,
        "last pixel of four channels": each * ((inside - odd) % 2),
    }
