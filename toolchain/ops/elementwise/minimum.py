"""Minimum of two tensors, broadcasting: see `extremum`, `binary_f32` and `binary_s32`."""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.elementwise.binary_f32 import float_form
from toolchain.ops.elementwise.binary_s32 import int32_form, int64_form
from toolchain.ops.elementwise.extremum import extremum_spec

_INT8 = extremum_spec("minimum", np.minimum, kit.DType.INT8)

SPEC = kit.OpSpec(
    (
        _INT8,
        extremum_spec("minimum", np.minimum, kit.DType.INT16),
        float_form(_INT8),
        int32_form(_INT8),
        int64_form(_INT8),
    )
)
