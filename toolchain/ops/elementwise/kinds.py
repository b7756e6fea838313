"""Kinds of element-wise functions, made of the rows of `functions`.

A function that TFLite quantises is a kind, or shares one with its relatives; so is every function
of two operands. All others of float32 are `float_function`, and all of one plain integer
`integer_function`.

int8 is a table of 256 results or a straight line where there is one operand, or the other is one
number; all else, and int16, has kernels of its own. float32 and plain integers are computed by the
C expression of the row, with a fused activation where TFLite has one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import BOUNDS
from toolchain.ops.elementwise.common import check_node, require_types, sample_shape
from toolchain.ops.elementwise.functions import BINARY, UNARY
from toolchain.ops.elementwise.kernels import (
    byte_kernel,
    expressed_kernel,
)
from toolchain.ops.elementwise.rows import (
    Binary,
    Function,
    Fused,
    Integers,
    OfFunction,
    Options,
    Rounded,
    Stored,
    Unary,
    function_of,
    numbers_of,
)
from toolchain.ops.readers.float32 import (
    check_float_node,
    clamped,
    float32_elementwise_sample,
    range_of,
)
from toolchain.ops.readers.int16 import as_int16

R = TypeVar("R")
_ROWS: Mapping[str, Function] = MappingProxyType({**UNARY, **BINARY})


@dataclass(frozen=True)
class _Named(OfFunction):
    """`function`: the name of a row."""

    function: str

    @property
    def computes(self) -> str:
        return self.function


class FloatFunction(_Named):
    """A function of float32."""


class IntegerFunction(_Named):
    """A function of integers without scales.

    The least integer is its own negative and absolute value.
    """


def float_attributes(row: Unary) -> kit.Attributes:
    """Attributes of a float32 operator that computes the function."""
    return row.attributes if row.int8 else FloatFunction(row.name)


def float_kind(row: Unary) -> str:
    """The kind of a float32 operator that computes the function."""
    return (row.kind or row.name) if row.int8 else "float_function"


def _row(op: kit.AnyOperator) -> Function:
    return _ROWS[function_of(op.kind, op.attributes)]


def _known(rule: R | None) -> R:
    """The rule, which the operator's form has."""
    assert rule is not None
    return rule


