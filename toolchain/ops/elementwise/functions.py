"""The table of element-wise functions, a row each. `rows` says what a row holds.

A row begins with its name, the TFLite operator, the ONNX operator, the formula and the C function
that its expression calls. A new function is a row here and its C in `templates/ops/_functions.c.j2`
(docs/architecture.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import float_math
from toolchain.ops.elementwise import (
    addition,
    div,
    extremum,
    integers,
    multiplication,
    prelu,
    squared_difference,
)
from toolchain.ops.elementwise.common import (
    infer_of_one_shape,
    sample_binary,
    sample_quantisation,
    sample_unary,
)
from toolchain.ops.elementwise.rows import (
    Binary,
    Formula,
    Integers,
    Options,
    Parameter,
    Unary,
    elementary,
    fused,
    same,
)
from toolchain.ops.readers.float32 import clip, larger, smaller
from toolchain.ops.readers.onnx_elementwise import arithmetic_readers, extremum_readers
from toolchain.ops.unary import abs as magnitudes
from toolchain.ops.unary import gelu, hard_swish, leaky_relu, relu, roots
from toolchain.ops.unary.relu import Bounds, Relu
from toolchain.ops.unary.sigmoid_s16 import sigmoid
from toolchain.ops.unary.tables import interpolated, table

_BOTH = (kit.DType.INT32, kit.DType.INT64)
_ZERO, _THREE, _SIX = (np.float32(value) for value in (0, 3, 6))
_FROM_0_TO_1, _FROM_MINUS_1_TO_1 = (1 / 256, -128), (1 / 128, 0)
_EXTREMUM = Options(options_type="MaximumMinimumOptions")
_FLOOR, _CLAMP, _SQRT = "thimble_floor_f32", "thimble_clamp_f32", "thimble_sqrt_f32"

_ELU = elementary(lambda m, x, a=1.0: np.where(x < 0, a * m.expm1(np.minimum(x, 0)), x))
_EXP = elementary(lambda m, x: m.exp(x))
_LOG = elementary(lambda m, x: m.log(x))
_LOGISTIC = elementary(lambda m, x: 1.0 / (1.0 + m.exp(-x)), own=float_math.logistic)
_RSQRT = same(lambda x: 1.0 / np.sqrt(x))
_TANH = elementary(lambda m, x: m.tanh(x))


def _alpha(value: float, *others: Parameter) -> tuple[Parameter, ...]:
    return (Parameter(value, "alpha"), *others)


def _sample_logistic(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    scale, usual = _FROM_0_TO_1
    zero = usual if rng.random() < 0.8 else int(rng.integers(-128, 128))
    return sample_unary(rng, kind, attributes, kit.Quantisation((scale,), (zero,)))


def _sample_tanh(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    scale, zero = _FROM_MINUS_1_TO_1
    q = kit.Quantisation((scale,), (zero,))
    if rng.random() >= 0.6:
        q = sample_quantisation(rng, scale=float(2.0 ** rng.uniform(-8, -4)))
    return sample_unary(rng, kind, attributes, q)


def _sample_atan2(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    while True:
        graph = sample_binary(rng, kind, attributes)
        if graph.tensors["a"].shape == graph.tensors["b"].shape:
            return graph


def _relu(bounds: Bounds, quantised: bool = False, onnx: str = "") -> Unary:
    """`quantised`: in int16, too. Its results for ONNX are those of Clip."""
    least, most = (np.float32(bound) for bound in bounds.real)
    return Unary(
        bounds.value.lower(),
        bounds.value,
        onnx,
        Formula(own=lambda x, low=least, high=most: clip(x, low, high)),
        "" if math.isinf(most) else _CLAMP,
        kind="relu",
        attributes=Relu(bounds),
        options=relu.OPTIONS,
        int8=relu.INT8 if quantised else relu.UNVERSIONED,
        int16=relu.INT16 if quantised else None,
        parameters=tuple(map(Parameter, bounds.real)),
        table="Clip",
        keeps=True,
    )


_UNARY = (
    Unary(
        *("abs", "ABS", "Abs", same(np.abs)),
        int8=magnitudes.INT8,
        int16=magnitudes.INT16,
        integers=Integers(np.abs, version=5),
        folds=True,
    ),
    Unary(
        "ceil",
        "CEIL",
        "Ceil",
        Formula(np.ceil, lambda x: -float_math.floor(-x)),
        _FLOOR,
        folds=True,
    ),
    Unary(
        *("celu", "", "Celu"),
        Formula(lambda x, a: np.where(x < 0, a * np.expm1(np.minimum(x, 0.0) / a), x)),
        parameters=_alpha(1.0),
    ),
    Unary(
        *("clip", "", "Clip", Formula(np.clip)),
        parameters=(Parameter(-math.inf, index=1), Parameter(math.inf, index=2)),
        straight=lambda low, high: (1.0, low, high),
        keeps=True,
    ),
    Unary("cos", "COS", "Cos", Formula(np.cos, float_math.cos), "thimble_cos_f32"),
    Unary(
        "divided",
        formula=Formula(lambda x, divisor: x / divisor),
        parameters=(Parameter(1.0, index=1),),
        table="Div",
        straight=lambda divisor: (divisor, -math.inf, math.inf),
    ),
    Unary(
        *("elu", "ELU", "Elu", _ELU, "thimble_exp_f32"),
        int8=table(_ELU, version=1),
        parameters=_alpha(1.0),
    ),
    Unary(
        *("erf", "", "Erf", Formula(gelu.ERF, float_math.erf), "thimble_erf_f32"),
        stored=_FROM_MINUS_1_TO_1,
    ),
    Unary(
        *("exp", "EXP", "Exp", _EXP, "thimble_exp_f32"),
        int8=table(_EXP),
        int16=interpolated(_EXP),
    ),
    Unary("floor", "FLOOR", "Floor", Formula(np.floor, float_math.floor), _FLOOR, folds=True),
    Unary(
        *("gelu", "GELU", "Gelu", gelu.EXACT, "thimble_gelu_f32"),
        attributes=gelu.Gelu(),
        options=gelu.OPTIONS,
        int8=table(gelu.EXACT),
        int16=interpolated(gelu.EXACT),
    ),
    Unary(
        *("gelu_tanh", "GELU", "Gelu", gelu.TANH, "thimble_gelu_tanh_f32"),
        kind="gelu",
        attributes=gelu.Gelu(approximate=True),
        options=gelu.OPTIONS,
        int8=table(gelu.TANH),
        int16=interpolated(gelu.TANH),
        where=("approximate", "tanh"),
        table="GeluTanh",
    ),
    Unary(
        *("hard_sigmoid", "", "HardSigmoid"),
        Formula(lambda x, a, b: np.clip(a * x + b, 0.0, 1.0)),
        parameters=_alpha(0.2, Parameter(0.5, "beta")),
        stored=_FROM_0_TO_1,
    ),
    Unary(
        *("hard_swish", "HARD_SWISH", "HardSwish"),
        Formula(
            lambda x: x * np.clip(x / 6.0 + 0.5, 0.0, 1.0),
            lambda x: x * clip(x + _THREE, _ZERO, _SIX) / _SIX,
        ),
        _CLAMP,
        int8=hard_swish.INT8,
        options=Options(options_type="HardSwishOptions"),
    ),
    Unary(
        "identity",
        formula=Formula(lambda x: x),
        table="Identity",
        straight=lambda: (1.0, -math.inf, math.inf),
    ),
    Unary(
        *("leaky_relu", "LEAKY_RELU", "LeakyRelu"),
        same(lambda x, alpha: np.where(x > 0, x, x * alpha)),
        attributes=leaky_relu.LeakyRelu(),
        options=leaky_relu.OPTIONS,
        int8=leaky_relu.INT8,
        int16=leaky_relu.INT16,
        parameters=_alpha(0.01),
    ),
    Unary(
        *("log", "LOG", "Log", _LOG, "thimble_log_f32"),
        int8=table(_LOG),
        int16=interpolated(_LOG, elsewhere=-32768),
    ),
    Unary(
        *("logistic", "LOGISTIC", "Sigmoid", _LOGISTIC, "thimble_logistic_f32"),
        int8=table(_LOGISTIC, output_scale=_FROM_0_TO_1[0]),
        int16=sigmoid(9, 0x7FFF << 10, (0,), is_tanh=False),
        sample=_sample_logistic,
        stored=_FROM_0_TO_1,
    ),
    Unary("mish", "", "Mish", Formula(lambda x: x * np.tanh(np.logaddexp(0.0, x)))),
    Unary(
        *("neg", "NEG", "Neg", same(np.negative)),
        integers=Integers(np.negative, _BOTH),
        folds=True,
    ),
    Unary(
        *("raised", "", "Pow", Formula(np.power)),
        parameters=(Parameter(1.0, index=1),),
    ),
    Unary("reciprocal", "", "Reciprocal", Formula(lambda x: 1.0 / x)),
    _relu(Bounds.RELU, quantised=True, onnx="Relu"),
    _relu(Bounds.RELU6, quantised=True),
    _relu(Bounds.RELU_N1_TO_1),
    _relu(Bounds.RELU_0_TO_1),
    Unary("round", "ROUND", "Round", Formula(np.rint, float_math.nearest), "thimble_round_f32"),
    Unary(
        *("rsqrt", "RSQRT", "", _RSQRT, _SQRT),
        int8=roots.RSQRT,
        int16=interpolated(_RSQRT, elsewhere=32767),
        sample=roots.sample,
    ),
    Unary(
        *("selu", "", "Selu"),
        Formula(lambda x, a, g: g * np.where(x < 0, a * np.expm1(np.minimum(x, 0.0)), x)),
        parameters=_alpha(1.67326319217681884765625, Parameter(1.05070102214813232421875, "gamma")),
    ),
    Unary("sign", "SIGN", "Sign", same(np.sign), integers=Integers(np.sign, version=2)),
    Unary("sin", "SIN", "Sin", Formula(np.sin, float_math.sin), "thimble_sin_f32"),
    Unary("softplus", "", "Softplus", Formula(lambda x: np.logaddexp(0.0, x))),
    Unary(
        *("softsign", "", "Softsign", Formula(lambda x: x / (1.0 + np.abs(x)))),
        stored=_FROM_MINUS_1_TO_1,
    ),
    Unary(
        *("sqrt", "SQRT", "Sqrt", same(np.sqrt), _SQRT),
        int8=roots.SQRT,
        int16=roots.SQRT_S16,
        sample=roots.sample,
    ),
    Unary("square", "SQUARE", "", Formula(own=np.square)),
    Unary(
        *("tanh", "TANH", "Tanh", _TANH, "thimble_tanh_f32"),
        int8=table(_TANH),
        int16=sigmoid(8, 0xFFFF << 8, (0, 1), is_tanh=True),
        sample=_sample_tanh,
        stored=_FROM_MINUS_1_TO_1,
    ),
    Unary(
        *("thresholded_relu", "", "ThresholdedRelu"),
        Formula(lambda x, a: np.where(x > a, x, 0.0)),
        parameters=_alpha(1.0),
    ),
)

_BINARY = (
    Binary(
        *("add", "ADD", "Add", Formula(own=np.add)),
        attributes=addition.Sum(),
        options=fused("AddOptions", addition.Sum),
        int8=addition.ADD,
        int16=addition.ADD_S16,
        integers=Integers(np.add, _BOTH),
        sample=addition.sample,
        readers=arithmetic_readers,
        folds=True,
    ),
    Binary(
        *("atan2", "ATAN2", "", Formula(own=float_math.atan2), "thimble_atan2_f32"),
        infer=infer_of_one_shape,
        shapes=", of one shape",
        sample=_sample_atan2,
    ),
    Binary("bitwise_xor", "BITWISE_XOR", integers=Integers(np.bitwise_xor)),
    Binary(
        *("div", "DIV", "Div", Formula(own=np.divide)),
        attributes=div.Div(),
        options=fused("DivOptions", div.Div),
        int8=div.INT8,
        int16=div.INT16,
        integers=Integers(
            integers.quotient, only_onnx=(kit.DType.INT64,), limited=integers.DIVISOR
        ),
        sample=div.sample,
        readers=div.readers,
        folds=True,
    ),
    Binary(
        *("floor_div", "FLOOR_DIV", "", Formula(own=float_math.floor_div)),
        "thimble_floor_div_f32",
        options=Options(options_type="FloorDivOptions"),
        integers=Integers(np.floor_divide, limited=integers.DIVISOR),
        folds=True,
    ),
    Binary(
        *("floor_mod", "FLOOR_MOD", "Mod", Formula(own=float_math.floor_mod)),
        "thimble_floor_mod_f32",
        options=Options(options_type="FloorModOptions"),
        integers=Integers(np.mod, _BOTH, limited=integers.DIVISOR),
        readers=integers.remainder_readers,
        folds=True,
    ),
    Binary(
        *("maximum", "MAXIMUM", "Max", Formula(own=larger), "thimble_max_f32"),
        options=_EXTREMUM,
        int8=extremum.MAXIMUM,
        int16=extremum.MAXIMUM_S16,
        integers=Integers(np.maximum, _BOTH),
        sample=extremum.sample,
        quantised=kit.STORED,
        readers=extremum_readers,
        folds=True,
    ),
    Binary(
        *("minimum", "MINIMUM", "Min", Formula(own=smaller), "thimble_min_f32"),
        options=_EXTREMUM,
        int8=extremum.MINIMUM,
        int16=extremum.MINIMUM_S16,
        integers=Integers(np.minimum, _BOTH),
        sample=extremum.sample,
        quantised=kit.STORED,
        readers=extremum_readers,
        folds=True,
    ),
    Binary(
        *("mul", "MUL", "Mul", Formula(own=np.multiply)),
        attributes=multiplication.Mul(),
        options=fused("MulOptions", multiplication.Mul),
        int8=multiplication.INT8,
        int16=multiplication.INT16,
        integers=Integers(np.multiply, _BOTH),
        sample=multiplication.sample,
        readers=arithmetic_readers,
        folds=True,
    ),
    Binary(
        *("pow", "POW", "", Formula(own=float_math.power), "thimble_pow_f32"),
        attributes=integers.Pow(),
        options=integers.POW,
        integers=Integers(integers.power, calls="thimble_pow_s32", limited=integers.EXPONENT),
        sample=integers.sample_pow,
    ),
    Binary(
        *("pow_multiplied", "POW", "", Formula(own=float_math.power_multiplied)),
        "thimble_pow_multiplied_f32",
        kind="pow",
        integers=Integers(
            integers.power_multiplied, calls="thimble_pow_wrapped_s32", limited=integers.EXPONENT
        ),
    ),
    Binary(
        *("prelu", "PRELU", "PRelu", Formula(own=lambda a, b: np.where(a >= 0, a, a * b))),
        int8=prelu.INT8,
        int16=prelu.INT16,
        infer=prelu.infer,
        sample=prelu.sample,
        readers=prelu.readers,
    ),
    Binary(
        *("right_shift", "RIGHT_SHIFT"),
        integers=Integers(lambda a, b: a >> np.clip(b, 0, 31)),
    ),
    Binary(
        *("squared_difference", "SQUARED_DIFFERENCE", ""),
        Formula(own=lambda a, b: (a - b) * (a - b)),
        options=Options(options_type="SquaredDifferenceOptions"),
        int8=squared_difference.INT8,
        int16=squared_difference.INT16,
        integers=Integers(integers.squared_wrapping),
        sample=squared_difference.sample,
    ),
    Binary(
        *("sub", "SUB", "Sub", Formula(own=np.subtract)),
        attributes=addition.Sum(),
        options=fused("SubOptions", addition.Sum),
        int8=addition.SUB,
        int16=addition.SUB_S16,
        integers=Integers(np.subtract, _BOTH),
        sample=addition.sample,
        readers=arithmetic_readers,
        folds=True,
    ),
)

UNARY: Mapping[str, Unary] = MappingProxyType({row.name: row for row in _UNARY})
BINARY: Mapping[str, Binary] = MappingProxyType({row.name: row for row in _BINARY})
