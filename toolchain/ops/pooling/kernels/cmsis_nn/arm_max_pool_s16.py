"""`arm_max_pool_s16`: maxima of int16, each kept in the output pixel as `arm_max_pool_s8` does."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.pooling.kernels.cmsis_nn.pools import cmsis_kernel

FUNCTION = "arm_max_pool_s16"


def kernel(op: kit.Operator[Pool2D], core: kit.Core) -> kit.Kernel:
    """The kernel of any max_pool2d of int16."""
    return cmsis_kernel(op, core, FUNCTION, reads_first=False)
