"""`arm_max_pool_s8` and `arm_max_pool_s16`: maxima. Each is kept in the output pixel while its
window is read, so the output must not lie on its window.
"""

from __future__ import annotations

from types import MappingProxyType

from toolchain.ops import kit
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.pooling.kernels.cmsis_nn.pools import cmsis_kernel
from toolchain.ops.pooling.kernels.windows import Counts

FUNCTIONS = MappingProxyType(
    {kit.DType.INT8: "arm_max_pool_s8", kit.DType.INT16: "arm_max_pool_s16"}
)


def kernel(op: kit.Operator[Pool2D], core: kit.Core) -> kit.Kernel:
    """The kernel of any max_pool2d."""
    return cmsis_kernel(op, core, FUNCTIONS, _vectors, reads_first=False)


def _vectors(lanes: int, channels: int, pixels: float, lines: int, taps: int) -> Counts:
    vectors = -(-channels // lanes)
    return {
        "line": lines,
        "tap": taps,
        "first vector": pixels * vectors,
        "vector": (taps - pixels) * vectors,
        "clamped": -(-pixels * channels // lanes),
    }
