"""What the kernels of depthwise convolutions of 3x3 share: channel by channel, from lines of pixels
in scratch, in words of two pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import endings, overlaps
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import shapes, walks, windows

LINES = kit.defined("source/convolution/thimble_depthwise_3x3.h", "THIMBLE_LINES")
"""Lines that a window sees."""
FOUR = 4
"""Pixels that the loops take at a time. A core that guesses at branches is wrong at the end of a
loop that turned more than once."""


def line_bytes(columns: int, stride: int) -> int:
    """Scratch of one image line, for `columns` outputs in twos."""
    return 4 * (-(-columns // 2) * stride + 1)


def lines_kernel(
    op: kit.Operator[Convolution],
    function: str,
    window: kit.Window,
    walk: walks.Walk,
    endings: Callable[[], tuple[packing.Scaling, packing.Ending]],
    *,
    scratch_bytes: int,
    scratch_touched: Callable[[kit.Call], int],
    line_terms: Callable[[kit.Call, int, int], windows.Counts],
    bands: int = 1,
    form: str = "",
) -> kit.Kernel:
    """A call of `function`, which walks the image `bands` times for each channel.

    `endings` is as `walks.ended` gives it, the same for all forms. `scratch_touched` tells the
    scratch of a call, `line_terms` the terms of what it does with lines: those of so many channels
    whose lines show so many pixels of the image.
    """
    transposed = walk.transposed

    def packed() -> kit.Int32:
        scales, ending = endings()
        return _packed(walks.along_walk(scales.filters, window, transposed), ending)

    def extents(touched: kit.Touched) -> kit.Extents:
        call = touched.call
        return shapes.extents_of_images(touched, 20 * call["shape.output_c"], scratch_touched(call))

    found = walks.walked_depthwise(op, function, walk, packed, scratch_bytes, extents)
    return replace(
        found,
        find_overlaps=lambda: overlaps.line_overlaps(op, window, transposed),
        find_terms=lambda: _terms(op, found.calls[0], endings()[1], bands, line_terms),
        form=form,
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
    op: kit.Operator[Convolution],
    call: kit.Call,
    ending: packing.Ending,
    bands: int,
    line_terms: Callable[[kit.Call, int, int], windows.Counts],
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
        "channel": batches * channels * bands,
        "channel rounded twice": batches * ends_twice * bands,
        "row": batches * quick * out_h,
        "row of several fours": batches * quick * out_h * (out_w >= 2 * FOUR),
        "narrow four": batches * channels * out_h * out_w / 4 * kit.is_narrow(op),
    }
    terms |= line_terms(call, batches * channels, inside)
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
