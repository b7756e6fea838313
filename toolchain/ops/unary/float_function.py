"""Functions with a float32 form only: TFLite FLOOR, SIN and others, ONNX Erf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import infer_unary, sample_shape
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Kernel
from toolchain.ops.readers.float32 import check_float_node
from toolchain.ops.spec import Array, ReadOp, TfliteBinding, TfliteNode, WrittenOp
from toolchain.ops.unary import unary_f32
from toolchain.ops.unary.unary_f32 import float_kernel, float_reference


class Function(Enum):
    """The value is its name in `unary_f32.FUNCTIONS`."""

    CEIL = "ceil"
    COS = "cos"
    ERF = "erf"
    FLOOR = "floor"
    NEG = "neg"
    ROUND = "round"
    SIGN = "sign"
    SIN = "sin"
    SQUARE = "square"


_IN_TFLITE = tuple(function for function in Function if function is not Function.ERF)


@dataclass(frozen=True)
class FloatFunction(Attributes):
    function: Function


def _function(op: Op) -> unary_f32.FloatFunction:
    assert isinstance(op.attributes, FloatFunction)
    return unary_f32.FloatFunction(op.attributes.function.value)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    return (float_reference(_function(op), inputs[0]).reshape(graph.output(op).shape),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    return float_kernel(op, graph, _function(op))


def _read(node: TfliteNode) -> ReadOp:
    check_float_node(node)
    return ReadOp(FloatFunction(Function[node.builtin]), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    assert isinstance(op.attributes, FloatFunction)
    return WrittenOp(op.attributes.function.name)


def _sample(rng: np.random.Generator) -> Graph:
    """A function that TFLite has."""
    shape = sample_shape(rng)
    attributes = FloatFunction(_IN_TFLITE[int(rng.integers(len(_IN_TFLITE)))])
    op = Op("float_function", "function", ("x",), ("y",), attributes)
    tensors = [Tensor(name, shape, DType.FLOAT32) for name in ("x", "y")]
    return Graph.build("sample", tensors, [op], ["x"], ["y"])


SPEC = OldForm(
    kind="float_function",
    attributes=FloatFunction,
    infer=infer_unary,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    tflite=TfliteBinding(tuple(f.name for f in _IN_TFLITE), _read, _write),
    dtype=DType.FLOAT32,
    limits="float32",
)
