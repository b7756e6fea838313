"""Maximum of two tensors, broadcasting: see `extremum`."""

from __future__ import annotations

import numpy as np

from toolchain.ir import DType
from toolchain.ops.elementwise.extremum import extremum_spec
from toolchain.ops.spec import by_type

SPEC = by_type(
    {dtype: extremum_spec("maximum", np.maximum, dtype) for dtype in (DType.INT8, DType.INT16)}
)
