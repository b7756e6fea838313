"""The parts of a row of the table of element-wise functions (`functions`).

Forms, readers, references, the quantiser and the C are derived from rows; what does so names no
function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import float_math
from toolchain.ops.arithmetic.libm import expf, logf
from toolchain.ops.arithmetic.tanhf import expm1f, tanhf
from toolchain.ops.elementwise.common import Int64, Line

Numbers = Callable[..., Any]
"""Array operands, and then the parameters: an array of results."""


@dataclass(frozen=True)
class Elementary:
    """Elementary functions in one arithmetic."""

    exp: Numbers
    expm1: Numbers
    log: Numbers
    tanh: Numbers


_REAL = Elementary(np.exp, np.expm1, np.log, np.tanh)
_OWN = Elementary(
    float_math.exp,
    lambda x: float_math.exp(x) - np.float32(1),
    float_math.log,
    float_math.tanh,
)
_LIBM = Elementary(expf, expm1f, logf, tanhf)


@dataclass(frozen=True)
class Formula:
    """A function of one operand in the arithmetics that compute it; None where none does.

    real  in float64: ONNX's functions of quantised values (`unary.lookup`).
    own   in float32, operation by operation as the C expression of the row.
    libm  in float32 with the C library's functions, as LiteRT fills its tables.
    """

    real: Numbers | None = None
    own: Numbers | None = None
    libm: Numbers | None = None


def same(formula: Numbers) -> Formula:
    """A formula without elementary functions."""
    return Formula(formula, formula, formula)


def elementary(formula: Numbers) -> Formula:
    """A formula whose first operand is an `Elementary`."""
    return Formula(*(partial(formula, one) for one in (_REAL, _OWN, _LIBM)))


@dataclass(frozen=True)
class Stored:
    """How TFLite computes a function of int8 or int16.

    apply         stored values to stored values.
    kernel        of the operator, whose tensors have been checked; by default the line or, of int8,
                  a table.
    line          the straight line that a function of int8 may equal.
    output_scale  the only scale of its results that TFLite takes, if there is only one.
    sample        of a kind with these attributes; by default `sample_unary`; of int16 int8's with
                  int16 tensors.
    version       of the operator in files that tests write.
    limits        what is said after the type.
    """

    apply: Callable[[kit.Operator[Any], Int64], Int64]
    kernel: Callable[[kit.Operator[Any]], kit.Kernel] | None = None
    line: Callable[[kit.Operator[Any]], Line | None] = lambda op: None
    output_scale: float | None = None
    sample: Callable[[np.random.Generator, str, kit.Attributes], kit.Graph] | None = None
    version: int = 2
    limits: str = ""


@dataclass(frozen=True)
class Limited:
    """A limit of the second operand, a constant: TFLite stops beyond it."""

    holds: Callable[[kit.Array], bool]
    wrong: str
    named: str
    sampled: Callable[[kit.Array], kit.Array] = lambda data: data


@dataclass(frozen=True)
class Integers:
    """A function of integers without scales, which wrap.

    apply    in NumPy: of one operand in its type, of two in int64.
    types    those of TFLite's operator.
    calls    the C function that the expression calls; '' for none.
    version  of TFLite's operator.
    """

    apply: Numbers
    types: tuple[kit.DType, ...] = (kit.DType.INT32,)
    calls: str = ""
    version: int = 1
    limited: Limited | None = None


class OfFunction(kit.Attributes):
    """Attributes that say which function of the table an operator computes."""

    @property
    def computes(self) -> str:
        """The name of the row; '' where it is the kind's."""
        return ""

    @property
    def numbers(self) -> Mapping[str, float]:
        """The parameters in the C expression, by their names there."""
        return MappingProxyType({})


@dataclass(frozen=True)
class Fused(kit.Attributes):
    """Attributes of a function of two operands with a fused activation."""

    activation: kit.Activation = kit.Activation.NONE


