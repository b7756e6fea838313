"""`arm_transpose_conv_s8` of 5.0.0, which keeps an int32 for each tap of each pixel of the input,
and one for each element of the output.

It walks as many windows as fit into the output and the padding; the offsets of the padding make
them as many as the input has pixels.
"""

from __future__ import annotations

import math

import numpy as np

from toolchain.ops import cmsis_structs, kit
from toolchain.ops.convolution.kernels import shapes
from toolchain.ops.convolution.kernels.cmsis_nn import shared

FUNCTION = "arm_transpose_conv_s8"


def kernel(
    op: kit.AnyOperator, window: kit.Window, activation: kit.Activation, rounding: kit.Rounding
) -> kit.Kernel:
    """`window` is the forward convolution's. Raises NoKernelError for ONNX's rounding and for sizes
    that the function does not hold, and as `channel_factors`.
    """
    shared.require_rounding(rounding)
    x, weights, y = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    channels, height, width, depth = weights.shape
    if max(*x.shape, *weights.shape, *y.shape) > shared.MOST_SIZE:
        raise kit.NoKernelError(
            f"CMSIS-NN's convolutions take no dimension above {shared.MOST_SIZE:,}"
        )
    column, image = _scratch(x.shape, y.shape, (height, width))
    stride, pad = window.stride, (window.padding.top, window.padding.left)
    beyond = [
        (x.shape[1 + i] - 1) * stride[i] + window.kernel[i] - pad[i] - y.shape[1 + i]
        for i in range(2)
    ]
    params: dict[str, kit.Argument] = {
        "input_offset": -x.q.zero_point,
        "output_offset": y.q.zero_point,
        "stride": cmsis_structs.tile(*stride),
        "padding": cmsis_structs.tile(*pad),
        "padding_offsets": cmsis_structs.tile(*beyond),
        "dilation": cmsis_structs.tile(1, 1),
        "activation": cmsis_structs.limits(*kit.clamp_range(activation, y)),
    }
    factors: dict[str, kit.Argument] = {
        "multiplier": kit.Packed("multiplier", writable=True),
        "shift": kit.Packed("shift", writable=True),
    }
    arguments: dict[str, kit.Argument] = {
        "ctx": cmsis_structs.context(column),
        "output_ctx": cmsis_structs.context(image, column),
        "transpose_conv_params": kit.Struct("cmsis_nn_transpose_conv_params", params),
        "quant_params": kit.Struct("cmsis_nn_per_channel_quant_params", factors),
        "input_dims": cmsis_structs.dims(*x.shape),
        "input_data": kit.Input(0),
        "filter_dims": cmsis_structs.dims(channels, height, width, depth),
        "filter_data": kit.Input(1),
        "bias_dims": cmsis_structs.dims(c=channels),
        "bias_data": kit.Input(2),
        "output_dims": cmsis_structs.dims(*y.shape),
        "output_data": kit.Output(0),
    }
    rows = kit.constant_of(weights).astype(np.int8, copy=False).reshape(channels, -1)
    return kit.Kernel(
        (kit.Call(FUNCTION, arguments, status=True),),
        _extents,
        constants=shared.channel_factors(op, rows),
        scratch_bytes=column + image,
    )


def _scratch(x: tuple[int, ...], y: tuple[int, ...], kernel: tuple[int, int]) -> tuple[int, int]:
    """Bytes of the sums of each tap of one image, and of those of its output."""
    return 4 * math.prod(kernel) * x[1] * x[2] * y[3], 4 * math.prod(y[1:])


def _extents(touched: kit.Touched) -> kit.Extents:
    """The windows that the output and its paddings hold must be one for each pixel of the input."""
    call = touched.call
    x, y, kernel = (shared.dims_of(call, name) for name in ("input", "output", "filter"))
    params = "transpose_conv_params"
    windows = [
        (y[i] + call[f"{params}.padding_offsets.{axis}"] + call[f"{params}.padding.{axis}"])
        for i, axis in enumerate("hw", start=1)
    ]
    walked = [
        (size - kernel[i]) // call[f"{params}.stride.{axis}"] + 1
        for i, (axis, size) in enumerate(zip("hw", windows, strict=True), start=1)
    ]
    written = shapes.image(y)
    if walked != [x[1], x[2]]:  # sums go astray
        written = kit.Extent(0, written.end, touched=0)
    inputs = {0: shapes.image(x), 1: kit.whole(math.prod(kernel))}
    if touched.has(2):
        inputs[2] = kit.whole(y[3], 4)
    scratch = sum(_scratch(x, y, (kernel[1], kernel[2])))
    return kit.Extents(inputs, {0: written}, shared.factor_bytes(y[3]), scratch, max(windows))
