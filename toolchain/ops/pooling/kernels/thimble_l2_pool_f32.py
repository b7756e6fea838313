"""`thimble_l2_pool_f32`: roots of mean squares of float32."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.pooling.kernels.float32 import float_pool_kernel

FUNCTION = "thimble_l2_pool_f32"


def kernel(op: kit.Operator[Pool2D]) -> kit.Kernel:
    """The kernel of any l2_pool2d."""
    return float_pool_kernel(op, FUNCTION)
