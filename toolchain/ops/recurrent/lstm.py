"""LSTM: long short-term memory over a sequence, with its hidden and its cell state.

TFLite UNIDIRECTIONAL_SEQUENCE_LSTM: int8 with an int16 cell state (`lstm_s8`), float32
(`lstm_f32`), and float32 with int8 weights (`lstm_hybrid`). The states keep their values from run
to run, as LiteRT's variable tensors do.
"""

from __future__ import annotations

from toolchain.ops.forms import OpSpec
from toolchain.ops.recurrent.lstm_f32 import LSTM_F32
from toolchain.ops.recurrent.lstm_hybrid import LSTM_HYBRID
from toolchain.ops.recurrent.lstm_s8 import LSTM_S8

SPEC = OpSpec((LSTM_S8, LSTM_F32, LSTM_HYBRID))
