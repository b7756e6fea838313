"""Parts of the kernels of depthwise convolutions of 3x3: channel by channel, from lines of pixels
in scratch, in words of two pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import endings, overlaps
from toolchain.ops.convolution.common import Convolution, window_of
from toolchain.ops.convolution.kernels import shapes, walks, windows

LINES = kit.defined("source/convolution/thimble_depthwise_3x3.h", "THIMBLE_LINES")
"""Lines that a window sees."""
FOUR = 4
"""Pixels that the loops take at a time. A core that guesses at branches is wrong at the end of a
loop that turned more than once."""


def line_bytes(columns: int, stride: int) -> int:
    """Scratch of one image line, for `columns` outputs in twos."""
    return 4 * (-(-columns // 2) * stride + 1)


@dataclass(frozen=True)
class Lines:
    """How a function makes lines, and how often it walks the image.

    scratch_bytes    of the kernel.
    scratch_touched  scratch that a call touches.
    terms  what a call does with lines: the terms of so many channels whose lines show so many
           pixels of the image.
    bands  walks over the image, for each channel.
    form   tells the kernel from others of the same function.
    """

    scratch_bytes: int
    scratch_touched: Callable[[kit.Call], int]
    terms: Callable[[kit.Call, int, int], windows.Counts]
    bands: int = 1
    form: str = ""


def lines_kernel(
    op: kit.Operator[Convolution],
    function: str,
    walk: walks.Walk,
    endings: walks.Ended,
    lines: Lines,
) -> kit.Kernel:
    """A call of `function`. `endings` is as `walks.ended` gives it, the same for all forms."""
    window = window_of(op)

    def packed() -> kit.Int32:
        scales, ending = endings()
        return _packed(walks.along_walk(scales.filters, window, walk.transposed), ending)

    def extents(touched: kit.Touched) -> kit.Extents:
        call = touched.call
        parameters, scratch = 20 * call["shape.output_c"], lines.scratch_touched(call)
        return shapes.extents_of_images(touched, parameters, scratch)

    return walks.walked_depthwise(
        op,
        function,
        walk,
        packed,
        scratch_bytes=lines.scratch_bytes,
        extents=extents,
        overlaps=lambda: overlaps.line_overlaps(op, window, walk.transposed),
        terms=lambda call: _terms(op, call, endings()[1], lines),
        form=lines.form,
    )


def _packed(taps: packing.Int8, ending: packing.Ending) -> kit.Int32:
    """Filters [channels, 9] among what follows their sums."""
    rounding = ending.rounding.astype("<i2").view(np.int8).reshape(-1, 2)
    return packing.joined(
        [
            np.stack([ending.bias, ending.multiplier], axis=1),
            packing.as_words(taps[:, [0, 3, 1, 4]]),
            packing.as_words(
                np.stack([taps[:, 6], ending.code.astype(np.int8), taps[:, 7], taps[:, 2]], 1)
            ),
            packing.as_words(np.concatenate([rounding, taps[:, [5, 8]]], axis=1)),
        ]
    )


def pairs_of(call: kit.Call) -> int:
    """Words of a line in scratch that hold pixels."""
    return -(-call["shape.output_w"] // 2) * call["shape.stride_w"] + 1


def _terms(
    op: kit.Operator[Convolution], call: kit.Call, ending: packing.Ending, lines: Lines
) -> kit.Terms:
    """Channels end in three ways: rounded once, rounded twice, and by a slow path."""
    path, slow = walks.slow_endings(op, ending)
    ends_once = int((ending.code == endings.CODE_ONCE).sum())
    ends_slowly = int(slow.sum())
    ends_twice = len(slow) - ends_once - ends_slowly
    batches, channels = op.y.shape[0], op.y.shape[3]
    out_h, out_w = call["shape.output_h"], call["shape.output_w"]
    inside = min(max(2 * pairs_of(call) - call["shape.pad_left"], 0), call["shape.input_w"])
    at = " at stride 2" if call["shape.stride_w"] == 2 else ""
    quick = ends_once + ends_twice
    terms: windows.Counts = {
        "call": 1.0,
        "channel": batches * channels * lines.bands,
        "channel rounded twice": batches * ends_twice * lines.bands,
        "row": batches * quick * out_h,
        "row of several fours": batches * quick * out_h * (out_w >= 2 * FOUR),
        "narrow four": batches * channels * out_h * out_w / 4 * kit.is_narrow(op),
    }
    terms |= lines.terms(call, batches * channels, inside)
    for how, count in (("", ends_once), (" rounded twice", ends_twice)):
        rows = batches * count * out_h
        terms |= {
            f"four{at}{how}": rows * (out_w // 4),
            f"two{at}{how}": rows * (out_w % 4 // 2),
            f"lone output{how}": rows * (out_w % 2),
        }
    slow_rows = batches * ends_slowly * out_h
    return terms | {
        f"{path} row": slow_rows,
        f"{path} output": slow_rows * out_w,
    }
