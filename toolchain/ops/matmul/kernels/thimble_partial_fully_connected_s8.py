"""`thimble_partial_fully_connected_s8`: int32 sums, four units and a word of taps at a time."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.matmul.kernels import dense, unit_sums

FUNCTION = "thimble_partial_fully_connected_s8"


def kernel(op: kit.AnyOperator) -> kit.Kernel:
    """The kernel of any partial layer."""
    return unit_sums.sums_kernel(op, FUNCTION, dense.WORDS, packing.word_turns, _terms)


def _terms(call: kit.Call) -> kit.Terms:
    rows, depth = call["rows"], call["depth"]
    blocks = rows * -(-call["units"] // 4)
    return {
        "call": 1.0,
        "row": rows,
        "block": blocks,
        "word": blocks * -(-depth // dense.WORDS.taps),
        "uneven block": blocks * bool(depth % dense.WORDS.taps),
    }
