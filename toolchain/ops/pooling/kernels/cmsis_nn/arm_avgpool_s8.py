"""`arm_avgpool_s8`: averages of int8."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.pooling.kernels.cmsis_nn.pools import (
    VECTOR_CHANNELS,
    cmsis_kernel,
    sums_bytes,
)
from toolchain.ops.pooling.kernels.windows import Counts

FUNCTION = "arm_avgpool_s8"


def kernel(op: kit.Operator[Pool2D], core: kit.Core) -> kit.Kernel:
    """The kernel of an operator without lift."""
    return cmsis_kernel(
        op,
        core,
        FUNCTION,
        scratch=sums_bytes(core),
        reads_first=True,
        vectors=_vectors,
    )


def _vectors(channels: int, pixels: float, lines: int, taps: int) -> Counts:
    vectors = -(-channels // VECTOR_CHANNELS)
    return {"vector": pixels * vectors, "line": lines * vectors, "tap": taps * vectors}
