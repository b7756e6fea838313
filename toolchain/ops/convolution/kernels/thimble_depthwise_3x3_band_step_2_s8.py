"""`thimble_depthwise_3x3_band_step_2_s8`: `thimble_depthwise_3x3_band_s8` of a stride of 2 along
rows.
"""

from __future__ import annotations

from collections.abc import Callable

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels.thimble_depthwise_3x3_band_s8 import band_kernel
from toolchain.ops.convolution.kernels.walks import Walk
from toolchain.ops.convolution.packing import Ending, Scaling
from toolchain.ops.window import Window

FUNCTION = "thimble_depthwise_3x3_band_step_2_s8"


def kernel(
    op: kit.Operator[Convolution],
    window: Window,
    walk: Walk,
    endings: Callable[[], tuple[Scaling, Ending]],
) -> kit.Kernel:
    """`endings` is as in `lines_kernel`."""
    return band_kernel(FUNCTION, op, window, walk, endings)
