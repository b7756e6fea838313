"""SVDF: a layer over time whose filters are a feature filter followed by a time filter (rank 1).

TFLite SVDF, int8, float32 (`svdf_f32`), and float32 with int8 filters (`svdf_hybrid`). The state,
of int8 layers int16 (`svdf_s16`) or int8 (`svdf_s8`), holds the last `memory` results of each
feature filter and moves by one in each run.
"""

from __future__ import annotations

from toolchain.ops.forms import OpSpec
from toolchain.ops.recurrent.svdf_f32 import SPEC_F32
from toolchain.ops.recurrent.svdf_hybrid import HYBRID
from toolchain.ops.recurrent.svdf_s8 import SPEC_S8
from toolchain.ops.recurrent.svdf_s16 import SPEC_S16

SPEC = OpSpec((SPEC_S16, SPEC_S8, SPEC_F32, HYBRID))
