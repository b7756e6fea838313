"""`thimble_partial_fully_connected_lanes_s8`: int32 sums in Helium's vectors."""

from __future__ import annotations

from toolchain.ir import Graph, Op
from toolchain.ops.convolution.packing import vector_turns
from toolchain.ops.kernel import Call, Kernel, Terms
from toolchain.ops.matmul.kernels.unit_sums import sums_kernel
from toolchain.ops.matmul.kernels.units import VECTORS

FUNCTION = "thimble_partial_fully_connected_lanes_s8"


def kernel(op: Op, graph: Graph) -> Kernel:
    """Of any partial layer."""
    return sums_kernel(op, graph, FUNCTION, VECTORS, vector_turns, _terms)


def _terms(call: Call) -> Terms:
    rows, blocks = call["rows"], call["rows"] * -(-call["units"] // 4)
    return {
        "call": 1.0,
        "row": rows,
        "block": blocks,
        "vector": blocks * -(-call["depth"] // VECTORS.taps),
    }
