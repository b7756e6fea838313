"""`thimble_partial_fully_connected_s8`: int32 sums, four units and a word of taps at a time."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.packing import word_turns
from toolchain.ops.matmul.kernels.unit_sums import sums_kernel
from toolchain.ops.matmul.kernels.units import WORDS

FUNCTION = "thimble_partial_fully_connected_s8"


def kernel(op: kit.AnyOperator) -> kit.Kernel:
    """Of any partial layer."""
    return sums_kernel(op, FUNCTION, WORDS, word_turns, _terms)


def _terms(call: kit.Call) -> kit.Terms:
    rows, depth = call["rows"], call["depth"]
    blocks = rows * -(-call["units"] // 4)
    return {
        "call": 1.0,
        "row": rows,
        "block": blocks,
        "word": blocks * -(-depth // WORDS.taps),
        "uneven block": blocks * bool(depth % WORDS.taps),
    }
