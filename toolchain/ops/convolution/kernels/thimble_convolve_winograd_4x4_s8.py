"""`thimble_convolve_winograd_4x4_s8`: Winograd's F(4x4, 3x3) of a convolution (`winograd`)."""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels.winograd import Form, winograd_kernel

FUNCTION = "thimble_convolve_winograd_4x4_s8"
CODE_BYTES = {FUNCTION: kit.CodeBytes.CONVOLUTION}
_ORDER = (1, 2, 3, 4, 0, 5)
FORM = Form(
    FUNCTION,
    4,
    np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 12]]),
    tuple((row, column) for row in _ORDER for column in _ORDER),
    frozenset(),
    576,
    64,
)


def kernel(op: kit.Operator[Convolution], most: int) -> kit.Kernel | None:
    """With `most` tiles together, 2 or 3; None where it does not apply."""
    return winograd_kernel(FORM, op, most)
