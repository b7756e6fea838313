"""`arm_avgpool_s16`: averages of int16."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.pooling.kernels.cmsis_nn.pools import cmsis_kernel, sums_bytes

FUNCTION = "arm_avgpool_s16"


def kernel(op: kit.Operator[Pool2D], core: kit.Core) -> kit.Kernel:
    """The kernel of any average_pool2d of int16."""
    return cmsis_kernel(op, core, FUNCTION, scratch=sums_bytes(core), reads_first=True)
