"""`thimble_convolve_winograd_s8`: Winograd's F(2x2, 3x3) of a convolution (`winograd`)."""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels.winograd import Form, winograd_kernel

FUNCTION = "thimble_convolve_winograd_s8"
CODE_BYTES = {FUNCTION: kit.CodeBytes.CONVOLUTION}
_BY_COLUMNS = tuple((row, column) for column in (1, 2, 0, 3) for row in (1, 2, 0))
FORM = Form(
    FUNCTION,
    2,
    np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]]),
    (*_BY_COLUMNS, (3, 1), (3, 2), (3, 0), (3, 3)),
    frozenset({*_BY_COLUMNS[9:], (3, 1), (3, 2), (3, 0)}),
    4,
    4,
)


def kernel(op: kit.Operator[Convolution], most: int) -> kit.Kernel | None:
    """With `most` tiles together, 2 or 3; None where it does not apply."""
    return winograd_kernel(FORM, op, most)
