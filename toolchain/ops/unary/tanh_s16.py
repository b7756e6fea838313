"""Hyperbolic tangent of int16: see `_sigmoid_s16`. TFLite TANH."""

from __future__ import annotations

from toolchain.ops.unary.sigmoid_s16 import sigmoid_spec

SPEC = sigmoid_spec("tanh_s16", 8, 0xFFFF << 8, (0, 1))
