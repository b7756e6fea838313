"""Functions of integers without scales: TFLite ABS, NEG and SIGN of int32, NEG of int64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import infer_unary, sample_shape
from toolchain.ops.elementwise.kernels import expressed, sized_kernel


class Function(Enum):
    """The value is its name in the template `unary_s32`."""

    ABS = "abs"
    NEG = "neg"
    SIGN = "sign"


_VERSIONS: Mapping[Function, int] = MappingProxyType(
    {Function.ABS: 5, Function.NEG: 1, Function.SIGN: 2}
)
_IN_TFLITE: Mapping[kit.DType, tuple[Function, ...]] = MappingProxyType(
    {kit.DType.INT32: tuple(Function), kit.DType.INT64: (Function.NEG,)}
)


@dataclass(frozen=True)
class IntegerFunction(kit.Attributes):
    """The least integer is its own negative and absolute value."""

    function: Function


def _function(op: kit.Operator[IntegerFunction]) -> Function:
    return op.attributes.function


def _reference(
    op: kit.Operator[IntegerFunction], inputs: Sequence[kit.Array]
) -> tuple[kit.Array, ...]:
    y = op.y
    x = inputs[0].astype(y.dtype.numpy)
    with np.errstate(over="ignore"):
        match _function(op):
            case Function.ABS:
                return (np.abs(x),)
            case Function.NEG:
                return (np.negative(x),)
    return (np.sign(x),)


def _select(op: kit.Operator[IntegerFunction], core: kit.Core) -> kit.Kernel:
    template = f"unary_s{8 * op.y.dtype.size_bytes}"
    return expressed(sized_kernel(op, ""), template, _function(op).value, "")


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    return kit.ReadOp(IntegerFunction(Function[node.builtin]), (0,))


def _write(op: kit.Operator[IntegerFunction]) -> kit.WrittenOp:
    function = _function(op)
    return kit.WrittenOp(function.name, version=_VERSIONS[function])


def _form(dtype: kit.DType) -> kit.Form[Any]:
    functions = _IN_TFLITE[dtype]

    def sample(rng: np.random.Generator) -> kit.Graph:
        shape = sample_shape(rng)
        attributes = IntegerFunction(functions[int(rng.integers(len(functions)))])
        op = kit.Op("integer_function", "function", ("x",), ("y",), attributes)
        tensors = [kit.Tensor(name, shape, dtype) for name in ("x", "y")]
        return kit.Graph.build("sample", tensors, [op], ["x"], ["y"])

    return kit.Form(
        kind="integer_function",
        attributes=IntegerFunction,
        infer=infer_unary,
        reference=_reference,
        select=_select,
        sample=sample,
        axes=elementwise_axes,
        tflite=kit.TfliteBinding(tuple(function.name for function in functions), _read, _write),
        dtype=dtype,
        quantised=kit.STORED,
        limits=f"{dtype.value} without scales",
    )


SPEC = kit.OpSpec(tuple(_form(dtype) for dtype in _IN_TFLITE))
