"""The argument that all float32 kernels with a sliding window share: `thimble_window_f32`.

Each of the functions below reads such an argument back, to say which bytes a call touches.
"""

from __future__ import annotations

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
            "input_h": x[1],
            "input_w": x[2],
            "input_c": x[3],
            "output_h": y[1],
            "output_w": y[2],
            "output_c": y[3],
            "kernel_h": window.kernel[0],
            "kernel_w": window.kernel[1],
            "depth": depth or x[3],
            "stride_h": window.stride[0],
            "stride_w": window.stride[1],
            "dilation_h": window.dilation[0],
            "dilation_w": window.dilation[1],
            "pad_top": window.padding.top,
            "pad_left": window.padding.left,
            "min": low,
            "max": high,
        },
    )


def image_f32(call: kit.Call, end: str) -> kit.Extent:
    """The extent of a call's `input` or `output`."""
    sizes = (call[f"window.{end}_{size}"] for size in "hwc")
    elements = call["window.batches"]
    for size in sizes:
        elements *= size
    return kit.whole(elements, _WIDTH)


def filters_f32(call: kit.Call, depth: int) -> kit.Extent:
    """The extent of the filters: one per output channel, of `depth` channels."""
    taps = call["window.kernel_h"] * call["window.kernel_w"]
    return kit.whole(call["window.output_c"] * taps * depth, _WIDTH)


def bias_f32(call: kit.Call) -> kit.Extent:
    """The extent of the bias: one float32 per output channel."""
    return kit.whole(call["window.output_c"], _WIDTH)


def reach_f32(call: kit.Call) -> int:
    """The largest coordinate that the kernel computes (`Extents.largest`)."""
    return kit.window_reach(
        (
            call[f"window.output_{axis}"],
            call[f"window.stride_{axis}"],
            call[f"window.kernel_{axis}"],
            call[f"window.dilation_{axis}"],
            call[f"window.pad_{side}"],
        )
        for axis, side in (("h", "top"), ("w", "left"))
    )