@dataclass(frozen=True)
class _Kind:
    """`rows`: the functions that its operators compute, as their attributes say.

    `sample` draws operators whose type a form may change.
    """

    name: str
    rows: Sequence[Function]
    attributes: type[kit.Attributes]
    options: Options
    sample: Callable[[np.random.Generator], kit.Graph]

    @property
    def said(self) -> str:
        """Words in the limits of its forms on shapes and a fused activation."""
        activation = ", fused activation" if issubclass(self.attributes, Fused) else ""
        return self.rows[0].shapes + activation

    def form(self, dtype: kit.DType, **own: Any) -> kit.Form[Any]:
        """The form of a type; `own` are the fields that forms differ in."""
        return kit.Form(
            **{
                "kind": self.name,
                "attributes": self.attributes,
                "infer": self.rows[0].infer,
                "axes": kit.elementwise_axes,
                "quantised": self.rows[0].quantised,
                "dtype": dtype,
                **own,
            }
        )

    def binding(
        self,
        check: Callable[[kit.TfliteNode], None],
        version: Callable[[Function], int] = lambda row: 1,
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> kit.TfliteBinding:
        """How operators are read from TFLite, by nodes that pass `check`, and written with `more`
        options.
        """
        options, operands = self.options, tuple(range(self.rows[0].operands))

        def read(node: kit.TfliteNode) -> kit.ReadOp:
            check(node)
            return kit.ReadOp(options.read(node), operands)

        def write(op: kit.AnyOperator) -> kit.WrittenOp:
            row, written = _row(op), {**options.written(op.attributes), **more}
            return kit.WrittenOp(row.tflite, options.options_type, written, version=version(row))

        builtins = dict.fromkeys(row.tflite for row in self.rows if row.tflite)
        return kit.TfliteBinding(tuple(builtins), read, write)


def _stored(row: Function, dtype: kit.DType) -> Stored | None:
    return row.int16 if dtype is kit.DType.INT16 else row.int8


def _quantised_form(kind: _Kind, dtype: kit.DType) -> kit.Form[Any]:
    wide = dtype is kit.DType.INT16
    kind = replace(kind, rows=[row for row in kind.rows if _stored(row, dtype)])

    def rule_of(row: Function) -> Stored:
        return _known(_stored(row, dtype))

    first = rule_of(kind.rows[0])
    types = (dtype, *first.beside)

    def reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
        given = (values.astype(np.int64) for values in inputs)
        values = rule_of(_row(op)).apply(op, *given)
        return (values.astype(op.y.dtype.numpy).reshape(op.y.shape),)

    def select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        require_types(op, *types)
        rule, scale = rule_of(_row(op)), op.y.q.scale
        if rule.output_scale not in (None, scale):
            raise op.refused(
                f"the output scale is {scale:g}, TFLite's kernels need{_output_scale(rule)}; "
                f"convert with TFLite's {'16x8' if wide else 'int8'} quantiser"
            )
        apply, line = partial(rule.apply, op), partial(rule.line, op)
        return (None if wide else byte_kernel(op, apply, line)) or _known(rule.kernel)(op, core)

    def cmsis_nn(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        require_types(op, *types)
        return _known(rule_of(_row(op)).cmsis_nn)(op, core)

    def sample(rng: np.random.Generator) -> kit.Graph:
        attributes = kind.options.sample(rng, kind.rows)
        row = _ROWS[function_of(kind.name, attributes)]
        own = rule_of(row).sample
        if own is not None:
            return own(rng, kind.name, attributes)
        graph = row.sample(rng, kind.name, attributes)
        return as_int16(graph) if wide else graph

    def check(node: kit.TfliteNode) -> None:
        check_node(node, *types)
        first.check(node)

    scale = f", output scale{_output_scale(first)}" if first.output_scale else ""
    return kind.form(
        dtype,
        reference=reference,
        select=kit.Choice(select, cmsis_nn) if first.cmsis_nn else select,
        sample=sample,
        tflite=kind.binding(check, lambda row: rule_of(row).version, first.written),
        types=frozenset(types) if first.beside else frozenset(),
        limits=f"{dtype.value}{kind.said if first.limits is None else first.limits}{scale}",
    )


def _output_scale(rule: Stored) -> str:
    return f" 1/{1 / _known(rule.output_scale):.0f}"


def float_values(row: Function, *operands: kit.Array, **numbers: float) -> kit.Float32:
    """The function of float32 operands and parameters, as its C expression computes it."""
    given = {name: np.float32(value) for name, value in numbers.items()}
    with np.errstate(all="ignore"):
        own = _known(row.formula.own)
        values: kit.Array = own(*(x.astype(np.float32) for x in operands), **given)
    return values.astype(np.float32)


def _activation(op: kit.AnyOperator) -> kit.Activation:
    attributes: kit.Attributes = op.attributes
    return attributes.activation if isinstance(attributes, Fused) else kit.Activation.NONE


def _clamps(op: kit.AnyOperator) -> bool:
    """Whether the result of float32 is clamped.

    TFLite clamps ADD, SUB, MUL and DIV without an activation, too: to finite numbers
    (`CalculateActivationRange`), so that 1 / 0 is the largest of them. ONNX Runtime does not.
    """
    if _activation(op) is not kit.Activation.NONE:
        return True
    of_onnx = isinstance(op.attributes, Rounded) and op.attributes.rounding is kit.Rounding.ONNX
    return isinstance(op.attributes, Fused) and not of_onnx


def _float_reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    values = float_values(_row(op), *inputs, **numbers_of(op.attributes))
    if _clamps(op):
        values = clamped(values, _activation(op))
    return (values.reshape(op.y.shape),)


def _float_select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    row = _row(op)
    calls, numbers = row.calls, numbers_of(op.attributes)
    if _clamps(op):
        calls = "thimble_clamp_f32"
        numbers = dict(zip(("low", "high"), range_of(_activation(op)), strict=True))
    return expressed_kernel(op, core, row.name, calls, numbers)


def _float_form(kind: _Kind) -> kit.Form[Any]:
    dtype = kit.DType.FLOAT32
    return kind.form(
        dtype,
        reference=_float_reference,
        select=_float_select,
        sample=float32_elementwise_sample(kind.sample),
        tflite=kind.binding(check_float_node),
        limits=f"{dtype.value}{kind.said}",
    )


def _integers(op: kit.AnyOperator) -> Integers:
    return _known(_row(op).integers)


def _limits(op: kit.AnyOperator) -> dict[str, int]:
    """Limits to which a fused activation clamps integers, but for the ends of their type."""
    ends = zip(("low", "high"), BOUNDS[_activation(op)], strict=True)
    return {name: int(end) for name, end in ends if not math.isinf(end)}


def _integer_reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    dtype = op.y.dtype.numpy
    with np.errstate(over="ignore"):
        wide = _integers(op).apply(*(x.astype(np.int64) for x in inputs))
    limits, info = _limits(op), np.iinfo(op.y.dtype.value)
    low, high = limits.get("low", int(info.min)), limits.get("high", int(info.max))
    return (np.clip(wide.astype(dtype), low, high).astype(dtype).reshape(op.y.shape),)


def _integer_select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    kernel = expressed_kernel(op, core, _row(op).name, _integers(op).calls, _limits(op))
    if len(op.inputs) == 1:
        return kernel
    return replace(kernel, find_terms=lambda: _integer_terms(op, kernel.terms or {}))


def _integer_terms(op: kit.AnyOperator, terms: kit.Terms) -> kit.Terms:
    """int32 and int64 have kernels of one name."""
    wide = "wide " if op.y.dtype is kit.DType.INT64 else ""
    named = {name if name == "call" else f"{wide}{name}": n for name, n in terms.items()}
    return named | {f"{wide}clamped": op.y.elements * bool(_limits(op))}


def _integer_form(kind: _Kind, dtype: kit.DType) -> kit.Form[Any]:
    row = kind.rows[0]
    rule = _known(row.integers)
    limited = rule.limited

    def check(node: kit.TfliteNode) -> None:
        for index, tensor in enumerate(node.inputs):
            if tensor is not None and tensor.dtype is not dtype:
                raise node.unsupported(
                    f"input {index} ({tensor.name!r}) is {tensor.dtype.value} beside {dtype.value}",
                    "give both operands one type (tf.cast)",
                )
        if limited is not None and not limited.holds(node.constant(1)):
            raise node.unsupported(limited.wrong)

    def infer(op: kit.AnyOperator) -> kit.TensorTypes:
        if limited is not None:
            data = op.input(1).constant
            if data is None or not limited.holds(data):
                raise ValueError(
                    f"the {limited.named} {op.op.inputs[1]!r} is no constant that it may be"
                )
        return row.infer(op)

    def sample(rng: np.random.Generator) -> kit.Graph:
        def plain(tensor: kit.Tensor) -> kit.Tensor:
            data: kit.Array | None = None
            if tensor.is_constant:
                most = 1 << int(rng.integers(2, 8 * dtype.size_bytes - 1))
                sizes = rng.integers(1, most, tensor.shape)
                data = (sizes * rng.choice([-1, 1], tensor.shape)).astype(dtype.numpy)
                data = data if limited is None else limited.sampled(data)
            return replace(tensor, dtype=dtype, quantisation=None, constant=data)

        while True:
            made = kit.with_tensors(kind.sample(rng), plain)
            if limited is None or made.tensors["b"].is_constant:
                return made

    bound = kind.binding(check, lambda row: _known(row.integers).version)
    constant = "" if limited is None else f", constant {limited.named}"
    return kind.form(
        dtype,
        infer=infer,
        reference=_integer_reference,
        select=_integer_select,
        sample=sample,
        tflite=None if dtype in rule.only_onnx else bound,
        quantised=kit.STORED,
        limits=f"{dtype.value} without scales{kind.said}{constant}",
    )


def _function_kind(
    name: str, attributes: type[_Named], dtype: kit.DType, rows: Sequence[Function]
) -> _Kind:
    """Functions of one operand of a type that TFLite does not quantise."""
    known = {row.tflite: row for row in rows if row.tflite}

    def sample(rng: np.random.Generator) -> kit.Graph:
        """A function that TFLite has."""
        shape, names = sample_shape(rng), [row.name for row in known.values()]
        function = attributes(names[int(rng.integers(len(names)))])
        return kit.sample(name, function, kit.Tensor("x", shape, dtype), name="function")

    options = Options(lambda node: attributes(known[node.builtin].name))
    return _Kind(name, rows, attributes, options, sample)


def _named_kind(name: str, rows: Sequence[Function]) -> _Kind:
    """Functions that are a kind of their own, drawn as int8."""
    options = rows[0].options

    def sample(rng: np.random.Generator) -> kit.Graph:
        attributes = options.sample(rng, rows)
        return _ROWS[function_of(name, attributes)].sample(rng, name, attributes)

    return _Kind(name, rows, type(rows[0].attributes), options, sample)


def _forms(kind: _Kind) -> Iterator[kit.Form[Any]]:
    """The forms of a kind of its own, in the order of types in a row."""
    for dtype in (kit.DType.INT8, kit.DType.INT16):
        if any(_stored(row, dtype) for row in kind.rows):
            yield _quantised_form(kind, dtype)
    first = kind.rows[0]
    if first.formula.own is not None:
        yield _float_form(kind)
    if first.operands > 1 and first.integers is not None:
        for dtype in (*first.integers.types, *first.integers.only_onnx):
            yield _integer_form(kind, dtype)


def _onnx_binding(row: Function) -> kit.OnnxBinding | None:
    readers = row.readers(row) if isinstance(row, Binary) and row.readers else ()
    return kit.OnnxBinding((row.onnx,), *readers) if readers else None


def _specs() -> Iterator[kit.OpSpec]:
    by_kind: dict[str, list[Function]] = {}
    for row in _ROWS.values():
        if row.int8 is not None or row.operands > 1:
            by_kind.setdefault(row.kind or row.name, []).append(row)
    for name, rows in by_kind.items():
        first, *others = _forms(_named_kind(name, rows))
        onnx = _onnx_binding(rows[0])
        others = [form if form.tflite else replace(form, onnx=onnx) for form in others]
        yield kit.OpSpec((replace(first, onnx=onnx), *others))
    plain = [row for row in UNARY.values() if row.formula.own is not None and row.int8 is None]
    floats = _function_kind("float_function", FloatFunction, kit.DType.FLOAT32, plain)
    yield kit.OpSpec((_float_form(floats),))
    forms = []
    for dtype in (kit.DType.INT32, kit.DType.INT64):
        known = [row for row in UNARY.values() if row.integers and dtype in row.integers.types]
        kind = _function_kind("integer_function", IntegerFunction, dtype, known)
        forms.append(_integer_form(kind, dtype))
    yield kit.OpSpec(tuple(forms))


SPECS = tuple(_specs())
