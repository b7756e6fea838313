"""Kinds of functions of two operands that broadcast, made of the rows of `functions`.

float32 and plain integers are computed by the C expression of the row, with a fused activation
where TFLite has one. Kinds with int8 and int16 forms are made by `quantised`, in the module that
the row names; kinds without them here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import BOUNDS
from toolchain.ops.elementwise.common import (
    infer_broadcast,
    infer_of_one_shape,
    sample_binary,
)
from toolchain.ops.elementwise.functions import BINARY
from toolchain.ops.elementwise.kernels import broadcast_kernel, expressed
from toolchain.ops.elementwise.rows import Binary, Fused, Integers, Limited, Rounded, function_of
from toolchain.ops.readers.float32 import (
    check_float_node,
    clamped,
    float32_elementwise_sample,
    range_of,
)


def _row(op: kit.AnyOperator) -> Binary:
    return BINARY[function_of(op.kind, op.attributes)]


def _integers(op: kit.AnyOperator) -> Integers:
    rule = _row(op).integers
    assert rule is not None
    return rule


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


def float_values(row: Binary, a: kit.Array, b: kit.Array) -> kit.Array:
    """The function of float32 operands, as its C expression computes it."""
    assert row.float32 is not None
    with np.errstate(all="ignore"):
        values: kit.Array = row.float32(a.astype(np.float32), b.astype(np.float32))
    return values


def _float_reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    values = float_values(_row(op), inputs[0], inputs[1]).astype(np.float32)
    if _clamps(op):
        values = clamped(values, _activation(op))
    return (values.astype(np.float32).reshape(op.y.shape),)


def _float_select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    """Loops around the function's expression."""
    row, loops = _row(op), broadcast_kernel(op, core, "")
    if not _clamps(op):
        return expressed(loops, "binary_f32", row.name, row.calls)
    low, high = range_of(_activation(op))
    limits = {"low": low, "high": high}
    return expressed(loops, "binary_f32", row.name, "thimble_clamp_f32", limits)


def _integer_reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    y = op.y
    a, b = (values.astype(np.int64) for values in inputs)
    with np.errstate(over="ignore"):
        values = _integers(op).apply(a, b).astype(y.dtype.numpy)
    limits, info = _limits(op), np.iinfo(y.dtype.value)
    low, high = limits.get("low", int(info.min)), limits.get("high", int(info.max))
    values = np.clip(values, low, high).astype(y.dtype.numpy)
    return (values.reshape(y.shape),)


def _limits(op: kit.AnyOperator) -> dict[str, int]:
    """Limits to which a fused activation clamps integers, but for the ends of their type."""
    ends = zip(("low", "high"), BOUNDS[_activation(op)], strict=True)
    return {name: int(end) for name, end in ends if not math.isinf(end)}


def _integer_select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    template, loops = f"binary_s{8 * op.y.dtype.size_bytes}", broadcast_kernel(op, core, "")
    return expressed(loops, template, _row(op).name, _integers(op).calls, _limits(op))


def _infer_limited(
    base: kit.Form[Any], limited: Limited
) -> Callable[[kit.Operator[Any]], tuple[kit.TensorType, ...]]:
    """As `base`'s, but that the second operand must be a constant within its limits."""

    def infer(op: kit.AnyOperator) -> tuple[kit.TensorType, ...]:
        data = op.input(1).constant
        if data is None or not limited.holds(data):
            raise ValueError(
                f"the {limited.named} {op.op.inputs[1]!r} is no constant that it may be"
            )
        return base.infer(op)

    return infer


def _integer_sample(
    base: kit.Form[Any], dtype: kit.DType, limited: Limited | None
) -> Callable[[np.random.Generator], kit.Graph]:
    """The samples of `base` with plain integers."""

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
            made = kit.with_tensors(base.sample(rng), plain)
            if limited is None or made.tensors["b"].is_constant:
                return made

    return sample


Read = Callable[[kit.TfliteNode], kit.Attributes]


def attributes_reader(attributes: Callable[..., kit.Attributes]) -> Read:
    """Reads attributes of that class: their activation, if they are `Fused`."""
    fused = isinstance(attributes(), Fused)
    return lambda node: attributes(kit.read_activation(node)) if fused else attributes()


