"""`arm_avgpool_s8` and `arm_avgpool_s16`: averages, of which the former has none with a lift."""

from __future__ import annotations

from types import MappingProxyType

from toolchain.ops import kit
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.pooling.kernels.cmsis_nn.pools import cmsis_kernel
from toolchain.ops.pooling.kernels.windows import Counts

FUNCTIONS = MappingProxyType({kit.DType.INT8: "arm_avgpool_s8", kit.DType.INT16: "arm_avgpool_s16"})


def kernel(op: kit.Operator[Pool2D], core: kit.Core) -> kit.Kernel:
    """The kernel of any average_pool2d. Raises NoKernelError for one with a lift."""
    if op.attributes.lift:
        raise kit.NoKernelError("a legacy uint8 average rounds about another zero")
    each = 4 if core.dsp and not core.mve else 0  # an int32 for each channel
    return cmsis_kernel(op, core, FUNCTIONS, _vectors, channel_bytes=each, reads_first=True)


def _vectors(lanes: int, channels: int, pixels: float, lines: int, taps: int) -> Counts:
    vectors = -(-channels // lanes)
    return {"vector": pixels * vectors, "line": lines * vectors, "tap": taps * vectors}
