"""Parts of CMSIS-NN's pools: the call, the bytes that its arguments say, and cost terms."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from toolchain.ops import cmsis_structs, kit
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.pooling.kernels.windows import Counts, pool_overlaps, step_terms

VECTOR_CHANNELS = 16
"""Channels of one of Helium's vectors."""


def cmsis_kernel(
    op: kit.Operator[Pool2D],
    core: kit.Core,
    function: str,
    *,
    scratch: Callable[[int], int] | None = None,
    reads_first: bool,
    vectors: Callable[[int, float, int, int], Counts] | None = None,
) -> kit.Kernel:
    """A call of `function`.

    scratch      bytes for so many channels; None for none.
    reads_first  whether it reads a window whole before it writes the result.
    vectors      its terms on Helium, from the channels, the pixels, and the lines and taps of all
                 windows; None where there are none, on other cores neither.
    """
    attributes, x, y = op.attributes, op.x, op.y
    low, high = kit.clamp_range(attributes.activation, y)
    scratch_bytes = scratch(y.shape[3]) if scratch else 0
    element_bytes = x.dtype.size_bytes
    params = {
        "stride": cmsis_structs.tile(attributes.stride_height, attributes.stride_width),
        "padding": cmsis_structs.tile(attributes.padding.top, attributes.padding.left),
        "activation": cmsis_structs.limits(low, high),
    }
    call = kit.Call(
        function,
        {
            "ctx": cmsis_structs.context(scratch_bytes),
            "params": kit.Struct("cmsis_nn_pool_params", params),
            "input_dims": cmsis_structs.dims(*x.shape),
            "src": kit.Input(0),
            "filter_dims": cmsis_structs.dims(
                h=attributes.filter_height, w=attributes.filter_width
            ),
            "output_dims": cmsis_structs.dims(*y.shape),
            "dst": kit.Output(0),
        },
        status=True,
    )
    by_core = vectors if core.mve or vectors is None else _by_words
    return kit.Kernel(
        (call,),
        lambda touched: _extents(touched, element_bytes, scratch),
        scratch_bytes=scratch_bytes,
        find_overlaps=lambda: pool_overlaps(op, reads_first=reads_first),
        find_terms=None if by_core is None else partial(_terms, call, by_core),
    )


def _extents(
    touched: kit.Touched, element_bytes: int, scratch: Callable[[int], int] | None
) -> kit.Extents:
    """Windows are clipped to the image. The output has the input's batches and channels."""
    call = touched.call
    batches, channels = call["input_dims.n"], call["input_dims.c"]
    sizes = (call["output_dims.h"], call["output_dims.w"])
    rows, columns = (
        (size, call[f"params.stride.{axis}"], call[f"filter_dims.{axis}"], 1, pad)
        for size, axis, pad in zip(
            sizes, "hw", (call["params.padding.h"], call["params.padding.w"]), strict=True
        )
    )
    image = batches * call["input_dims.h"] * call["input_dims.w"] * channels
    return kit.Extents(
        {0: kit.whole(image, element_bytes)},
        {0: kit.whole(batches * math.prod(sizes) * channels, element_bytes)},
        scratch=scratch(channels) if scratch else 0,
        largest=kit.window_reach([rows, columns]),
    )


def _terms(call: kit.Call, by_core: Callable[[int, float, int, int], Counts]) -> kit.Terms:
    rows, columns = (
        kit.along(
            call[f"input_dims.{axis}"],
            call[f"output_dims.{axis}"],
            call[f"filter_dims.{axis}"],
            call[f"params.stride.{axis}"],
            1,
            call[f"params.padding.{axis}"],
            0,
        )
        for axis in "hw"
    )
    terms, lines, taps = step_terms(call["output_dims.n"], rows, columns)
    return terms | by_core(call["output_dims.c"], terms["pixel"], lines, taps)


def _by_words(channels: int, pixels: float, lines: int, taps: int) -> Counts:
    """Without Helium averages go by channels and maxima by words."""
    words, rest = divmod(channels, 4)
    return {
        "line": lines,
        "tap": taps,
        "tap channel": taps * channels,
        "tap word": taps * words,
        "tap rest": taps * rest,
        "channel": pixels * channels,
    }


def sums_bytes(core: kit.Core) -> Callable[[int], int]:
    """The scratch of averages: an int32 for each channel, on cores with DSP, not Helium."""
    return lambda channels: 4 * channels if core.dsp and not core.mve else 0
