"""`arm_max_pool_s8`: maxima of int8. Each is kept in the output pixel while its window is read, so
the output must not lie on its window.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.pooling.kernels.cmsis_nn.pools import VECTOR_CHANNELS, cmsis_kernel
from toolchain.ops.pooling.kernels.windows import Counts

FUNCTION = "arm_max_pool_s8"


def kernel(op: kit.Operator[Pool2D], core: kit.Core) -> kit.Kernel:
    """The kernel of any max_pool2d of int8."""
    return cmsis_kernel(op, core, FUNCTION, reads_first=False, vectors=_vectors)


def _vectors(channels: int, pixels: float, lines: int, taps: int) -> Counts:
    vectors = -(-channels // VECTOR_CHANNELS)
    return {
        "line": lines,
        "tap": taps,
        "first vector": pixels * vectors,
        "vector": (taps - pixels) * vectors,
        "clamped": -(-pixels * channels // VECTOR_CHANNELS),
    }
