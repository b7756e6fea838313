"""Logistic function 1 / (1 + exp(-x)) of int16: see `_sigmoid_s16`. TFLite LOGISTIC."""

from __future__ import annotations

from toolchain.ops.unary.sigmoid_s16 import sigmoid_spec

SPEC = sigmoid_spec("logistic_s16", 9, 0x7FFF << 10, (0,))
