"""`arm_convolve_1x1_s8` and `arm_convolve_1_x_n_s8`: a product for each row of outputs.

The former multiplies the pixels of each row of a convolution by windows of one pixel, with strides;
the latter those of windows of one row over images of one row, on Helium.
"""

from __future__ import annotations

from toolchain.ops import cmsis_structs, kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels.cmsis_nn import shared
from toolchain.ops.convolution.kernels.cmsis_nn.products import (
    direct_overlaps,
    helium_terms,
    product_terms,
)

FUNCTIONS = PIXELS, ROWS = "arm_convolve_1x1_s8", "arm_convolve_1_x_n_s8"


def takes_row(op: kit.AnyOperator, core: kit.Core, window: kit.Window) -> bool:
    """Whether `arm_convolve_1_x_n_s8` applies: on Helium, of one row, and without padding at either
    end, which 5.0.0 refuses or computes wrongly for some sizes.
    """
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


def kernel(
    op: kit.Operator[Convolution], core: kit.Core, window: kit.Window, function: str = PIXELS
) -> kit.Kernel:
    """PIXELS without padding, or ROWS of what it takes. Raises as `channel_factors`."""
    x, y = op.input(kit.INPUT).shape, op.y.shape
    products = y[0] * y[1]
    return shared.conv_kernel(
        op,
        function,
        extents=_extents,
        overlaps=lambda: direct_overlaps(op, core, window, products),
        terms=lambda: (
            helium_terms(op, window, products)
            if core.mve
            else product_terms(products, y[2], y[3], x[3])
        ),
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    """It does not check what it reads."""
    call = touched.call
    x, y, kernel = (cmsis_structs.dims_of(call, name) for name in ("input", "output", "filter"))
    (batches, height, width, depth) = x
    rows = (y[1] - 1) * call["conv_params.stride.h"] + 1
    columns = (y[2] - 1) * call["conv_params.stride.w"] + kernel[2]
    last = (batches - 1) * height * width + (rows - 1) * width + columns
    return shared.conv_extents(touched, 0, read=kit.Extent(0, last * depth))
