"""Any function of one int8 operand that ONNX computes in float between two quantised tensors.

DequantizeLinear, the function in float32, QuantizeLinear (halves to even): there are 256 possible
results. They are computed at compile time with ONNX Runtime's own arithmetic. A function that is a
clamped straight line (Relu, Clip) needs no table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    Int64,
    Line,
    infer_unary,
    reference_unary,
    require_types,
    rescaling,
    sample_unary,
)
from toolchain.ops.elementwise.kernels import unary_kernel

Real = NDArray[np.float64]
_ERF = np.vectorize(math.erf, otypes=[np.float64])


def _elu(x: Real, alpha: float) -> Real:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0.0)), x)


def _selu(x: Real, alpha: float, gamma: float) -> Real:
    return gamma * _elu(x, alpha)


def _gelu(x: Real) -> Real:
    result: Real = 0.5 * x * (1.0 + _ERF(x / math.sqrt(2.0)))
    return result


def _gelu_tanh(x: Real) -> Real:
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)
    result: Real = 0.5 * x * (1.0 + np.tanh(inner))
    return result


FUNCTIONS: Mapping[str, Callable[..., Real]] = MappingProxyType(
    {
        "Abs": np.abs,
        "Ceil": np.ceil,
        "Celu": lambda x, a: np.where(x < 0, a * np.expm1(np.minimum(x, 0.0) / a), x),
        "Clip": lambda x, low, high: np.clip(x, low, high),
        "Cos": np.cos,
        "Div": lambda x, divisor: x / divisor,
        "Elu": _elu,
        "Erf": _ERF,
        "Exp": np.exp,
        "Floor": np.floor,
        "Gelu": _gelu,
        "GeluTanh": _gelu_tanh,
        "HardSigmoid": lambda x, a, b: np.clip(a * x + b, 0.0, 1.0),
        "HardSwish": lambda x: x * np.clip(x / 6.0 + 0.5, 0.0, 1.0),
        "Identity": lambda x: x,
        "LeakyRelu": lambda x, a: np.where(x < 0, a * x, x),
        "Log": np.log,
        "Mish": lambda x: x * np.tanh(np.logaddexp(0.0, x)),
        "Neg": lambda x: -x,
        "Pow": lambda x, exponent: np.power(x, exponent),
        "Reciprocal": lambda x: 1.0 / x,
        "Round": np.rint,
        "Selu": _selu,
        "Sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
        "Sign": np.sign,
        "Sin": np.sin,
        "Softplus": lambda x: np.logaddexp(0.0, x),
        "Softsign": lambda x: x / (1.0 + np.abs(x)),
        "Sqrt": np.sqrt,
        "Tanh": np.tanh,
        "ThresholdedRelu": lambda x, a: np.where(x > a, x, 0.0),
    }
)
"""By the operator's name in ONNX; the parameters follow the operand."""

_DEFAULTS: Mapping[str, tuple[tuple[str, float], ...]] = MappingProxyType(
    {
        "Celu": (("alpha", 1.0),),
        "Elu": (("alpha", 1.0),),
        "HardSigmoid": (("alpha", 0.2), ("beta", 0.5)),
        "LeakyRelu": (("alpha", 0.01),),
        "Selu": (("alpha", 1.67326319217681884765625), ("gamma", 1.05070102214813232421875)),
        "ThresholdedRelu": (("alpha", 1.0),),
    }
)
_NATURAL = MappingProxyType(
    {
        "Sigmoid": kit.Quantisation((1 / 256,), (-128,)),
        "HardSigmoid": kit.Quantisation((1 / 256,), (-128,)),
        "Tanh": kit.Quantisation((1 / 128,), (0,)),
        "Erf": kit.Quantisation((1 / 128,), (0,)),
        "Softsign": kit.Quantisation((1 / 128,), (0,)),
    }
)
"""For results that the model leaves in float: the range of the function, as TFLite stores it."""


@dataclass(frozen=True)
class Lookup(kit.Attributes):
    """`function` is a name in FUNCTIONS, which takes the operand and then
    `parameters`; or TABLE.
    """

    function: str
    parameters: tuple[float, ...] = ()


