"""Kinds of functions of one operand, made of the rows of `elementwise.functions`.

A function that TFLite quantises is a kind, or shares one with its relatives. All others are
`float_function`, and all of plain integers `integer_function`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from toolchain.ops import kit
from toolchain.ops.elementwise.common import (
    check_node,
    infer_unary,
    reference_unary,
    require_types,
    sample_shape,
    sample_unary,
)
from toolchain.ops.elementwise.functions import UNARY
from toolchain.ops.elementwise.kernels import expressed, sized_kernel, unary_kernel
from toolchain.ops.elementwise.rows import (
    OfFunction,
    Options,
    Stored,
    Unary,
    function_of,
    numbers_of,
)
from toolchain.ops.readers.float32 import check_float_node, float32_elementwise_sample
from toolchain.ops.readers.int16 import as_int16

R = TypeVar("R")
Rows = Sequence[Unary]


@dataclass(frozen=True)
class _Function(OfFunction):
    """`function`: the name of a row."""

    function: str

    @property
    def computes(self) -> str:
        return self.function


class FloatFunction(_Function):
    """A function of float32."""


class IntegerFunction(_Function):
    """A function of integers without scales.

    The least integer is its own negative and absolute value.
    """


def float_attributes(row: Unary) -> kit.Attributes:
    """Attributes of a float32 operator that computes the function."""
    return row.attributes if row.int8 else FloatFunction(row.name)


def float_kind(row: Unary) -> str:
    """The kind of a float32 operator that computes the function."""
    return (row.kind or row.name) if row.int8 else "float_function"


def _row(op: kit.AnyOperator) -> Unary:
    return UNARY[function_of(op.kind, op.attributes)]


def _known(rule: R | None) -> R:
    """The rule, which the operator's form has."""
    assert rule is not None
    return rule


def _binding(
    rows: Rows,
    options: Options,
    check: Callable[[kit.TfliteNode], None],
    version: Callable[[Unary], int],
) -> kit.TfliteBinding:
    """How the functions are read from TFLite, by nodes that pass `check`, and written."""

    def read(node: kit.TfliteNode) -> kit.ReadOp:
        check(node)
        return kit.ReadOp(options.read(node), (0,))

    def write(op: kit.AnyOperator) -> kit.WrittenOp:
        row, written = _row(op), options.written(op.attributes)
        return kit.WrittenOp(row.tflite, options.options_type, written, version=version(row))

    builtins = dict.fromkeys(row.tflite for row in rows if row.tflite)
    return kit.TfliteBinding(tuple(builtins), read, write)


def _quantised_form(kind: str, rows: Rows, dtype: kit.DType) -> kit.Form[Any]:
    """int8 is a table of 256 results, or a straight line; int16 has kernels of its own."""
    options, wide = rows[0].options, dtype is kit.DType.INT16

    def rule_of(row: Unary) -> Stored:
        return _known(row.int16 if wide else row.int8)

    def reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
        rule = rule_of(_row(op))
        return reference_unary(op, inputs, lambda stored: rule.apply(op, stored))

    def select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        require_types(op, dtype)
        rule, scale = rule_of(_row(op)), op.y.q.scale
        if rule.output_scale not in (None, scale):
            raise op.refused(
                f"the output scale is {scale:g}, TFLite's kernels need{_output_scale(rule)}; "
                f"convert with TFLite's {'16x8' if wide else 'int8'} quantiser"
            )
        if rule.kernel is not None:
            return rule.kernel(op)
        return unary_kernel(op, lambda stored: rule.apply(op, stored), rule.line(op))

    def sample(rng: np.random.Generator) -> kit.Graph:
        attributes = options.sample(rng, rows)
        row = UNARY[function_of(kind, attributes)]
        own = rule_of(row).sample
        if own is not None or not wide:
            return (own or sample_unary)(rng, kind, attributes)
        return as_int16((_known(row.int8).sample or sample_unary)(rng, kind, attributes))

    rule = rule_of(rows[0])
    scale = f", output scale{_output_scale(rule)}" if rule.output_scale else ""
    return kit.Form(
        kind=kind,
        attributes=type(rows[0].attributes),
        infer=infer_unary,
        reference=reference,
        select=select,
        sample=sample,
        axes=kit.elementwise_axes,
        tflite=_binding(
            rows,
            options,
            lambda node: check_node(node, dtype),
            lambda row: rule_of(row).version,
        ),
        dtype=dtype,
        limits=f"{dtype.value}{rule.limits}{scale}",
    )


