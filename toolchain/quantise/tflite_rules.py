"""How a TFLite operator is quantised to int8, by LiteRT's quantisation specification.

Left out are the facts in a kind's own file: whether it moves stored bytes, and so keeps their
scale, and which types it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from toolchain.ir import DType
from toolchain.ops import specs
from toolchain.ops.elementwise.functions import UNARY
from toolchain.ops.forms import Form

Fixed = tuple[float, int]
"""A scale and a zero point."""

PRESCRIBED: Mapping[str, Fixed] = MappingProxyType(
    {
        "l2_normalization": (1 / 128, 0),
        "log_softmax": (16 / 256, 127),
        "softmax": (1 / 256, -128),
        **{row.name: row.stored for row in UNARY.values() if row.int8 and row.stored},
    }
)
"""Outputs whose scale TFLite prescribes."""


@dataclass(frozen=True)
class Weights:
    """The inputs of an operator that are data, weights and bias; the axis of the output channels,
    or None where one scale serves all (LiteRT's dense layers take more, tflite-micro's do not)."""

    data: int
    weights: int
    bias: int
    axis: int | None


@dataclass(frozen=True)
class Rule:
    """`alike`: data and outputs have one scale. `below_one`: those of the data are below 1.
    `prescribed`: that of the outputs. `weights`: where an operator has constants of scales of their
    own; all other float inputs are data."""

    alike: bool = False
    below_one: bool = False
    prescribed: Fixed | None = None
    weights: Weights | None = None


_WEIGHTS: Mapping[str, Weights] = MappingProxyType(
    {
        "conv2d": Weights(0, 1, 2, 0),
        "depthwise_conv2d": Weights(0, 1, 2, 3),
        "fully_connected": Weights(0, 1, 2, None),
        "transpose_conv2d": Weights(2, 1, 3, 0),
    }
)
"""By the order of the file's inputs."""
_ALIKE = frozenset({"average_pool2d", "max_pool2d", "resize_bilinear"})
"""Kinds that compute, and whose kernels in LiteRT take no other scale for the output."""
_LEFT = frozenset(
    {
        *("assign", "cast", "dequantize", "fill", "quantize"),  # change types, not a scale
        *("detection_postprocess", "lstm", "svdf"),  # have states, or make boxes
        "scatter_nd",  # LiteRT's empty places are the byte 0, whatever the zero point
    }
)


@cache
def _int8_kinds() -> Mapping[str, Form[Any]]:
    forms = (form for kind in specs().values() for form in kind.forms)
    return MappingProxyType(
        {
            builtin: form
            for form in forms
            if form.tflite is not None and DType.INT8 in form.dtypes
            for builtin in form.tflite.builtins
        }
    )


def rule_of(builtin: str) -> Rule | None:
    """The rule for an operator; None where it stays in float."""
    spec = _int8_kinds().get(builtin)
    if spec is None or spec.kind in _LEFT:
        return None
    alike = spec.quantised.stored or spec.kind in _ALIKE
    return Rule(alike, spec.kind == "compare", PRESCRIBED.get(spec.kind), _WEIGHTS.get(spec.kind))


def stored_in_int8(builtin: str) -> int | None:
    """The input that may be int8 constants although the operator computes in float: its weights, or
    the table of an embedding, which comes after the places. None for no input."""
    rule, spec = rule_of(builtin), _int8_kinds().get(builtin)
    if rule is None or spec is None:
        return None
    if rule.weights is not None:
        return rule.weights.weights
    return 1 if spec.kind == "gather" else None
