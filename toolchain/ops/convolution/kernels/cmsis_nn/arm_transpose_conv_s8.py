"""`arm_transpose_conv_s8` of 5.0.0, which keeps an int32 for each tap of each pixel of the input,
and one for each element of the output.

It walks as many windows as fit into the output and the padding; the offsets of the padding make
them as many as the input has pixels.
"""

from __future__ import annotations

import math
from typing import Any

from toolchain.ops import cmsis_structs, kit
from toolchain.ops.convolution import parts
from toolchain.ops.convolution.common import window_of
from toolchain.ops.convolution.kernels import shapes
from toolchain.ops.convolution.kernels.cmsis_nn import shared

FUNCTION = "arm_transpose_conv_s8"


def kernel(op: kit.Operator[Any], core: kit.Core) -> kit.Kernel:
    """Raises NoKernelError for ONNX's rounding and for sizes that the function does not hold, and
    as `channel_factors`.
    """
    window = window_of(op)
    shared.require_rounding(op.attributes.rounding)
    x, weights, y = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    if max(*x.shape, *weights.shape, *y.shape) > shared.MOST_SIZE:
        raise kit.NoKernelError(
            f"CMSIS-NN's convolutions take no dimension above {shared.MOST_SIZE:,}"
        )
    column, image = _scratch(x.shape, y.shape, window.kernel)
    stride, pad = window.stride, (window.padding.top, window.padding.left)
    beyond = [
        (x.shape[1 + i] - 1) * stride[i] + window.kernel[i] - pad[i] - y.shape[1 + i]
        for i in range(2)
    ]
    transposed = cmsis_structs.context(image, column), cmsis_structs.tile(*beyond)
    arguments = parts.cmsis_arguments(op, column, transposed)
    return kit.Kernel(
        (kit.Call(FUNCTION, arguments, status=True),),
        _extents,
        constants=shared.channel_factors(op),
        scratch_bytes=column + image,
    )


def _scratch(x: tuple[int, ...], y: tuple[int, ...], kernel: tuple[int, int]) -> tuple[int, int]:
    """Bytes of the sums of each tap of one image, and of those of its output."""
    return 4 * math.prod(kernel) * x[1] * x[2] * y[3], 4 * math.prod(y[1:])


def _extents(touched: kit.Touched) -> kit.Extents:
    """The windows that the output and its paddings hold must be one for each pixel of the input."""
    call = touched.call
    x, y, kernel = (cmsis_structs.dims_of(call, name) for name in ("input", "output", "filter"))
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
    return kit.Extents(inputs, {0: written}, parts.factor_bytes(y[3]), scratch, max(windows))
