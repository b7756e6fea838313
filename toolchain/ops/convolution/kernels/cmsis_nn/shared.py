"""Parts of CMSIS-NN's convolutions: arguments read back, constants, and calls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from toolchain.ops import cmsis_structs, kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import parts
from toolchain.ops.convolution.common import (
    Convolution,
    channel_requantisation,
    filters_of,
    weight_zero_point,
)
from toolchain.ops.convolution.kernels import int16, shapes

MOST_SIZE = 65535
"""The largest dimension that the convolutions hold, in uint16."""
HELIUM_PIXELS = 4
"""How many pixels the kernels for Helium compute at once."""


def require_plain(op: kit.Operator[Convolution]) -> None:
    """Raise NoKernelError for ONNX's rounding and for weights with a zero point."""
    require_rounding(op.attributes.rounding)
    if weight_zero_point(op.input(kit.WEIGHTS)):
        raise kit.NoKernelError("CMSIS-NN's convolutions know no zero point of weights")


def require_rounding(rounding: kit.Rounding) -> None:
    """Raise NoKernelError for ONNX's rounding."""
    if rounding is not kit.Rounding.TFLITE:
        raise kit.NoKernelError("CMSIS-NN rounds as TFLite does, not once as ONNX Runtime")


def channel_factors(op: kit.AnyOperator, spare: int = 0) -> tuple[kit.Constant, ...]:
    """Multiplier and shift of each channel; then `spare` more of 0.

    Raises ScaleError as `check_sums` does, and NoKernelError as `require_int32` does.
    """
    x, weights, y, filters = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y, filters_of(op)
    factors = channel_requantisation(x, weights, y, len(filters))
    sums = packing.sums_of(kit.bias_of(op, len(filters)), filters, x.q.zero_point, partial=True)
    kit.check_sums(sums.lowest, sums.highest, *factors, y.q.zero_point)
    kit.require_int32(sums.largest)
    return parts.factor_constants(factors, spare)


def conv_kernel(
    op: kit.Operator[Convolution],
    function: str,
    *,
    scratch_bytes: int = 0,
    extents: Callable[[kit.Touched], kit.Extents],
    overlaps: Callable[[], tuple[kit.SafeOverlap, ...]] = tuple,
    terms: Callable[[], kit.Terms] | None = None,
    spare: int = 0,
) -> kit.Kernel:
    """A call of `function`, a convolution of int8 or int16 images without groups, or a depthwise
    one. `spare`: channels that the latter reads beyond the last. Raises as `channel_factors` and
    `int16.per_channel`.
    """
    weights, wide = op.input(kit.WEIGHTS), op.x.dtype is kit.DType.INT16
    constants = int16.per_channel(op, spare) if wide else channel_factors(op, spare)
    if op.kind == "depthwise_conv2d":
        bias = kit.constant("bias", np.pad(kit.bias_of(op, weights.shape[3]), (0, spare)))
        filters = np.pad(kit.constant_of(weights).reshape(-1).astype(np.int8), (0, spare))
        stored = kit.constant("weights", filters, "filters, height x width x channels")
        constants = (stored, *constants) if wide else (stored, bias, *constants)
    return kit.Kernel(
        (kit.Call(function, parts.cmsis_arguments(op, scratch_bytes), status=True),),
        extents,
        constants=constants,
        scratch_bytes=scratch_bytes,
        find_overlaps=overlaps,
        find_terms=terms,
    )


def conv_extents(
    touched: kit.Touched,
    scratch_bytes: int,
    element_bytes: int = 1,
    *,
    read: kit.Extent | None = None,
    written: kit.Extent | None = None,
) -> kit.Extents:
    """The bytes that a call of `conv_kernel` touches that is not depthwise; `read` and `written` of
    its images, where that is not all.
    """
    call = touched.call
    x, y, kernel = (cmsis_structs.dims_of(call, name) for name in ("input", "output", "filter"))
    inputs = {
        kit.INPUT: read or shapes.image(x, element_bytes),
        kit.WEIGHTS: kit.whole(y[3] * kernel[1] * kernel[2] * x[3]),
    }
    if element_bytes == 1 and touched.has(kit.BIAS):
        inputs[kit.BIAS] = kit.whole(y[3], 4)
    factors = parts.factor_bytes(y[3]) if element_bytes == 1 else int16.per_channel_bytes(y[3])
    outputs = {0: written or shapes.image(y, element_bytes)}
    return kit.Extents(
        inputs, outputs, factors, scratch_bytes, cmsis_structs.reach(call, "conv_params")
    )


def depthwise_extents(
    touched: kit.Touched, channels: int, scratch_bytes: int, element_bytes: int = 1
) -> kit.Extents:
    """The bytes that a call of a depthwise `conv_kernel` touches that reads the constants of so
    many channels.
    """
    call = touched.call
    x, y, kernel = (cmsis_structs.dims_of(call, name) for name in ("input", "output", "filter"))
    constants = parts.factor_bytes(channels) | {
        "weights": (kernel[1] * kernel[2] - 1) * y[3] + channels,
        "bias": 4 * element_bytes * channels,
    }
    return kit.Extents(
        {0: shapes.image(x, element_bytes)},
        {0: shapes.image(y, element_bytes)},
        constants,
        scratch_bytes,
        cmsis_structs.reach(call, "dw_conv_params"),
    )
