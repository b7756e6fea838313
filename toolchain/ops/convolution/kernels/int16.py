"""Parts of the kernels of int16 images and int8 filters (TFLite's 16x8 scheme): sums, constants,
and the calls of Thimble's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.convolution import parts
from toolchain.ops.convolution.common import channel_requantisation
from toolchain.ops.convolution.kernels import shapes
from toolchain.ops.readers.int16 import bias_of, check_sums, held_by_cmsis_nn, largest_sums

FAST_TAPS = 512
"""A sum of this many products of int16 and int8 may overflow int32: CMSIS-NN's fast kernels take
fewer. Its other kernels sum in int64."""


def rows_of(op: kit.AnyOperator) -> NDArray[np.generic]:
    """The weights of an ordinary or transposed convolution, a row each output channel."""
    weights = op.input(kit.WEIGHTS)
    return kit.constant_of(weights).reshape(weights.shape[0], -1)


def held(op: kit.AnyOperator, rows: NDArray[np.generic]) -> bool:
    """Whether CMSIS-NN's kernels hold every sum of the filters, a row each channel."""
    return held_by_cmsis_nn(*_sums(op, rows))


def _sums(
    op: kit.AnyOperator, rows: NDArray[np.generic]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The largest magnitude of each channel's sum, and the factor that scales it."""
    x, weights, y = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    factors = x.q.scale * np.array(weights.q.scales) / y.q.scale
    bias = bias_of(op, kit.BIAS, len(rows))
    return largest_sums(rows.astype(np.int64), bias), np.broadcast_to(factors, len(rows))


def per_channel(
    op: kit.AnyOperator, rows: NDArray[np.generic], spare: int = 0
) -> tuple[kit.Constant, ...]:
    """Bias and requantisation of each channel, then `spare` channels of nothing.

    Raises UnsupportedError where LiteRT's scaling of a sum is undefined.
    """
    channels = len(rows)
    x, weights, y = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    bias = bias_of(op, kit.BIAS, channels)
    check_sums(op, *_sums(op, rows))
    multiplier, shift = channel_requantisation(x, weights, y, channels)
    wanted = "requantisation factor of each channel, Q0.31"
    return (
        kit.constant("bias", np.pad(bias, (0, spare)), "int64"),
        kit.constant("multiplier", np.pad(multiplier, (0, spare)), wanted),
        kit.constant("shift", np.pad(shift, (0, spare)), "left shift of each channel"),
    )


def per_channel_bytes(channels: int) -> dict[str, int]:
    """Bytes of what `per_channel` gives."""
    return {"multiplier": 4 * channels, "shift": 4 * channels, "bias": 8 * channels}


def own_kernel(op: kit.Operator[Any], function: str, window: kit.Window) -> kit.Kernel:
    """One of Thimble's kernels, which sum in int64: for grouped and for transposed convolutions."""
    depth = op.input(kit.WEIGHTS).shape[3]
    call = own_call(op, function, window, depth, kit.Input(kit.WEIGHTS))
    return kit.Kernel((call,), _extents, constants=per_channel(op, rows_of(op)))


def own_call(
    op: kit.Operator[Any], function: str, window: kit.Window, depth: int, filters: kit.Argument
) -> kit.Call:
    """A call of one of Thimble's kernels. `depth`: the input channels that a filter reads."""
    low, high = kit.clamp_range(op.attributes.activation, op.y)
    scaling = kit.Struct(
        "thimble_conv_s16_scaling",
        {
            "bias": kit.Packed("bias"),
            "multiplier": kit.Packed("multiplier"),
            "shift": kit.Packed("shift"),
            "min": low,
            "max": high,
        },
    )
    return kit.Call(
        function,
        {
            "shape": parts.conv_shape(op, window, depth),
            "scaling": scaling,
            "input": kit.Input(kit.INPUT),
            "filters": filters,
            "output": kit.Output(0),
        },
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    return own_extents(touched, {kit.WEIGHTS: kit.whole(filter_bytes(touched.call))}, {})


def filter_bytes(call: kit.Call) -> int:
    """Bytes of all filters that a call of Thimble's reads."""
    return call["shape.output_c"] * shapes.taps(call)


def own_extents(
    touched: kit.Touched, filters: Mapping[int, kit.Extent], constants: Mapping[str, int]
) -> kit.Extents:
    """The bytes that a call of Thimble's touches, whose filters are an input, or one of the
    constants.
    """
    call = touched.call
    return kit.Extents(
        {kit.INPUT: shapes.image(shapes.input_shape(call), 2), **filters},
        {0: shapes.image(shapes.output_shape(call), 2)},
        {**per_channel_bytes(call["shape.output_c"]), **constants},
        0,
        shapes.reach(call),
    )
