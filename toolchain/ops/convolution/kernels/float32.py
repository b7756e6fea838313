"""Parts of the kernels of float32 convolutions: a call by `thimble_window_f32`, and the bytes it
touches.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.window_f32 import bias_f32, filters_f32, image_f32, reach_f32


def float_kernel(
    function: str, window: kit.Struct, *, depthwise: bool = False, note: str = ""
) -> kit.Kernel:
    """A call of `function` with a `thimble_window_f32`, of an operator with filters and a bias or
    none.
    """
    arguments: dict[str, kit.Argument] = {
        "window": window,
        "input": kit.Input(kit.INPUT),
        "filters": kit.Input(kit.WEIGHTS),
        "bias": kit.Input(kit.BIAS),
        "output": kit.Output(0),
    }
    return kit.Kernel(
        (kit.Call(function, arguments, note=note),), lambda touched: _extents(touched, depthwise)
    )


def _extents(touched: kit.Touched, depthwise: bool) -> kit.Extents:
    call = touched.call
    read = {kit.INPUT: image_f32(call, "input")}
    read[kit.WEIGHTS] = filters_f32(call, 1 if depthwise else call["window.depth"])
    if touched.has(kit.BIAS):
        read[kit.BIAS] = bias_f32(call)
    return kit.Extents(read, {0: image_f32(call, "output")}, largest=reach_f32(call))
