"""`arm_convolve_1x1_s8_fast`: windows of one pixel, all pixels of all images in one product. It
counts the input's pixels.
"""

from __future__ import annotations

import math

from toolchain.ops import cmsis_structs, kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels.cmsis_nn import shared
from toolchain.ops.convolution.kernels.cmsis_nn.products import (
    direct_overlaps,
    helium_terms,
    product_terms,
)

FUNCTION = "arm_convolve_1x1_s8_fast"


def kernel(op: kit.Operator[Convolution], core: kit.Core, window: kit.Window) -> kit.Kernel:
    """Without strides and padding. Raises as `channel_factors`."""
    x, y = op.input(kit.INPUT).shape, op.y.shape
    return shared.conv_kernel(
        op,
        FUNCTION,
        extents=_extents,
        overlaps=lambda: direct_overlaps(op, core, window, 1),
        terms=lambda: (
            helium_terms(op, window, 1)
            if core.mve
            else product_terms(1, math.prod(y[:3]), y[3], x[3])
        ),
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    x, y = (cmsis_structs.dims_of(touched.call, name) for name in ("input", "output"))
    return shared.conv_extents(touched, 0, written=kit.whole(math.prod(x[:3]) * y[3]))