def binding(
    kind: str, version: int, read: Read, check: Callable[[kit.TfliteNode], None]
) -> kit.TfliteBinding:
    """How operators of a kind are read from TFLite, by nodes that pass `check`, and written.

    `read` makes the attributes. `version`: of those that tests write.
    """
    row = BINARY[kind]

    def read_checked(node: kit.TfliteNode) -> kit.ReadOp:
        check(node)
        return kit.ReadOp(read(node), (0, 1))

    def write(op: kit.AnyOperator) -> kit.WrittenOp:
        fused = isinstance(op.attributes, Fused)
        fields = {"fusedActivationFunction": _activation(op)} if fused else {}
        return kit.WrittenOp(row.tflite, row.options, fields, version=version)

    return kit.TfliteBinding((row.tflite,), read_checked, write)


def _float_form(base: kit.Form[Any], read: Read) -> kit.Form[Any]:
    return replace(
        base,
        reference=_float_reference,
        select=_float_select,
        sample=float32_elementwise_sample(base.sample),
        tflite=binding(base.kind, 1, read, check_float_node),
        onnx=None,
        dtype=kit.DType.FLOAT32,
        limits=f"float32, any broadcast{_fused(base)}",
    )


def _integer_form(
    base: kit.Form[Any], dtype: kit.DType, rule: Integers, read: Read
) -> kit.Form[Any]:
    limited = rule.limited

    def check(node: kit.TfliteNode) -> None:
        for index, tensor in enumerate(node.inputs):
            if tensor is not None and tensor.dtype is not dtype:
                raise node.unsupported(
                    f"input {index} ({tensor.name!r}) is {tensor.dtype.value} beside {dtype.value}"
                )
        if limited is not None and not limited.holds(node.constant(1)):
            raise node.unsupported(limited.wrong)

    constant = "" if limited is None else f", constant {limited.named}"
    return replace(
        base,
        infer=base.infer if limited is None else _infer_limited(base, limited),
        reference=_integer_reference,
        select=_integer_select,
        sample=_integer_sample(base, dtype, limited),
        tflite=binding(base.kind, 1, read, check),
        onnx=None,
        dtype=dtype,
        quantised=kit.STORED,
        limits=f"{dtype.value} without scales, any broadcast{_fused(base)}{constant}",
    )


def _fused(base: kit.Form[Any]) -> str:
    return ", fused activation" if issubclass(base.attributes, Fused) else ""


def plain_forms(base: kit.Form[Any], read: Read) -> tuple[kit.Form[Any], ...]:
    """The float32 and integer forms that the row of the kind has. `base`: an int8 form. `read`
    makes the attributes of a TFLite operator.
    """
    row = BINARY[base.kind]
    made = [_float_form(base, read)] if row.float32 is not None else []
    if row.integers is not None:
        rule = row.integers
        made += [_integer_form(base, dtype, rule, read) for dtype in rule.types]
    return tuple(made)


def plain_spec(row: Binary, onnx: kit.OnnxBinding | None = None) -> kit.OpSpec:
    """A kind that TFLite never quantises. `onnx`: how ONNX files are read."""

    def refuse(op: kit.AnyOperator, given: object) -> Any:
        raise op.refused(f"it is of {op.x.dtype.value}")

    def attributes(node: kit.TfliteNode) -> kit.Attributes:
        one, two = node.inputs
        assert one is not None and two is not None
        return row.attributes(one.shape, two.shape)

    def sample(rng: np.random.Generator) -> kit.Graph:
        while True:
            graph = sample_binary(rng, row.name, kit.Attributes(), 1.0)
            shapes = graph.tensors["a"].shape, graph.tensors["b"].shape
            if row.broadcasts or shapes[0] == shapes[1]:
                op = replace(graph.ops[0], attributes=row.attributes(*shapes))
                return replace(graph, ops=(op,))

    base = kit.Form(
        kind=row.name,
        attributes=type(row.attributes((), ())),
        infer=infer_broadcast if row.broadcasts else infer_of_one_shape,
        reference=refuse,
        select=refuse,
        sample=sample,
        axes=kit.elementwise_axes,
    )
    forms = tuple(replace(form, onnx=onnx) for form in plain_forms(base, attributes))
    if not row.broadcasts:
        forms = tuple(replace(f, limits=f"{f.dtype.value}, of one shape") for f in forms if f.dtype)
    return kit.OpSpec(forms)


SPECS = tuple(plain_spec(row) for row in BINARY.values() if row.tflite and not row.module)
