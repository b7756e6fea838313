"""float32 functions of one value: activations and elementary functions.

Functions that C libraries compute by a series or a table are Thimble's own (`float_math`): within
two units in the last place of LiteRT's, and the same bits on every core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import float_math
from toolchain.ops.arithmetic.float_math import Float32
from toolchain.ops.elementwise.kernels import expressed, sized_kernel
from toolchain.ops.readers.float32 import (
    check_float_node,
    clip,
    float32_elementwise_sample,
)

_ZERO, _ONE, _THREE, _SIX = (np.float32(value) for value in (0, 1, 3, 6))


@dataclass(frozen=True)
class FloatFunction:
    """`name` is an entry of `FUNCTIONS`; `alpha` is the slope of a leaky ReLU."""

    name: str
    alpha: float | None = None


def _root(x: Float32) -> Float32:
    root: Float32 = np.sqrt(x)
    return root


def _leaky(x: Float32, alpha: np.float32) -> Float32:
    return np.where(x > 0, x, x * alpha)


@dataclass(frozen=True)
class _Function:
    """`calls`: the C function that the template's expression calls; '' for none."""

    apply: Callable[[Float32, np.float32], Float32]
    calls: str = ""


FUNCTIONS: Mapping[str, _Function] = MappingProxyType(
    {
        "abs": _Function(lambda x, a: np.abs(x)),
        "ceil": _Function(lambda x, a: -float_math.floor(-x), "thimble_floor_f32"),
        "cos": _Function(lambda x, a: float_math.cos(x), "thimble_cos_f32"),
        "elu": _Function(
            lambda x, a: float_math.elu(x),
            "thimble_exp_f32",
        ),
        "erf": _Function(lambda x, a: float_math.erf(x), "thimble_erf_f32"),
        "exp": _Function(lambda x, a: float_math.exp(x), "thimble_exp_f32"),
        "floor": _Function(lambda x, a: float_math.floor(x), "thimble_floor_f32"),
        "gelu": _Function(lambda x, a: float_math.gelu(x), "thimble_gelu_f32"),
        "gelu_tanh": _Function(lambda x, a: float_math.gelu_tanh(x), "thimble_gelu_tanh_f32"),
        "hard_swish": _Function(
            lambda x, a: x * clip(x + _THREE, _ZERO, _SIX) / _SIX, "thimble_clamp_f32"
        ),
        "leaky_relu": _Function(_leaky),
        "log": _Function(lambda x, a: float_math.log(x), "thimble_log_f32"),
        "logistic": _Function(lambda x, a: float_math.logistic(x), "thimble_logistic_f32"),
        "neg": _Function(lambda x, a: -x),
        "relu": _Function(lambda x, a: np.where(x < _ZERO, _ZERO, x)),
        "relu6": _Function(lambda x, a: clip(x, _ZERO, _SIX), "thimble_clamp_f32"),
        "relu_0_to_1": _Function(lambda x, a: clip(x, _ZERO, _ONE), "thimble_clamp_f32"),
        "relu_n1_to_1": _Function(lambda x, a: clip(x, -_ONE, _ONE), "thimble_clamp_f32"),
        "round": _Function(lambda x, a: float_math.nearest(x), "thimble_round_f32"),
        "rsqrt": _Function(lambda x, a: _ONE / _root(x), "thimble_sqrt_f32"),
        "sign": _Function(lambda x, a: np.sign(x)),
        "sin": _Function(lambda x, a: float_math.sin(x), "thimble_sin_f32"),
        "sqrt": _Function(lambda x, a: _root(x), "thimble_sqrt_f32"),
        "square": _Function(lambda x, a: x * x),
        "tanh": _Function(lambda x, a: float_math.tanh(x), "thimble_tanh_f32"),
    }
)


def _of_kind(op: kit.AnyOperator) -> FloatFunction:
    return FloatFunction(op.kind)


def float_reference(function: FloatFunction, x: kit.Array) -> Float32:
    """The function of each element."""
    alpha = np.float32(function.alpha or 0.0)
    with np.errstate(all="ignore"):
        values = FUNCTIONS[function.name].apply(x.astype(np.float32), alpha)
    return values.astype(np.float32)


def float_kernel(op: kit.AnyOperator, function: FloatFunction) -> kit.Kernel:
    """A loop over the function's expression."""
    numbers = {} if function.alpha is None else {"alpha": function.alpha}
    calls = FUNCTIONS[function.name].calls
    return expressed(sized_kernel(op, ""), "unary_f32", function.name, calls, numbers)


def float_form(
    base: kit.Form[Any],
    function: Callable[[kit.Operator[Any]], FloatFunction] = _of_kind,
    read: Callable[[kit.TfliteNode], kit.Attributes] = lambda node: kit.Attributes(),
) -> kit.Form[Any]:
    """The float32 form of an int8 kind `base`. `read` makes the attributes of a TFLite operator."""
    assert base.tflite is not None
    binding = base.tflite

    def reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
        return (float_reference(function(op), inputs[0]).reshape(op.y.shape),)

    def select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        return float_kernel(op, function(op))

    def read_float(node: kit.TfliteNode) -> kit.ReadOp:
        check_float_node(node)
        return kit.ReadOp(read(node), (0,))

    def write(op: kit.AnyOperator) -> kit.WrittenOp:
        return replace(binding.write(op), version=1)

    return replace(
        base,
        reference=reference,
        select=select,
        sample=float32_elementwise_sample(base.sample),
        tflite=kit.TfliteBinding(binding.builtins, read_float, write),
        onnx=None,
        dtype=kit.DType.FLOAT32,
        limits="float32",
    )
