"""LSTM: long short-term memory over a sequence, with its hidden and its cell state.

TFLite UNIDIRECTIONAL_SEQUENCE_LSTM: int8 with an int16 cell state (`lstm_s8`), and float32 with
float32 or int8 weights (`lstm_float`); `lstm_layer` says what they share. The states keep their
values from run to run, as LiteRT's variable tensors do.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.recurrent.lstm_float import LSTM_F32, LSTM_HYBRID
from toolchain.ops.recurrent.lstm_s8 import LSTM_S8

SPEC = kit.OpSpec((LSTM_S8, LSTM_F32, LSTM_HYBRID))
