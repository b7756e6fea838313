"""`thimble_partial_fully_connected_lanes_s8`: int32 sums in Helium's vectors."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.matmul.kernels import dense, unit_sums

FUNCTION = "thimble_partial_fully_connected_lanes_s8"
CODE_BYTES = {FUNCTION: kit.CodeBytes.LANES}


def kernel(op: kit.AnyOperator) -> kit.Kernel:
    """The kernel of any partial layer."""
    return unit_sums.sums_kernel(op, FUNCTION, dense.VECTORS, packing.vector_turns, _terms)


def _terms(call: kit.Call) -> kit.Terms:
    rows, blocks = call["rows"], call["rows"] * -(-call["units"] // 4)
    return {
        "call": 1.0,
        "row": rows,
        "block": blocks,
        "vector": blocks * -(-call["depth"] // dense.VECTORS.taps),
    }
