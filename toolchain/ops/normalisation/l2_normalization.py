"""Rows divided by their Euclidean length, as embeddings end. TFLite L2_NORMALIZATION.

Arithmetic of int8: `reference_integer_ops::L2Normalization`; the output's scale is 1/128, zero
point 0. Of float32: `reference_ops::L2Normalization`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.arithmetic.fixed_point import (
    inverse_square_root,
    multiply_by_quantized_multiplier,
)
from toolchain.ops.axes import leading_axes
from toolchain.ops.elementwise.common import (
    check_node,
    infer_unary,
    overlaps_same_shape,
    require_types,
    sample_quantisation,
    sample_shape,
)
from toolchain.ops.forms import OldForm, OpSpec
from toolchain.ops.kernel import (
    Call,
    Input,
    Kernel,
    Output,
)
from toolchain.ops.normalisation.rows import row_extents
from toolchain.ops.readers.float32 import (
    check_float_node,
    float32_elementwise_sample,
)
from toolchain.ops.spec import Array, ReadOp, TfliteBinding, TfliteNode, WrittenOp

OUTPUT = Quantisation((1 / 128,), (0,))
_OUTPUT_BITS = 7
_LONGEST = (2**31 - 1) // 255**2
"""What the int32 sum of a row's squares holds."""


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, y = graph.input(op, 0), graph.output(op)
    rows = inputs[0].reshape(-1, y.shape[-1]).astype(np.int64) - x.q.zero_point
    roots = [inverse_square_root(int(total)) for total in (rows * rows).sum(axis=1)]
    scaled = [
        multiply_by_quantized_multiplier(row, multiplier, shift + _OUTPUT_BITS)
        for row, (multiplier, shift) in zip(rows, roots, strict=True)
    ]
    return (np.clip(scaled, -128, 127).astype(np.int8).reshape(y.shape),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    require_types(op, graph, DType.INT8)
    x, y = graph.input(op, 0), graph.output(op)
    if not x.shape or x.shape[-1] > _LONGEST:
        raise UnsupportedError(
            f"l2_normalization {op.name!r}: rows of {x.shape[-1:]} elements; "
            f"1 to {_LONGEST} are supported"
        )
    if y.quantisation != OUTPUT:
        raise UnsupportedError(
            f"l2_normalization {op.name!r}: the output has scale {y.q.scale:g} and zero point "
            f"{y.q.zero_point}, not 1/128 and 0; convert with TFLite's int8 quantiser"
        )
    call = Call(
        "thimble_l2_normalization_s8",
        {
            "input": Input(0),
            "output": Output(0),
            "rows": x.elements // x.shape[-1],
            "columns": x.shape[-1],
            "zero_point": x.q.zero_point,
        },
    )
    return Kernel(
        (call,),
        row_extents("rows", "columns"),
        find_overlaps=lambda: overlaps_same_shape(op, graph, core),
    )


def _read(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT8)
    if node.has_options and node.options.fusedActivationFunction != "NONE":
        raise node.unsupported("a fused activation", "apply it in an operator of its own")
    return ReadOp(Attributes(), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    return WrittenOp("L2_NORMALIZATION", "L2NormOptions", version=2)


def _sample(rng: np.random.Generator) -> Graph:
    """LiteRT takes one to four dimensions."""
    shape = (*sample_shape(rng, 3, 6), int(rng.integers(1, 70)))
    x = Tensor("x", shape, DType.INT8, sample_quantisation(rng))
    y = Tensor("y", shape, DType.INT8, OUTPUT)
    op = Op("l2_normalization", "norm", ("x",), ("y",))
    return Graph.build("sample", [x, y], [op], ["x"], ["y"])


_SMALLEST = 1e-6
"""What a row of float32 is divided by at least."""


def _reference_float(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    shape = graph.output(op).shape
    rows = inputs[0].astype(np.float32).reshape(-1, shape[-1])
    total = np.zeros(len(rows), np.float32)
    with np.errstate(all="ignore"):
        for column in rows.T:
            total = total + column * column
        length = np.sqrt(total)
        length = np.where(length < np.float32(_SMALLEST), np.float32(_SMALLEST), length)
        return ((rows / length[:, None]).reshape(shape),)


def _select_float(op: Op, graph: Graph, core: Core) -> Kernel:
    x = graph.input(op, 0)
    columns = x.shape[-1] if x.shape else 1
    call = Call(
        "thimble_l2_normalization_f32",
        {
            "input": Input(0),
            "output": Output(0),
            "rows": x.elements // columns,
            "columns": columns,
        },
    )
    return Kernel(
        (call,),
        row_extents("rows", "columns"),
        find_overlaps=lambda: overlaps_same_shape(op, graph, core),
    )


def _read_float(node: TfliteNode) -> ReadOp:
    check_float_node(node)
    if node.has_options and node.options.fusedActivationFunction != "NONE":
        raise node.unsupported("a fused activation", "apply it in an operator of its own")
    return ReadOp(Attributes(), (0,))


_INT8 = OldForm(
    kind="l2_normalization",
    attributes=Attributes,
    infer=infer_unary,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=leading_axes,
    tflite=TfliteBinding(("L2_NORMALIZATION",), _read, _write),
    dtype=DType.INT8,
    limits="int8, last dimension, output scale 1/128",
)

_FLOAT32 = replace(
    _INT8,
    reference=_reference_float,
    select=_select_float,
    sample=float32_elementwise_sample(_sample),
    tflite=TfliteBinding(
        ("L2_NORMALIZATION",), _read_float, lambda op, graph: replace(_write(op, graph), version=1)
    ),
    dtype=DType.FLOAT32,
    limits="float32, last dimension",
)
SPEC = OpSpec((_INT8, _FLOAT32))
