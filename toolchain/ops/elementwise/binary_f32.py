"""float32 functions of two tensors that broadcast, with a fused activation where TFLite has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import float_math
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.arithmetic.float_math import Float32
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.elementwise.common import expression_of
from toolchain.ops.elementwise.kernels import broadcast_kernel, expressed
from toolchain.ops.readers.float32 import (
    check_float_node,
    clamped,
    float32_elementwise_sample,
    larger,
    range_of,
    smaller,
)


@dataclass(frozen=True)
class _Function:
    """`calls`: the C function that the template's expression calls; '' for none."""

    apply: Callable[[Float32, Float32], Float32]
    calls: str = ""


FUNCTIONS: Mapping[str, _Function] = MappingProxyType(
    {
        "add": _Function(lambda a, b: a + b),
        "atan2": _Function(float_math.atan2, "thimble_atan2_f32"),
        "div": _Function(lambda a, b: a / b),
        "floor_div": _Function(float_math.floor_div, "thimble_floor_div_f32"),
        "floor_mod": _Function(float_math.floor_mod, "thimble_floor_mod_f32"),
        "maximum": _Function(larger, "thimble_max_f32"),
        "minimum": _Function(smaller, "thimble_min_f32"),
        "mul": _Function(lambda a, b: a * b),
        "pow": _Function(float_math.power, "thimble_pow_f32"),
        "pow_multiplied": _Function(float_math.power_multiplied, "thimble_pow_multiplied_f32"),
        "prelu": _Function(lambda a, b: np.where(a >= 0, a, a * b)),
        "squared_difference": _Function(lambda a, b: (a - b) * (a - b)),
        "sub": _Function(lambda a, b: a - b),
    }
)
"""By the kind that they are the float32 form of (`expression_of`)."""


def _activation(op: kit.AnyOperator) -> Activation:
    activation = getattr(op.attributes, "activation", Activation.NONE)
    assert isinstance(activation, Activation)
    return activation


def _clamps(op: kit.AnyOperator) -> bool:
    """Whether the result is clamped.

    TFLite clamps ADD, SUB, MUL and DIV without an activation, too: to finite numbers
    (`CalculateActivationRange`), so that 1 / 0 is the largest of them. ONNX Runtime does not.
    """
    if _activation(op) is not Activation.NONE:
        return True
    rounding = getattr(op.attributes, "rounding", Rounding.TFLITE)
    return hasattr(op.attributes, "activation") and rounding is Rounding.TFLITE


def _reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    a, b = (values.astype(np.float32) for values in inputs)
    with np.errstate(all="ignore"):
        values = FUNCTIONS[expression_of(op)].apply(a, b)
    if _clamps(op):
        values = clamped(values, _activation(op))
    return (values.astype(np.float32).reshape(op.y.shape),)


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    """Loops around the function's expression."""
    loops = broadcast_kernel(op, core, "")
    if not _clamps(op):
        name = expression_of(op)
        return expressed(loops, "binary_f32", name, FUNCTIONS[name].calls)
    low, high = range_of(_activation(op))
    limits = {"low": low, "high": high}
    return expressed(loops, "binary_f32", op.kind, "thimble_clamp_f32", limits)


def float_form(
    base: kit.Form[Any],
    read: Callable[[kit.TfliteNode], kit.Attributes] = lambda node: kit.Attributes(),
) -> kit.Form[Any]:
    """The float32 form of an int8 kind `base`. `read` makes the attributes of a TFLite operator."""
    assert base.tflite is not None
    binding = base.tflite

    def read_float(node: kit.TfliteNode) -> kit.ReadOp:
        check_float_node(node)
        return kit.ReadOp(read(node), (0, 1))

    def write(op: kit.AnyOperator) -> kit.WrittenOp:
        return replace(binding.write(op), version=1)

    activation = ", fused activation" if hasattr(base.attributes(), "activation") else ""
    return replace(
        base,
        reference=_reference,
        select=_select,
        sample=float32_elementwise_sample(base.sample),
        tflite=kit.TfliteBinding(binding.builtins, read_float, write),
        onnx=None,
        dtype=kit.DType.FLOAT32,
        limits=f"float32, any broadcast{activation}",
    )
