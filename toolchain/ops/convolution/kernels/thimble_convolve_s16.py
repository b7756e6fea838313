"""`thimble_convolve_s16` and `thimble_transpose_conv_s16`: convolutions of int16 images, with sums
in int64. The former has groups; those of one channel are a depthwise convolution, whose filters are
packed.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from toolchain.ops import kit
from toolchain.ops.convolution import parts
from toolchain.ops.convolution.common import filters_of, window_of
from toolchain.ops.convolution.kernels import int16, shapes

FUNCTIONS = MappingProxyType(
    {
        "conv2d": "thimble_convolve_s16",
        "depthwise_conv2d": "thimble_convolve_s16",
        "transpose_conv2d": "thimble_transpose_conv_s16",
    }
)
"""By the kind."""


def kernel(op: kit.Operator[Any], core: kit.Core) -> kit.Kernel:
    """The kernel of any convolution. Raises as `int16.per_channel`."""
    low, high = kit.clamp_range(op.attributes.activation, op.y)
    filters: kit.Argument = kit.Input(kit.WEIGHTS)
    depth, constants = op.input(kit.WEIGHTS).shape[3], int16.per_channel(op)
    if op.kind == "depthwise_conv2d":
        filters, depth, note = kit.Packed("weights"), 1, "filters, channel x height x width"
        constants = kit.constant("weights", filters_of(op).reshape(-1), note), *constants
    packed: dict[str, kit.Argument] = {
        name: kit.Packed(name) for name in ("bias", "multiplier", "shift")
    }
    limits: dict[str, kit.Argument] = {"min": low, "max": high}
    arguments: dict[str, kit.Argument] = {
        "shape": parts.conv_shape(op, window_of(op), depth),
        "scaling": kit.Struct("thimble_conv_s16_scaling", packed | limits),
        "input": kit.Input(kit.INPUT),
        "filters": filters,
        "output": kit.Output(0),
    }
    return kit.Kernel((kit.Call(FUNCTIONS[op.kind], arguments),), _extents, constants=constants)


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    channels = call["shape.output_c"]
    read = {kit.INPUT: shapes.image(shapes.input_shape(call), 2)}
    constants = int16.per_channel_bytes(channels)
    if isinstance(call.arguments["filters"], kit.Packed):
        constants["weights"] = channels * shapes.taps(call)
    else:
        read[kit.WEIGHTS] = kit.whole(channels * shapes.taps(call))
    written = {0: shapes.image(shapes.output_shape(call), 2)}
    return kit.Extents(read, written, constants, largest=kit.reach_in(call, "shape"))
