"""Parts of the kernels for Helium's vectors: two windows by four channels, in vectors of taps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.arithmetic.onnx_rounding import FLOAT_CODE

_HEADER = "source/convolution/thimble_requantize_lanes.h"
LANE_SCALING = kit.defined(_HEADER, "THIMBLE_LANE_SCALING")
"""Words of the scaling of four channels: so many bytes of one."""

_LANE_FAST, _KIND = kit.defined(_HEADER, "THIMBLE_LANE_FAST"), 0xA0
"""Bits of a code that tell how a sum is scaled, and those of `thimble_all_fast`."""


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
    """Windows copied as bytes, and the pairs in which they are multiplied."""
    batches, out_h, out_w, _ = op.y.shape
    depth, (kernel_h, kernel_w) = op.x.shape[3], window.kernel
    rows, columns = kit.walked(op.x.shape, op.y.shape, window)
    runs = window.dilation[1] == 1
    whole = rows.whole * columns.whole if runs or kernel_w == 1 else 0
    inside, edge = batches * whole, batches * (out_h * out_w - whole)
    seen = batches * (rows.taps * columns.windows - whole * kernel_h)
    taps = batches * (rows.taps * columns.taps - whole * kernel_h * kernel_w)
    run = vectors(kernel_w * depth)
    return {
        "call": 1.0,
        "pair of pixels": batches * -(-out_h * out_w // 2),
        "inside pixel": inside,
        "inside row": inside * kernel_h,
        "inside vector": inside * kernel_h * run,
        "edge pixel": edge,
        "edge row": seen,
        "edge vector": seen * run if runs else taps * vectors(depth),
        "edge tap": 0.0 if runs else taps,
        "blank row": edge * kernel_h - seen,
        "blank vector": (edge * kernel_h - seen) * run,
    }


@dataclass(frozen=True)
class Fours:
    """How the sums of each four channels are scaled: twice, as float32, or by none of the
    quick ways of `thimble_requantize_lanes.h`; else they are rounded once.
    """

    twice: NDArray[np.bool_]
    in_float: NDArray[np.bool_]
    slow: NDArray[np.bool_]

    @staticmethod
    def of(ending: packing.Ending) -> Fours:
        """By the codes."""
        codes = np.pad(ending.code.astype(np.uint8), (0, -len(ending.code) % 4), mode="edge")
        fours = codes.reshape(-1, 4)
        once, twice = (((fours & _KIND) == kind).all(axis=1) for kind in (0, _LANE_FAST))
        in_float = (fours == FLOAT_CODE % 256).all(axis=1)
        return Fours(twice, in_float, ~(once | twice | in_float))


def product_terms(
    pairs: float, channels: int, taps: int, scaled: Fours | None = None
) -> dict[str, float]:
    """Pairs of columns times four channels, scaled so or not at all. Beside slow ones all whole
    fours are scaled by a call each, as the last channels are.
    """
    each, fours, last = vectors(taps), channels // 4, min(channels % 4, 1)
    slow = scaled is not None and bool(scaled.slow[:fours].any())
    quick, apart = (0, fours) if slow else (fours, 0)
    counts = {
        "four": quick,
        "four of several vectors": quick * (each > 1),
        "four vector": quick * each,
        "last four": last,
        "last vector": last * each,
        "lone channel": channels % 4,
    }
    if scaled is not None:
        counts |= {
            "twice four": int(scaled.twice[:quick].sum()),
            "float four": int(scaled.in_float[:quick].sum()),
            "four beside slow": apart,
            "vector beside slow": apart * each,
            "slow four": int(scaled.slow.sum()),
        }
    return {name: pairs * count for name, count in counts.items()}


def vectors(count: int) -> int:
    """Vectors that hold so many bytes."""
    return -(-count // packing.VECTOR_BYTES)


def ending_terms(scaled: Fours, pixels: int, calls: int = 0) -> kit.Terms:
    """Outputs of fours of channels that are not rounded once; `calls`: how often a call makes some
    of them, where that matters.
    """
    ways = {"twice": scaled.twice, "float": scaled.in_float, "slow": scaled.slow}
    counts = {way: int(mask.sum()) for way, mask in ways.items()}
    terms = {f"{way} four": pixels * count for way, count in counts.items()}
    return terms | {f"{way} call": calls * count for way, count in counts.items()}
