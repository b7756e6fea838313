"""SVDF: a layer over time whose filters are a feature filter followed by a time filter (rank 1).

TFLite SVDF: int8 with an int16 or int8 state (`svdf_integer`), and float32 with float32 or int8
filters (`svdf_float`); `svdf_layer` says what they share. The state holds the last `memory` results
of each feature filter and moves by one in each run.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.recurrent.svdf_float import SVDF_F32, SVDF_HYBRID
from toolchain.ops.recurrent.svdf_integer import SVDF_S8, SVDF_S16

SPEC = kit.OpSpec((SVDF_S16, SVDF_S8, SVDF_F32, SVDF_HYBRID))