TABLE = "Table"
"""The function that is given by its results for stored values -128 to 127, as parameters."""
TABLE_OPERATOR = "thimble.Table"
"""The operator that the ONNX front end makes of a chain of functions: one input, and `reals` with
its results.
"""


def _value(op: kit.Operator[Lookup], stored: Int64) -> NDArray[np.float32]:
    """The real result."""
    x = op.x.q
    if op.attributes.function == TABLE:
        return np.array(op.attributes.parameters, np.float32)[stored + 128]
    real = np.float32(x.scale) * (stored - x.zero_point).astype(np.float32)
    function = FUNCTIONS[op.attributes.function]
    return function(real.astype(np.float64), *op.attributes.parameters).astype(np.float32)


def _apply(op: kit.Operator[Lookup], stored: Int64) -> Int64:
    y = op.y.q
    with np.errstate(all="ignore"):
        value = _value(op, stored)
        quotient = value / np.float32(y.scale)
    scaled = np.nan_to_num(quotient, nan=-1e9, posinf=1e9, neginf=-1e9)  # NaN as on x86
    result: Int64 = np.clip(np.rint(scaled) + y.zero_point, -128, 127).astype(np.int64)
    return result


def _reference(op: kit.Operator[Lookup], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    return reference_unary(op, inputs, lambda stored: _apply(op, stored))


def _select(op: kit.Operator[Lookup], core: kit.Core) -> kit.Kernel:
    require_types(op, kit.DType.INT8)
    x, y = op.x, op.y
    line = None
    if op.attributes.function == "Identity":
        line = rescaling(x, y)
    elif op.attributes.function == "Div":
        slope = x.q.scale / (y.q.scale * op.attributes.parameters[0])
        line = Line(slope, y.q.zero_point - slope * x.q.zero_point)
    elif op.attributes.function == "Clip":
        low, high = (
            int(np.clip(np.rint(bound / y.q.scale) + y.q.zero_point, -128, 127))
            for bound in op.attributes.parameters
        )
        line = rescaling(x, y, low, high)
    return unary_kernel(op, lambda stored: _apply(op, stored), line)


def _read(node: kit.OnnxNode) -> None:
    function, parameters = (
        node.operator,
        tuple(
            float(node.attribute(name, default))
            for name, default in _DEFAULTS.get(node.operator, ())
        ),
    )
    if function == "Relu":
        function, parameters = "Clip", (0.0, math.inf)
    elif function == "Clip":
        parameters = (
            _bound(node, 1, -math.inf),
            _bound(node, 2, math.inf),
        )
    elif function == "Pow":
        parameters = (_bound(node, 1, 1.0),)
    elif function == TABLE_OPERATOR:
        function, parameters = TABLE, tuple(float(real) for real in node.attribute("reals"))
    elif function == "Gelu" and node.attribute("approximate", "none") == "tanh":
        function = "GeluTanh"
    natural = node.quantisation(0) if function == "Clip" else _NATURAL.get(function)
    node.emit_like(0, "lookup", Lookup(function, parameters), node.output_quantisation(natural))


def _bound(node: kit.OnnxNode, index: int, default: float) -> float:
    if node.has(index):
        real = node.constant(index).real
        if real.size != 1:
            raise node.unsupported(f"its input {index} is not one number")
        return float(np.float32(real.reshape(())))
    return default


def _sample(rng: np.random.Generator) -> kit.Graph:
    names = sorted(FUNCTIONS.keys() - {"Pow", "Clip", "Celu", "Div"})
    name = str(rng.choice(names))
    parameters = tuple(value for _, value in _DEFAULTS.get(name, ()))
    if rng.random() < 0.3:
        name, parameters = "Clip", (float(-rng.uniform(0, 2)), float(rng.uniform(0, 9)))
    return sample_unary(rng, kit.Op("lookup", "lookup", ("x",), ("y",), Lookup(name, parameters)))


SPEC = kit.Form(
    kind="lookup",
    attributes=Lookup,
    infer=infer_unary,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    onnx=kit.OnnxBinding(
        ("Relu", TABLE_OPERATOR, *sorted(FUNCTIONS.keys() - {"Div", "GeluTanh", "Identity"})),
        _read,
    ),
    limits="int8, any function of one operand; ONNX only",
)
