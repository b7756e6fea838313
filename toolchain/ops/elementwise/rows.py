"""The parts of a row of the table of element-wise functions (`functions`).

Forms, readers, references, the quantiser and the C are derived from rows; what does so names no
function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import float_math
from toolchain.ops.arithmetic.libm import expf, logf
from toolchain.ops.arithmetic.tanhf import expm1f, tanhf
from toolchain.ops.elementwise.common import (
    Int64,
    Line,
    infer_broadcast,
    infer_unary,
    sample_binary,
    sample_unary,
)

Numbers = Callable[..., Any]
"""Array operands, and then the parameters: an array of results."""
Infer = Callable[[kit.Operator[Any]], tuple[kit.TensorType, ...]]
Reader = Callable[[kit.OnnxNode], None]
FUSED = ", any broadcast, fused activation"


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
    """A function in the arithmetics that compute it; None where none does.

    real  in float64: ONNX's functions of one quantised value (`unary.lookup`).
    own   in float32, operation by operation as the C expression of the row.
    libm  in float32 with the C library's functions, as LiteRT fills its tables.
    """

    real: Numbers | None = None
    own: Numbers | None = None
    libm: Numbers | None = None


def same(formula: Numbers) -> Formula:
    """A formula without elementary functions."""
    return Formula(formula, formula, formula)


def elementary(formula: Numbers, own: Numbers | None = None) -> Formula:
    """A formula whose first operand is an `Elementary`. `own`: its C's, where that differs."""
    return Formula(partial(formula, _REAL), own or partial(formula, _OWN), partial(formula, _LIBM))


