"""SVDF: a layer over time whose filters are a feature filter followed by a time filter (rank 1).

TFLite SVDF, int8, float32 (`svdf_f32`), and float32 with int8 filters (`svdf_hybrid`). The state,
of int8 layers int16 (`svdf_s16`) or int8 (`svdf_s8`), holds the last `memory` results of each
feature filter and moves by one in each run.
"""

from __future__ import annotations

from toolchain.ir import DType
from toolchain.ops.hybrid.either import float_or_hybrid
from toolchain.ops.recurrent.svdf_f32 import SPEC_F32
from toolchain.ops.recurrent.svdf_hybrid import HYBRID
from toolchain.ops.recurrent.svdf_s8 import SPEC_S8
from toolchain.ops.recurrent.svdf_s16 import SPEC_S16, STATE
from toolchain.ops.spec import by_type

_FLOATS = float_or_hybrid(SPEC_F32, HYBRID)
SPEC = by_type({DType.INT16: SPEC_S16, DType.INT8: SPEC_S8, DType.FLOAT32: _FLOATS}, operand=STATE)
