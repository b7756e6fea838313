"""SVDF: a layer over time whose filters are a feature filter followed by a time filter (rank 1).

TFLite SVDF, int8. The state, int16 (`svdf_s16`) or int8 (`svdf_s8`), holds the last `memory`
results of each feature filter and moves by one in each run.
"""

from __future__ import annotations

from toolchain.ir import DType
from toolchain.ops.recurrent.svdf_s8 import SPEC_S8
from toolchain.ops.recurrent.svdf_s16 import SPEC_S16, STATE
from toolchain.ops.spec import by_type

SPEC = by_type({DType.INT16: SPEC_S16, DType.INT8: SPEC_S8}, operand=STATE)
