"""Parts of CMSIS-NN's pools: the call, the bytes that its arguments say, and cost terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from toolchain.ops import cmsis_structs, kit
from toolchain.ops.arithmetic.packing import VECTOR_BYTES
from toolchain.ops.pooling.common import Pool2D, pool_window
from toolchain.ops.pooling.kernels.windows import Counts, pool_overlaps, pool_terms


def cmsis_kernel(
    op: kit.Operator[Pool2D],
    core: kit.Core,
    functions: Mapping[kit.DType, str],
    vectors: Callable[[int, int, float, int, int], Counts],
    *,
    channel_bytes: int = 0,
    reads_first: bool,
) -> kit.Kernel:
    """A call of the function for the type of elements.

    vectors        its terms on Helium, from the channels of a vector on.
    channel_bytes  scratch for each channel.
    reads_first    whether it reads a window whole before it writes the result.
    """
    x, y, window = op.x, op.y, pool_window(op)
    scratch_bytes, element_bytes = channel_bytes * y.shape[3], x.dtype.size_bytes
    params = {
        "stride": cmsis_structs.tile(*window.stride),
        "padding": cmsis_structs.tile(window.padding.top, window.padding.left),
        "activation": cmsis_structs.limits(*kit.clamp_range(op.attributes.activation, y)),
    }
    call = kit.Call(
        functions[x.dtype],
        {
            "ctx": cmsis_structs.context(scratch_bytes),
            "params": kit.Struct("cmsis_nn_pool_params", params),
            "input_dims": cmsis_structs.dims(*x.shape),
            "src": kit.Input(0),
            "filter_dims": cmsis_structs.dims(h=window.kernel[0], w=window.kernel[1]),
            "output_dims": cmsis_structs.dims(*y.shape),
            "dst": kit.Output(0),
        },
        status=True,
    )
    vector, word = VECTOR_BYTES // element_bytes, 4 // element_bytes
    by_core = partial(vectors, vector) if core.mve else partial(_by_words, word)
    return kit.Kernel(
        (call,),
        lambda touched: _extents(touched, element_bytes, channel_bytes),
        scratch_bytes=scratch_bytes,
        find_overlaps=lambda: pool_overlaps(op, reads_first=reads_first),
        find_terms=lambda: pool_terms(op, by_core),
    )


def _extents(touched: kit.Touched, element_bytes: int, channel_bytes: int) -> kit.Extents:
    """Windows are clipped to the image. The output has the input's batches and channels."""
    call = touched.call
    (batches, *size, channels), y = (
        cmsis_structs.dims_of(call, name) for name in ("input", "output")
    )
    read, written = (batches * math.prod(pixels) * channels for pixels in (size, y[1:3]))
    return kit.Extents(
        {0: kit.whole(read, element_bytes)},
        {0: kit.whole(written, element_bytes)},
        scratch=channel_bytes * channels,
        largest=cmsis_structs.reach(call, "params"),
    )


def _by_words(in_word: int, channels: int, pixels: float, lines: int, taps: int) -> Counts:
    """Without Helium averages go by channels and maxima by words of `in_word` channels."""
    words, rest = divmod(channels, in_word)
    return {
        "line": lines,
        "tap": taps,
        "tap channel": taps * channels,
        "tap word": taps * words,
        "tap rest": taps * rest,
        "channel": pixels * channels,
    }
