"""`arm_convolve_1_x_n_s8`: windows of one row over images of one row, on Helium."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels.cmsis_nn.products import rows_kernel

FUNCTION = "arm_convolve_1_x_n_s8"
CODE_BYTES = {FUNCTION: kit.CodeBytes.CONVOLUTION}


def takes(op: kit.AnyOperator, core: kit.Core, window: kit.Window) -> bool:
    """Whether it applies: on Helium, of one row, and without padding at either end, which 5.0.0
    refuses or computes wrongly for some sizes."""
    x, y = op.input(kit.INPUT), op.y
    total = (y.shape[2] - 1) * window.stride[1] + window.kernel[1] - x.shape[2]
    return (
        core.mve
        and x.shape[1] == 1
        and window.kernel[0] == 1
        and window.dilation[1] == 1
        and (window.stride[1] * x.shape[3]) % 4 == 0
        and window.padding == kit.UNPADDED
        and total == 0
    )


def kernel(op: kit.Operator[Convolution], core: kit.Core, window: kit.Window) -> kit.Kernel:
    """The kernel of an operator that it `takes`. Raises as `channel_factors`."""
    return rows_kernel(op, core, FUNCTION, window)
