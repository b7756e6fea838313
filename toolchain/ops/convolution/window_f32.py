"""The argument that all float32 kernels with a sliding window share: `thimble_window_f32`.

Each of the functions below reads such an argument back, to say which bytes a call touches.
"""

from __future__ import annotations

import math

from toolchain.ops import kit
from toolchain.ops.readers.float32 import range_of

_WIDTH = 4
"""Bytes of a float32."""


def window_f32(
    x: tuple[int, ...],
    y: tuple[int, ...],
    window: kit.Window,
    activation: kit.Activation,
    depth: int = 0,
) -> kit.Struct:
    """The struct for a window over an NHWC image of shape `x` that makes one of shape `y`.

    `depth` is the number of channels that a filter reads; by default all of them.
    """
    low, high = range_of(activation)
    return kit.Struct(
        "thimble_window_f32",
        {
            "batches": x[0],
            **kit.sized("input", x[1:]),
            **kit.sized("output", y[1:]),
            **kit.sized("kernel", window.kernel),
            "depth": depth or x[3],
            **kit.window_members(window),
            "min": low,
            "max": high,
        },
    )


def image_f32(call: kit.Call, image: str) -> kit.Extent:
    """The extent of a call's `input` or `output`."""
    return kit.whole(math.prod(kit.shape_in(call, "window", image)), _WIDTH)


def filters_f32(call: kit.Call, depth: int) -> kit.Extent:
    """The extent of the filters: one per output channel, of `depth` channels."""
    taps = call["window.kernel_h"] * call["window.kernel_w"]
    return kit.whole(call["window.output_c"] * taps * depth, _WIDTH)


def bias_f32(call: kit.Call) -> kit.Extent:
    """The extent of the bias: one float32 per output channel."""
    return kit.whole(call["window.output_c"], _WIDTH)
