"""`arm_convolve_1x1_s8`: windows of one pixel with strides, one product for each row of outputs."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels.cmsis_nn.products import rows_kernel

FUNCTION = "arm_convolve_1x1_s8"
CODE_BYTES = {FUNCTION: kit.CodeBytes.CONVOLUTION}


def kernel(op: kit.Operator[Convolution], core: kit.Core, window: kit.Window) -> kit.Kernel:
    """Without padding. Raises as `channel_factors`."""
    return rows_kernel(op, core, FUNCTION, window)
