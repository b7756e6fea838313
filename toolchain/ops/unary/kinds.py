"""Kinds of functions of one operand, made of the rows of `elementwise.functions`.

A function that TFLite quantises is a kind, or shares one with its relatives. All others are
`float_function`, and all of plain integers `integer_function`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from toolchain.ops import kit
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    check_node,
    infer_unary,
    reference_unary,
    require_types,
    sample_shape,
)
from toolchain.ops.elementwise.functions import UNARY
from toolchain.ops.elementwise.kernels import expressed, sized_kernel, unary_kernel
from toolchain.ops.elementwise.rows import (
    OfFunction,
    Unary,
    function_of,
    numbers_of,
)
from toolchain.ops.readers.float32 import check_float_node, float32_elementwise_sample
from toolchain.ops.readers.int16 import int16_sample

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


def _builtins(rows: Rows) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.tflite for row in rows if row.tflite))


def _int8_form(kind: str, rows: Rows) -> kit.Form[Any]:
    """A table of 256 results, or a straight line."""
    options = rows[0].options

    def reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
        rule = _known(_row(op).int8)
        return reference_unary(op, inputs, lambda stored: rule.apply(op, stored))

    def select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        require_types(op, kit.DType.INT8)
        rule, scale = _known(_row(op).int8), op.y.q.scale
        if rule.output_scale is not None and scale != rule.output_scale:
            raise op.refused(
                f"the output scale is {scale:g}, TFLite's kernels need "
                f"{rule.output_scale:g}; convert with TFLite's int8 quantiser"
            )
        return unary_kernel(op, lambda stored: rule.apply(op, stored), rule.line(op))

    def read(node: kit.TfliteNode) -> kit.ReadOp:
        check_node(node, kit.DType.INT8)
        return kit.ReadOp(options.read(node), (0,))

    def write(op: kit.AnyOperator) -> kit.WrittenOp:
        written = options.written(op.attributes)
        return kit.WrittenOp(
            _row(op).tflite, options.options_type, written, version=_known(_row(op).int8).version
        )

    def sample(rng: np.random.Generator) -> kit.Graph:
        attributes = options.sample(rng, rows)
        rule = _known(UNARY[function_of(kind, attributes)].int8)
        return rule.sample(rng, kit.Op(kind, kind, ("x",), ("y",), attributes))

    rule = _known(rows[0].int8)
    scale = "" if rule.output_scale is None else f", output scale 1/{1 / rule.output_scale:.0f}"
    return kit.Form(
        kind=kind,
        attributes=type(rows[0].attributes),
        infer=infer_unary,
        reference=reference,
        select=select,
        sample=sample,
        axes=elementwise_axes,
        tflite=kit.TfliteBinding(_builtins(rows), read, write),
        dtype=kit.DType.INT8,
        limits=rule.limits + scale,
    )


def _int16_form(kind: str, rows: Rows) -> kit.Form[Any]:
    base, options, rule = _int8_form(kind, rows), rows[0].options, _known(rows[0].int16)
    own, binding = rule.sample, _known(base.tflite)

    def reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
        rule = _known(_row(op).int16)
        return reference_unary(op, inputs, lambda stored: rule.apply(op, stored))

    def select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        require_types(op, kit.DType.INT16)
        return _known(_row(op).int16).kernel(op)

    def read(node: kit.TfliteNode) -> kit.ReadOp:
        check_node(node, kit.DType.INT16)
        return kit.ReadOp(options.read(node), (0,))

    def write(op: kit.AnyOperator) -> kit.WrittenOp:
        return replace(binding.write(op), version=_known(_row(op).int16).version)

    def sample(rng: np.random.Generator) -> kit.Graph:
        return _known(own)(rng, kit.Op(kind, kind, ("x",), ("y",)))

    return replace(
        base,
        reference=reference,
        select=select,
        sample=int16_sample(base.sample) if own is None else sample,
        tflite=kit.TfliteBinding(binding.builtins, read, write),
        dtype=kit.DType.INT16,
        limits=rule.limits,
    )


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
    """The float32 form of a kind that TFLite quantises, too."""
    base, options = _int8_form(kind, rows), rows[0].options
    binding = _known(base.tflite)

    def read(node: kit.TfliteNode) -> kit.ReadOp:
        check_float_node(node)
        return kit.ReadOp(options.read(node), (0,))

    def write(op: kit.AnyOperator) -> kit.WrittenOp:
        return replace(binding.write(op), version=1)

    return replace(
        base,
        reference=_float_reference,
        select=_float_select,
        sample=float32_elementwise_sample(base.sample),
        tflite=kit.TfliteBinding(binding.builtins, read, write),
        dtype=kit.DType.FLOAT32,
        limits="float32",
    )


def _plain_form(
    kind: str, attributes: type[_Function], dtype: kit.DType, rows: Rows
) -> kit.Form[Any]:
    """The form for functions that TFLite does not quantise."""
    of_float = dtype is kit.DType.FLOAT32
    read_from = {row.tflite: row for row in rows if row.tflite}

    def read(node: kit.TfliteNode) -> kit.ReadOp:
        if of_float:
            check_float_node(node)
        return kit.ReadOp(attributes(read_from[node.builtin].name), (0,))

    def write(op: kit.AnyOperator) -> kit.WrittenOp:
        return kit.WrittenOp(
            _row(op).tflite, version=1 if of_float else _known(_row(op).integers).version
        )

    def sample(rng: np.random.Generator) -> kit.Graph:
        """A function that TFLite has."""
        shape, known = sample_shape(rng), tuple(read_from.values())
        row = known[int(rng.integers(len(known)))]
        op = kit.Op(kind, "function", ("x",), ("y",), attributes(row.name))
        tensors = [kit.Tensor(name, shape, dtype) for name in ("x", "y")]
        return kit.Graph.build("sample", tensors, [op], ["x"], ["y"])

    return kit.Form(
        kind=kind,
        attributes=attributes,
        infer=infer_unary,
        reference=_float_reference if of_float else _integer_reference,
        select=_float_select if of_float else _integer_select,
        sample=sample,
        axes=elementwise_axes,
        tflite=kit.TfliteBinding(tuple(read_from), read, write),
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
        forms = [_int16_form(kind, wide)] if wide else []
        yield kit.OpSpec((_int8_form(kind, rows), *forms, _float_form(kind, rows)))
    plain = [row for row in UNARY.values() if row.formula.own is not None and row.int8 is None]
    yield kit.OpSpec((_plain_form("float_function", FloatFunction, kit.DType.FLOAT32, plain),))
    types = {t for row in UNARY.values() if row.integers is not None for t in row.integers.types}
    yield kit.OpSpec(
        tuple(
            _plain_form("integer_function", IntegerFunction, dtype, _of_integers(dtype))
            for dtype in sorted(types, key=lambda dtype: dtype.size_bytes)
        )
    )


def _of_integers(dtype: kit.DType) -> Rows:
    return [row for row in UNARY.values() if row.integers and dtype in row.integers.types]


SPECS = tuple(_specs())
