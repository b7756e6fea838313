"""`arm_convolve_1x1_s8`: windows of one pixel with strides, one product for each row of outputs."""

from __future__ import annotations

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.convolution.kernels.cmsis_nn.products import rows_kernel
from toolchain.ops.kernel import Kernel
from toolchain.ops.window import Window

FUNCTION = "arm_convolve_1x1_s8"


def kernel(op: Op, graph: Graph, core: Core, window: Window) -> Kernel:
    """Without padding. Raises as `channel_factors`."""
    return rows_kernel(op, graph, core, FUNCTION, window)
