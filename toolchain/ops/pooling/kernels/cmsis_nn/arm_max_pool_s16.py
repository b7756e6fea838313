"""`arm_max_pool_s16`: maxima of int16, each kept in the output pixel as `arm_max_pool_s8` does."""

from __future__ import annotations

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.kernel import Kernel
from toolchain.ops.pooling.kernels.cmsis_nn.pools import cmsis_kernel

FUNCTION = "arm_max_pool_s16"


def kernel(op: Op, graph: Graph, core: Core) -> Kernel:
    """Of any max_pool2d of int16."""
    return cmsis_kernel(op, graph, core, FUNCTION, reads_first=False)