@dataclass(frozen=True)
class Rounded(Fused):
    """Attributes of one whose quantised results ONNX rounds in another way."""

    rounding: kit.Rounding = kit.Rounding.TFLITE


def function_of(kind: str, attributes: kit.Attributes) -> str:
    """The name of the row that operators of a kind compute which have these attributes."""
    chosen = attributes.computes if isinstance(attributes, OfFunction) else ""
    return chosen or kind


def numbers_of(attributes: kit.Attributes) -> Mapping[str, float]:
    """The parameters in the C expression, by their names there."""
    return attributes.numbers if isinstance(attributes, OfFunction) else {}


@dataclass(frozen=True)
class Options:
    """The attributes of operators of a kind, and how TFLite's options store them.

    `sample` draws attributes, of one of several functions of the kind.
    """

    read: Callable[[kit.TfliteNode], kit.Attributes] = lambda node: kit.Attributes()
    sample: Callable[[np.random.Generator, Sequence[Unary]], kit.Attributes] = lambda rng, rows: (
        kit.Attributes()
    )
    options_type: str = ""
    written: Callable[[Any], Mapping[str, Any]] = lambda attributes: MappingProxyType({})


@dataclass(frozen=True)
class Parameter:
    """A number that an ONNX operator has besides its operand: an attribute, an input (by its
    index), or always `value`.
    """

    value: float
    attribute: str = ""
    index: int | None = None


@dataclass(frozen=True)
class Unary:
    """A function of one operand.

    name        of the kind, of the C expression in `templates/ops/_functions.c.j2`.
    tflite      the TFLite operator.
    onnx        the ONNX operator; with `where`, if its attribute has a value.
    formula     in NumPy.
    calls       the C function that the float32 expression calls; '' for none. Where the template
                has no expression, it is the call.
    kind        of its float32 operators, where several functions share one.
    attributes  of these operators.
    options     how TFLite's options store attributes.
    int8, int16, integers  as TFLite computes it, where it does.
    parameters  of the ONNX operator.
    table       its name in attributes of `lookup`, where it is not ONNX's.
    straight    divisor and bounds if it is a clamped straight line, from the parameters.
    stored      scale and zero point of results, if the range of the function gives them.
    keeps       results have the scale of the operand, where they have no other.
    folds       the TFLite reader computes it of constants without scales: shapes, counters.
    """

    name: str
    tflite: str = ""
    onnx: str = ""
    formula: Formula = Formula()
    calls: str = ""
    kind: str = ""
    attributes: kit.Attributes = field(default_factory=kit.Attributes)
    options: Options = Options()
    int8: Stored | None = None
    int16: Stored | None = None
    integers: Integers | None = None
    where: tuple[str, str] | None = None
    parameters: tuple[Parameter, ...] = ()
    table: str = ""
    straight: Callable[..., tuple[float, float, float]] | None = None
    stored: tuple[float, int] | None = None
    keeps: bool = False
    folds: bool = False


@dataclass(frozen=True)
class Binary:
    """A function of two operands that broadcast.

    name        of the kind, of the C expression in `templates/ops/_functions.c.j2`.
    tflite, onnx  operators that compute it.
    options     the type of its options in TFLite's schema.
    module      the module that makes the kind, with its int8 and int16 forms or its own ONNX
                reader; '' where `kinds` makes it.
    float32     in NumPy, operation by operation as the C expression.
    calls       the C function that the float32 expression calls, as for one operand.
    attributes  of its operators, from the shapes of the operands.
    broadcasts  whether LiteRT takes operands of different shapes.
    folds       as for one operand.
    """

    name: str
    tflite: str = ""
    onnx: str = ""
    options: str = ""
    module: str = ""
    float32: Numbers | None = None
    calls: str = ""
    integers: Integers | None = None
    attributes: Callable[[tuple[int, ...], tuple[int, ...]], kit.Attributes] = field(
        default=lambda one, two: kit.Attributes()
    )
    broadcasts: bool = True
    folds: bool = False
