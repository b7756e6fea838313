"""`thimble_l2_pool_f32`: roots of mean squares of float32."""

from __future__ import annotations

from toolchain.ir import Graph, Op
from toolchain.ops.kernel import Kernel
from toolchain.ops.pooling.kernels.float32 import float_pool_kernel

FUNCTION = "thimble_l2_pool_f32"


def kernel(op: Op, graph: Graph) -> Kernel:
    """Of any such pool."""
    return float_pool_kernel(op, graph, FUNCTION)
