"""Parts of the kernels for Helium's vectors: two windows by four channels, in vectors of taps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing

LANE_SCALING = kit.defined("source/convolution/thimble_requantize_lanes.h", "THIMBLE_LANE_SCALING")
"""Words of the scaling of four channels: so many bytes of one."""


def column_bytes(taps: int) -> int:
    """Scratch of two windows of a kernel for vectors, whose last vectors are read whole."""
    return kit.round_up(taps, 4) + kit.round_up(taps, packing.VECTOR_BYTES)


def pack_fours(filters: packing.Int8, ending: packing.Ending) -> kit.Int32:
    """Filters [channels, taps], then their scaling, four channels at a time."""
    return packing.joined([four_turns(filters), lane_scaling(ending)])


def four_turns(filters: packing.Int8) -> NDArray[np.int32]:
    """Filters as [fours of channels, words]: the first and the third take turns vector by vector,
    then the second and the fourth.
    """
    blocks = -(-len(filters) // 4)
    fours = packing.filled_up(filters, 0, 4).reshape(blocks, 4, -1)[:, [0, 2, 1, 3]]
    return packing.vector_turns(fours.reshape(4 * blocks, -1).astype(np.int8), 2).reshape(
        blocks, -1
    )


def lane_scaling(ending: packing.Ending) -> NDArray[np.int32]:
    """[blocks, LANE_SCALING]: biases, multipliers, rounding terms and codes of each four channels.
    The codes of channels that fill up a block are like its last one's.
    """
    codes = np.pad(ending.code.astype(np.int8), (0, -len(ending.code) % 4), mode="edge")
    parts = [
        packing.by_blocks(part, 4) for part in (ending.bias, ending.multiplier, ending.rounding)
    ]
    return np.concatenate([*parts, packing.as_words(codes.reshape(-1, 4))], axis=1).astype(np.int32)


def window_terms(op: kit.AnyOperator, window: kit.Window) -> dict[str, float]:
    """Windows copied as bytes, two at a time, times four channels in vectors."""
    batches, out_h, out_w, channels = op.y.shape
    x, pixels = op.x.shape, out_h * out_w
    kernel_h, kernel_w = window.kernel
    rows, columns = kit.walked(op.x.shape, op.y.shape, window)
    inside = rows.whole * columns.whole if kernel_w == 1 or window.dilation[1] == 1 else 0
    taps, run = kernel_h * kernel_w * x[3], -(-kernel_w * x[3] // packing.VECTOR_BYTES)
    pairs, blocks = batches * (pixels // 2 + pixels % 2), -(-channels // 4)
    return {
        "call": 1.0,
        "pair of pixels": pairs,
        "inside row": batches * inside * kernel_h,
        "inside vector": batches * inside * kernel_h * run,
        "edge row": batches * (pixels - inside) * kernel_h,
        "edge vector": batches * (pixels - inside) * kernel_h * run,
        "block": pairs * blocks,
        "uneven block": pairs * blocks * bool(taps % packing.VECTOR_BYTES),
        "block vector": pairs * blocks * (taps // packing.VECTOR_BYTES),
    }


def ending_terms(op: kit.AnyOperator, pixels: int) -> kit.Terms:
    """Fours of channels whose sums are not rounded once, or not scaled by a quick right shift."""
    path, slow = kit.slow_channels(op, once=True)
    slow_blocks = int(slow.reshape(-1, 4).any(axis=1).sum())
    twice = op.y.q.zero_point > -128 or kit.is_narrow(op)
    return {
        "twice four": pixels * (len(slow) // 4 - slow_blocks) * twice,
        f"{path} four": pixels * slow_blocks,
    }
