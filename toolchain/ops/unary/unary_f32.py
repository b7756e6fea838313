"""A function of one float32 value. TFLite's activations and elementary functions.

Those that need a series or a table in C libraries are our own (`_float_math`): within two units in
the last place of LiteRT's, the same bits on every core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops import extents
from toolchain.ops.arithmetic import float_math
from toolchain.ops.arithmetic.float_math import Float32
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import infer_unary, overlaps_same_shape, sample_shape
from toolchain.ops.readers.floats import FLOAT, HEADER, check_float_node, clip, literal
from toolchain.ops.spec import (
    Array,
    Lowering,
    OpSpec,
    ReadOp,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_ZERO, _ONE, _THREE, _SIX = (np.float32(value) for value in (0, 1, 3, 6))


@dataclass(frozen=True)
class Unary(Attributes):
    """`function` names an entry of `FUNCTIONS`; `alpha` is the slope of a leaky ReLU."""

    function: str
    alpha: float = 0.0


def _root(x: Float32) -> Float32:
    root: Float32 = np.sqrt(x)
    return root


def _leaky(x: Float32, alpha: np.float32) -> Float32:
    return np.where(x > 0, x, x * alpha)


@dataclass(frozen=True)
class _Function:
    """`builtin`: TFLite's, '' where it has none. `calls`: the C function of one value that the
    template calls, '' for an expression."""

    builtin: str
    apply: Callable[[Float32, np.float32], Float32]
    calls: str = ""


FUNCTIONS: Mapping[str, _Function] = MappingProxyType(
    {
        "abs": _Function("ABS", lambda x, a: np.abs(x)),
        "elu": _Function(
            "ELU",
            lambda x, a: float_math.elu(x),
            "thimble_exp_f32",
        ),
        "erf": _Function("", lambda x, a: float_math.erf(x), "thimble_erf_f32"),
        "exp": _Function("EXP", lambda x, a: float_math.exp(x), "thimble_exp_f32"),
        "gelu": _Function("GELU", lambda x, a: float_math.gelu(x), "thimble_gelu_f32"),
        "gelu_tanh": _Function(
            "GELU", lambda x, a: float_math.gelu_tanh(x), "thimble_gelu_tanh_f32"
        ),
        "hard_swish": _Function(
            "HARD_SWISH", lambda x, a: x * clip(x + _THREE, _ZERO, _SIX) / _SIX
        ),
        "leaky_relu": _Function("LEAKY_RELU", _leaky),
        "log": _Function("LOG", lambda x, a: float_math.log(x), "thimble_log_f32"),
        "logistic": _Function(
            "LOGISTIC", lambda x, a: float_math.logistic(x), "thimble_logistic_f32"
        ),
        "neg": _Function("NEG", lambda x, a: -x),
        "relu": _Function("RELU", lambda x, a: np.where(x < _ZERO, _ZERO, x)),
        "relu6": _Function("RELU6", lambda x, a: clip(x, _ZERO, _SIX)),
        "relu_0_to_1": _Function("RELU_0_TO_1", lambda x, a: clip(x, _ZERO, _ONE)),
        "relu_n1_to_1": _Function("RELU_N1_TO_1", lambda x, a: clip(x, -_ONE, _ONE)),
        "rsqrt": _Function("RSQRT", lambda x, a: _ONE / _root(x), "thimble_sqrt_f32"),
        "sqrt": _Function("SQRT", lambda x, a: _root(x), "thimble_sqrt_f32"),
        "square": _Function("SQUARE", lambda x, a: x * x),
        "tanh": _Function("TANH", lambda x, a: float_math.tanh(x), "thimble_tanh_f32"),
    }
)
_OPTIONS = MappingProxyType({"GELU": "GeluOptions", "LEAKY_RELU": "LeakyReluOptions"})
_NOT_SAMPLED = frozenset({"elu", "erf", "log", "rsqrt", "sqrt"})
"""LiteRT's reference kernels lack ELU and erf; the others want positive values."""


def _attributes(op: Op) -> Unary:
    assert isinstance(op.attributes, Unary)
    return op.attributes


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    attributes = _attributes(op)
    with np.errstate(all="ignore"):
        values = FUNCTIONS[attributes.function].apply(
            inputs[0].astype(np.float32), np.float32(attributes.alpha)
        )
    return (values.astype(np.float32).reshape(graph.output(op).shape),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    attributes = _attributes(op)
    calls = FUNCTIONS[attributes.function].calls
    return Lowering(
        functions=(calls or HEADER,),
        fields={
            "function": attributes.function,
            "calls": calls,
            "alpha": literal(attributes.alpha),
            "size": graph.input(op, 0).elements,
        },
    )


def _read(node: TfliteNode) -> ReadOp:
    check_float_node(node)
    name = node.builtin.lower()
    if name == "gelu" and node.has_options and node.options.approximate:
        name = "gelu_tanh"
    alpha = float(node.options.alpha) if name == "leaky_relu" else 0.0
    return ReadOp(Unary(name, alpha), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    attributes = _attributes(op)
    builtin = FUNCTIONS[attributes.function].builtin
    options: dict[str, object] = {}
    if builtin == "GELU":
        options = {"approximate": attributes.function == "gelu_tanh"}
    if builtin == "LEAKY_RELU":
        options = {"alpha": attributes.alpha}
    return WrittenOp(builtin, _OPTIONS.get(builtin, ""), options)


def _sample(rng: np.random.Generator) -> Graph:
    shape = sample_shape(rng)
    function = str(rng.choice(sorted(set(FUNCTIONS) - _NOT_SAMPLED)))
    alpha = float(np.float32(rng.uniform(0, 1))) if function == "leaky_relu" else 0.0
    op = Op("unary_f32", "unary", ("x",), ("y",), Unary(function, alpha))
    tensors = [Tensor(name, shape, DType.FLOAT32) for name in ("x", "y")]
    return Graph.build("sample", tensors, [op], ["x"], ["y"])


SPEC = OpSpec(
    kind="unary_f32",
    attributes=Unary,
    infer=infer_unary,
    reference=_reference,
    lower=_lower,
    extents=extents.sized("f32"),
    sample=_sample,
    overlaps=overlaps_same_shape,
    axes=elementwise_axes,
    tflite=TfliteBinding(
        tuple(dict.fromkeys(f.builtin for f in FUNCTIONS.values() if f.builtin)), _read, _write
    ),
    dtypes=FLOAT,
    limits="float32",
)
