"""`arm_avgpool_s16`: averages of int16."""

from __future__ import annotations

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.kernel import Kernel
from toolchain.ops.pooling.kernels.cmsis_nn.pools import cmsis_kernel, sums_bytes

FUNCTION = "arm_avgpool_s16"


def kernel(op: Op, graph: Graph, core: Core) -> Kernel:
    """Of any average_pool2d of int16."""
    return cmsis_kernel(op, graph, core, FUNCTION, scratch=sums_bytes(core), reads_first=True)
