"""SVDF: a layer over time whose filters are rank-1 (a feature filter, then a time filter).

TFLite SVDF, int8. The state, int16 or int8, holds the last `memory` results of each feature filter;
it moves by one each run. See `svdf_s16` and `svdf_s8`.
"""

from __future__ import annotations

from toolchain.ir import DType
from toolchain.ops.recurrent.svdf_s8 import SPEC_S8
from toolchain.ops.recurrent.svdf_s16 import SPEC_S16, STATE
from toolchain.ops.spec import by_type

SPEC = by_type({DType.INT16: SPEC_S16, DType.INT8: SPEC_S8}, operand=STATE)
