"""`thimble_max_pool_s8`: maxima, sixteen channels at a time, then four, in words: CMSIS-NN's
compares single bytes.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.pooling.kernels.windows import Counts, block_terms, pool_kernel

FUNCTION = "thimble_max_pool_s8"


def kernel(op: kit.Operator[Pool2D], core: kit.Core) -> kit.Kernel:
    """The kernel of any max_pool2d of int8."""
    return pool_kernel(op, FUNCTION, _by_blocks)


def _by_blocks(channels: int, pixels: float, lines: int, taps: int) -> Counts:
    sixteens = block_terms("sixteen", channels // 16, pixels, lines, taps)
    return sixteens | block_terms("four", channels % 16 // 4, pixels, lines, taps)
