"""Functions of integers without scales: TFLite ABS, NEG and SIGN of int32, NEG of int64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import infer_unary, sample_shape
from toolchain.ops.elementwise.kernels import expressed, sized_kernel
from toolchain.ops.forms import OldForm, OpSpec
from toolchain.ops.kernel import Kernel
from toolchain.ops.spec import STORED, Array, ReadOp, TfliteBinding, TfliteNode, WrittenOp


class Function(Enum):
    """The value is its name in the template `unary_s32`."""

    ABS = "abs"
    NEG = "neg"
    SIGN = "sign"


_VERSIONS: Mapping[Function, int] = MappingProxyType(
    {Function.ABS: 5, Function.NEG: 1, Function.SIGN: 2}
)
_IN_TFLITE: Mapping[DType, tuple[Function, ...]] = MappingProxyType(
    {DType.INT32: tuple(Function), DType.INT64: (Function.NEG,)}
)


@dataclass(frozen=True)
class IntegerFunction(Attributes):
    """The least integer is its own negative and absolute value."""

    function: Function


def _function(op: Op) -> Function:
    assert isinstance(op.attributes, IntegerFunction)
    return op.attributes.function


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    y = graph.output(op)
    x = inputs[0].astype(y.dtype.numpy)
    with np.errstate(over="ignore"):
        match _function(op):
            case Function.ABS:
                return (np.abs(x),)
            case Function.NEG:
                return (np.negative(x),)
    return (np.sign(x),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    template = f"unary_s{8 * graph.output(op).dtype.size_bytes}"
    return expressed(sized_kernel(op, graph, ""), template, _function(op).value, "")


def _read(node: TfliteNode) -> ReadOp:
    return ReadOp(IntegerFunction(Function[node.builtin]), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    function = _function(op)
    return WrittenOp(function.name, version=_VERSIONS[function])


def _form(dtype: DType) -> OldForm:
    functions = _IN_TFLITE[dtype]

    def sample(rng: np.random.Generator) -> Graph:
        shape = sample_shape(rng)
        attributes = IntegerFunction(functions[int(rng.integers(len(functions)))])
        op = Op("integer_function", "function", ("x",), ("y",), attributes)
        tensors = [Tensor(name, shape, dtype) for name in ("x", "y")]
        return Graph.build("sample", tensors, [op], ["x"], ["y"])

    return OldForm(
        kind="integer_function",
        attributes=IntegerFunction,
        infer=infer_unary,
        reference=_reference,
        select=_select,
        sample=sample,
        axes=elementwise_axes,
        tflite=TfliteBinding(tuple(function.name for function in functions), _read, _write),
        dtype=dtype,
        quantised=STORED,
        limits=f"{dtype.value} without scales",
    )


SPEC = OpSpec(tuple(_form(dtype) for dtype in _IN_TFLITE))