class Arithmetic(ABC):
    """All that the results of one operator of two operands depend on besides these."""

    @abstractmethod
    def apply(self, a: Int64, b: Int64) -> Int64:
        """Stored results of stored operands that broadcast."""

    @abstractmethod
    def kernel(self, op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        """The kernel of the operator, whose tensors have been checked."""

    def line(self, operand: int, other: int) -> Line | None:
        """The straight line that an int8 function of one operand may equal, the other being one
        number.
        """
        return None


Sampler = Callable[["np.random.Generator", str, kit.Attributes], kit.Graph]
"""A random graph of one operator of a kind with these attributes."""


@dataclass(frozen=True)
class Stored:
    """How TFLite computes a function of int8 or int16.

    apply         an operator and stored values to stored values.
    kernel        of an operator whose tensors have been checked; None where the line or a table of
                  int8 always serves.
    line          the straight line that a function of int8 may equal; of two operands, with the
                  place of one and the constant that the other is.
    cmsis_nn      CMSIS-NN's kernel, if it has one.
    output_scale  the only scale of its results that TFLite takes, if there is only one.
    beside        types that operands have besides.
    sample        of int16, by default those of int8 with int16 tensors.
    version       of the operator in files that tests write.
    check         raises UnsupportedError for a TFLite operator that is not read.
    written       more options of one that is written.
    limits        what is said after the type, if more than of shapes and a fused activation.
    """

    apply: Callable[..., Int64]
    kernel: kit.Select | None = None
    line: Callable[..., Line | None] = lambda op, *constant: None
    cmsis_nn: kit.Select | None = None
    output_scale: float | None = None
    beside: tuple[kit.DType, ...] = ()
    sample: Sampler | None = None
    version: int = 2
    check: Callable[[kit.TfliteNode], None] = lambda node: None
    written: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    limits: str | None = None


def of_two(arithmetic: Callable[[kit.Operator[Any]], Arithmetic], **others: Any) -> Stored:
    """The rule of a function of two operands whose `Arithmetic` an operator gives. `others`: the
    other fields.
    """
    return Stored(
        lambda op, a, b: arithmetic(op).apply(a, b),
        lambda op, core: arithmetic(op).kernel(op, core),
        lambda op, operand, other: arithmetic(op).line(operand, other),
        **others,
    )


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

    apply      in NumPy, of int64.
    types      those of TFLite's operator.
    only_onnx  types that ONNX's operator has besides.
    calls      the C function that the expression calls; '' for none.
    version    of TFLite's operator.
    """

    apply: Numbers
    types: tuple[kit.DType, ...] = (kit.DType.INT32,)
    only_onnx: tuple[kit.DType, ...] = ()
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


@dataclass(frozen=True)
class Lookup(kit.Attributes):
    """`function` is a name in `unary.lookup.FUNCTIONS`, which takes the operand and then
    `parameters`; or `unary.lookup.TABLE`.
    """

    function: str
    parameters: tuple[float, ...] = ()


def function_of(kind: str, attributes: kit.Attributes) -> str:
    """The name of the row that operators of a kind compute which have these attributes."""
    chosen = attributes.computes if isinstance(attributes, OfFunction) else ""
    return chosen or kind


def numbers_of(attributes: kit.Attributes) -> Mapping[str, float]:
    """The parameters in the C expression, by their names there."""
    return attributes.numbers if isinstance(attributes, OfFunction) else {}


def _none(rng: np.random.Generator, rows: Sequence[Function]) -> kit.Attributes:
    return kit.Attributes()


@dataclass(frozen=True)
class Options:
    """The attributes of operators of a kind, and how TFLite's options store them.

    `sample` draws attributes, of one of several functions of the kind.
    """

    read: Callable[[kit.TfliteNode], kit.Attributes] = lambda node: kit.Attributes()
    sample: Callable[[np.random.Generator, Sequence[Function]], kit.Attributes] = _none
    options_type: str = ""
    written: Callable[[Any], Mapping[str, Any]] = lambda attributes: MappingProxyType({})


def fused(options_type: str, attributes: Callable[[kit.Activation], Fused]) -> Options:
    """The options of attributes that are a fused activation."""
    return Options(
        lambda node: attributes(kit.read_activation(node)),
        lambda rng, rows: attributes(kit.sample_activation(rng)),
        options_type,
        lambda given: {"fusedActivationFunction": given.activation},
    )


@dataclass(frozen=True)
class Parameter:
    """A number that an ONNX operator has besides its operand: an attribute, an input (by its
    index), or always `value`.
    """

    value: float
    attribute: str = ""
    index: int | None = None


@dataclass(frozen=True)
class Function:
    """An element-wise function.

    name        of the kind, of the C expression in `templates/ops/_functions.c.j2`.
    tflite      the TFLite operator.
    onnx        the ONNX operator.
    formula     in NumPy.
    calls       the C function that the float32 expression calls; '' for none. Where the template
                has no expression, it is the call.
    kind        of its operators, where several functions share one.
    attributes  of these operators.
    options     how TFLite's options store attributes.
    int8, int16, integers  as TFLite computes it, where it does.
    sample      draws operators of int8, of which forms of other types make theirs.
    quantised   how tensors with scales, and of float32, must be quantised.
    infer       the shape rule.
    shapes      what is said of the operands' shapes.
    folds       the TFLite reader computes it of constants without scales: shapes, counters.
    """

    operands: ClassVar[int] = 1
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
    sample: Sampler = sample_unary
    quantised: kit.Quantised = kit.SCALED
    infer: Infer = infer_unary
    shapes: str = ""
    folds: bool = False


@dataclass(frozen=True)
class Unary(Function):
    """A function of one operand.

    where       the ONNX operator is the function if its attribute has a value.
    parameters  of the ONNX operator.
    table       its name in attributes of `lookup`, where it is not ONNX's.
    straight    divisor and bounds if it is a clamped straight line, from the parameters.
    stored      scale and zero point of results, if the range of the function gives them.
    keeps       results have the scale of the operand, where they have no other.
    """

    where: tuple[str, str] | None = None
    parameters: tuple[Parameter, ...] = ()
    table: str = ""
    straight: Callable[..., tuple[float, float, float]] | None = None
    stored: tuple[float, int] | None = None
    keeps: bool = False


@dataclass(frozen=True)
class Binary(Function):
    """A function of two operands that broadcast.

    readers     of the ONNX operator: on quantised and float32 values, on integers without a scale.
    """

    operands: ClassVar[int] = 2
    sample: Sampler = sample_binary
    infer: Infer = infer_broadcast
    shapes: str = ", any broadcast"
    readers: Callable[[Binary], Sequence[Reader]] | None = None
