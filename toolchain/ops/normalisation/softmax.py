"""Softmax over the last dimension. TFLite SOFTMAX.

int8 is in `softmax_s8`, int16 in `softmax_s16`, float32 in `softmax_f32`.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.normalisation.softmax_f32 import SOFTMAX_F32
from toolchain.ops.normalisation.softmax_s8 import SOFTMAX_S8
from toolchain.ops.normalisation.softmax_s16 import SOFTMAX_S16

SPEC = kit.OpSpec((SOFTMAX_S8, SOFTMAX_S16, SOFTMAX_F32))
