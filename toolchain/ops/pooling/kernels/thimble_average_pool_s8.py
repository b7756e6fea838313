"""`thimble_average_pool_s8`: averages, four channels at a time, of values that are lifted first."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.pooling.kernels.windows import Counts, block_terms, pool_kernel

FUNCTION = "thimble_average_pool_s8"


def kernel(op: kit.Operator[Pool2D], core: kit.Core) -> kit.Kernel:
    """The kernel of any average_pool2d of int8."""
    return pool_kernel(op, FUNCTION, _by_blocks, {"lift": op.attributes.lift})


def _by_blocks(channels: int, pixels: float, lines: int, taps: int) -> Counts:
    fours = block_terms("four", channels // 4, pixels, lines, taps)
    return {"lone group": pixels * bool(channels % 4)} | fours
