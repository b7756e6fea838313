"""`thimble_partial_fully_connected_lanes_s8`: int32 sums in Helium's vectors."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.packing import vector_turns
from toolchain.ops.matmul.kernels.unit_sums import sums_kernel
from toolchain.ops.matmul.kernels.units import VECTORS

FUNCTION = "thimble_partial_fully_connected_lanes_s8"


def kernel(op: kit.AnyOperator) -> kit.Kernel:
    """Of any partial layer."""
    return sums_kernel(op, FUNCTION, VECTORS, vector_turns, _terms)


def _terms(call: kit.Call) -> kit.Terms:
    rows, blocks = call["rows"], call["rows"] * -(-call["units"] // 4)
    return {
        "call": 1.0,
        "row": rows,
        "block": blocks,
        "vector": blocks * -(-call["depth"] // VECTORS.taps),
    }
