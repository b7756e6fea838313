"""`thimble_convolve_f32`, `thimble_depthwise_conv_f32` and `thimble_transpose_conv_f32`:
convolutions in float32. The first has groups, and computes a fully connected layer, too.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from toolchain.ops import kit
from toolchain.ops.convolution.common import window_of
from toolchain.ops.convolution.window_f32 import bias_f32, filters_f32, image_f32, window_f32

FUNCTIONS = MappingProxyType(
    {
        "conv2d": "thimble_convolve_f32",
        "depthwise_conv2d": "thimble_depthwise_conv_f32",
        "transpose_conv2d": "thimble_transpose_conv_f32",
    }
)
"""By the kind."""
_LAYER = "A fully connected layer is a convolution of a line of pixels: each row is a pixel."


def kernel(op: kit.Operator[Any], core: kit.Core) -> kit.Kernel:
    """The kernel of any convolution."""
    depth = 1 if op.kind == "depthwise_conv2d" else op.input(kit.WEIGHTS).shape[3]
    window = window_f32(op.x.shape, op.y.shape, window_of(op), op.attributes.activation, depth)
    return _kernel(op.kind, window)


def layer(op: kit.Operator[Any], core: kit.Core) -> kit.Kernel:
    """The kernel of a fully connected layer."""
    units, depth = op.input(kit.WEIGHTS).shape
    rows = op.input(kit.INPUT).elements // depth
    images = (1, 1, rows, depth), (1, 1, rows, units)
    window = window_f32(*images, kit.Window((1, 1)), op.attributes.activation)
    return _kernel("conv2d", window, _LAYER)


def _kernel(kind: str, window: kit.Struct, note: str = "") -> kit.Kernel:
    arguments: dict[str, kit.Argument] = {
        "window": window,
        "input": kit.Input(kit.INPUT),
        "filters": kit.Input(kit.WEIGHTS),
        "bias": kit.Input(kit.BIAS),
        "output": kit.Output(0),
    }
    depthwise = kind == "depthwise_conv2d"
    call = kit.Call(FUNCTIONS[kind], arguments, note=note)
    return kit.Kernel((call,), lambda touched: _extents(touched, depthwise))


def _extents(touched: kit.Touched, depthwise: bool) -> kit.Extents:
    call = touched.call
    read = {kit.INPUT: image_f32(call, "input")}
    read[kit.WEIGHTS] = filters_f32(call, 1 if depthwise else call["window.depth"])
    if touched.has(kit.BIAS):
        read[kit.BIAS] = bias_f32(call)
    written = {0: image_f32(call, "output")}
    return kit.Extents(read, written, largest=kit.reach_in(call, "window"))
