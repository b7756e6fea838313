"""Functions with a float32 form only: TFLite FLOOR, SIN and others, ONNX Erf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from toolchain.ops import kit
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import infer_unary, sample_shape
from toolchain.ops.readers.float32 import check_float_node
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
class FloatFunction(kit.Attributes):
    function: Function


def _function(op: kit.Operator[FloatFunction]) -> unary_f32.FloatFunction:
    return unary_f32.FloatFunction(op.attributes.function.value)


def _reference(
    op: kit.Operator[FloatFunction], inputs: Sequence[kit.Array]
) -> tuple[kit.Array, ...]:
    return (float_reference(_function(op), inputs[0]).reshape(op.y.shape),)


def _select(op: kit.Operator[FloatFunction], core: kit.Core) -> kit.Kernel:
    return float_kernel(op, _function(op))


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    check_float_node(node)
    return kit.ReadOp(FloatFunction(Function[node.builtin]), (0,))


def _write(op: kit.Operator[FloatFunction]) -> kit.WrittenOp:
    return kit.WrittenOp(op.attributes.function.name)


def _sample(rng: np.random.Generator) -> kit.Graph:
    """A function that TFLite has."""
    shape = sample_shape(rng)
    attributes = FloatFunction(_IN_TFLITE[int(rng.integers(len(_IN_TFLITE)))])
    op = kit.Op("float_function", "function", ("x",), ("y",), attributes)
    tensors = [kit.Tensor(name, shape, kit.DType.FLOAT32) for name in ("x", "y")]
    return kit.Graph.build("sample", tensors, [op], ["x"], ["y"])


SPEC = kit.Form(
    kind="float_function",
    attributes=FloatFunction,
    infer=infer_unary,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    tflite=kit.TfliteBinding(tuple(f.name for f in _IN_TFLITE), _read, _write),
    dtype=kit.DType.FLOAT32,
    limits="float32",
)
