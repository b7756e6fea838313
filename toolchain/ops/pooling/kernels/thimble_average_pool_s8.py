"""`thimble_average_pool_s8`: averages, four channels at a time, of values that are lifted first."""

from __future__ import annotations

from toolchain.ir import Graph, Op
from toolchain.ops.kernel import Kernel
from toolchain.ops.pooling.common import pool_attributes
from toolchain.ops.pooling.kernels.windows import Counts, block_terms, pool_kernel

FUNCTION = "thimble_average_pool_s8"


def kernel(op: Op, graph: Graph) -> Kernel:
    """Of any average_pool2d of int8."""
    return pool_kernel(op, graph, FUNCTION, _by_blocks, {"lift": pool_attributes(op).lift})


def _by_blocks(channels: int, pixels: float, lines: int, taps: int) -> Counts:
    fours = block_terms("four", channels // 4, pixels, lines, taps)
    return {"lone group": pixels * bool(channels % 4)} | fours
