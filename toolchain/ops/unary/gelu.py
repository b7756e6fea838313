"""Gaussian error linear unit, exact or by its tanh approximation. TFLite GELU, int8 and int16.

Source: `reference/gelu.h`, evaluated in float32 into a table (`GeluPrepare`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.libm import erfcf
from toolchain.ops.arithmetic.tanhf import tanhf
from toolchain.ops.elementwise.common import sample_unary
from toolchain.ops.unary.float_table import Float32, Options, float_table, table_spec
from toolchain.ops.unary.float_table_s16 import float_table_s16_spec
from toolchain.ops.unary.unary_f32 import FloatFunction, float_form


@dataclass(frozen=True)
class Gelu(kit.Attributes):
    """`approximate`: by tanh."""

    approximate: bool = False


def _gelu(op: kit.Operator[Gelu], x: Float32) -> Float32:
    half, one = np.float32(0.5), np.float32(1)
    if op.attributes.approximate:
        root = np.float32(math.sqrt(2 / math.pi))
        inner = root * (x + np.float32(0.044715) * x * x * x)
        tangent: Float32 = half * x * (one + tanhf(inner.astype(np.float32)))
        return tangent
    tail = erfcf(x * np.float32(-math.sqrt(0.5)))
    exact: Float32 = half * x * tail
    return exact


def _read(node: kit.TfliteNode) -> Gelu:
    return Gelu(bool(node.has_options and node.options.approximate))


def _written(attributes: kit.Attributes) -> Mapping[str, Any]:
    assert isinstance(attributes, Gelu)
    return {"approximate": attributes.approximate}


def _float_function(op: kit.Operator[Gelu]) -> FloatFunction:
    return FloatFunction("gelu_tanh" if op.attributes.approximate else "gelu")


_INT8 = table_spec(
    "gelu",
    float_table(_gelu),
    sample_unary,
    options=Options(
        Gelu, _read, "GeluOptions", _written, lambda rng: Gelu(bool(rng.random() < 0.5))
    ),
)

SPEC = kit.OpSpec(
    (
        _INT8,
        float_table_s16_spec(_INT8, lambda op, x: _gelu(op, x), _read),
        float_form(_INT8, _float_function, _read),
    )
)