def _output_scale(rule: Stored) -> str:
    return f" 1/{1 / _known(rule.output_scale):.0f}"


def float_values(row: Unary, x: kit.Array, numbers: Mapping[str, float]) -> kit.Array:
    """The function of each element, as its C expression computes it."""
    own = _known(row.formula.own)
    given = {name: np.float32(value) for name, value in numbers.items()}
    with np.errstate(all="ignore"):
        values: kit.Array = own(x.astype(np.float32), **given)
    return values.astype(np.float32)


def _float_reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    values = float_values(_row(op), inputs[0], numbers_of(op.attributes))
    return (values.reshape(op.y.shape),)


def _float_select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    """A loop over the function's expression."""
    row, numbers = _row(op), numbers_of(op.attributes)
    return expressed(sized_kernel(op, ""), "unary_f32", row.name, row.calls, numbers)


def _float_form(kind: str, rows: Rows) -> kit.Form[Any]:
    """A kind that TFLite quantises, too."""
    base = _quantised_form(kind, rows, kit.DType.INT8)
    return replace(
        base,
        reference=_float_reference,
        select=_float_select,
        sample=float32_elementwise_sample(base.sample),
        tflite=_binding(rows, rows[0].options, check_float_node, lambda row: 1),
        dtype=kit.DType.FLOAT32,
        limits="float32",
    )


def _plain_form(
    kind: str, attributes: type[_Function], dtype: kit.DType, rows: Rows
) -> kit.Form[Any]:
    """Functions that TFLite does not quantise."""
    of_float = dtype is kit.DType.FLOAT32
    read_from = {row.tflite: row for row in rows if row.tflite}
    options = Options(lambda node: attributes(read_from[node.builtin].name))

    def check(node: kit.TfliteNode) -> None:
        if of_float:
            check_float_node(node)

    def sample(rng: np.random.Generator) -> kit.Graph:
        """A function that TFLite has."""
        shape, known = sample_shape(rng), tuple(read_from.values())
        row = known[int(rng.integers(len(known)))]
        x = kit.Tensor("x", shape, dtype)
        return kit.sample(kind, attributes(row.name), x, name="function")

    return kit.Form(
        kind=kind,
        attributes=attributes,
        infer=infer_unary,
        reference=_float_reference if of_float else _integer_reference,
        select=_float_select if of_float else _integer_select,
        sample=sample,
        axes=kit.elementwise_axes,
        tflite=_binding(
            rows,
            options,
            check,
            lambda row: 1 if of_float else _known(row.integers).version,
        ),
        dtype=dtype,
        quantised=kit.SCALED if of_float else kit.STORED,
        limits="float32" if of_float else f"{dtype.value} without scales",
    )


def _integer_reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    with np.errstate(over="ignore"):
        return (_known(_row(op).integers).apply(inputs[0].astype(op.y.dtype.numpy)),)


def _integer_select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    template = f"unary_s{8 * op.y.dtype.size_bytes}"
    return expressed(sized_kernel(op, ""), template, _row(op).name, _known(_row(op).integers).calls)


def _specs() -> Iterator[kit.OpSpec]:
    by_kind: dict[str, list[Unary]] = {}
    for row in UNARY.values():
        if row.int8 is not None:
            by_kind.setdefault(row.kind or row.name, []).append(row)
    for kind, rows in by_kind.items():
        wide = [row for row in rows if row.int16 is not None]
        int16 = [_quantised_form(kind, wide, kit.DType.INT16)] if wide else []
        int8 = _quantised_form(kind, rows, kit.DType.INT8)
        yield kit.OpSpec((int8, *int16, _float_form(kind, rows)))
    plain = [row for row in UNARY.values() if row.formula.own is not None and row.int8 is None]
    yield kit.OpSpec((_plain_form("float_function", FloatFunction, kit.DType.FLOAT32, plain),))
    by_type: dict[kit.DType, list[Unary]] = {}
    for row in UNARY.values():
        for dtype in row.integers.types if row.integers else ():
            by_type.setdefault(dtype, []).append(row)
    yield kit.OpSpec(
        tuple(
            _plain_form("integer_function", IntegerFunction, dtype, by_type[dtype])
            for dtype in sorted(by_type, key=lambda dtype: dtype.size_bytes)
        )
    )


SPECS = tuple(_specs())
