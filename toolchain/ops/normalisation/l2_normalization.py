"""Rows divided by their Euclidean length, as embeddings end. TFLite L2_NORMALIZATION.

Arithmetic of int8: `reference_integer_ops::L2Normalization`; the output's scale is 1/128, zero
point 0. Float32 follows `reference_ops::L2Normalization`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import inverse_square_root
from toolchain.ops.elementwise import common as elementwise
from toolchain.ops.normalisation.rows import row_extents
from toolchain.ops.readers.float32 import (
    check_float_node,
    float32_elementwise_sample,
)

OUTPUT = kit.Quantisation((1 / 128,), (0,))
_OUTPUT_BITS = 7
_LONGEST = (2**31 - 1) // 255**2
"""The longest row whose sum of squares int32 holds."""


def _reference(op: kit.AnyOperator, inputs: kit.Inputs) -> kit.Arrays:
    x, y = op.x, op.y
    rows = inputs[0].reshape(-1, y.shape[-1]).astype(np.int64) - x.q.zero_point
    roots = [inverse_square_root(int(total)) for total in (rows * rows).sum(axis=1)]
    scaled = [
        kit.multiply_by_quantized_multiplier(row, multiplier, shift + _OUTPUT_BITS)
        for row, (multiplier, shift) in zip(rows, roots, strict=True)
    ]
    return (np.clip(scaled, -128, 127).astype(np.int8).reshape(y.shape),)


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    elementwise.require_types(op, kit.DType.INT8)
    x, y = op.x, op.y
    if not x.shape or x.shape[-1] > _LONGEST:
        raise op.refused(f"rows of {x.shape[-1:]} elements; 1 to {_LONGEST} are supported")
    if y.quantisation != OUTPUT:
        raise op.refused(
            f"the output has scale {y.q.scale:g} and zero point "
            f"{y.q.zero_point}, not 1/128 and 0; convert with TFLite's int8 quantiser"
        )
    call = kit.Call(
        "thimble_l2_normalization_s8",
        {
            "input": kit.Input(0),
            "output": kit.Output(0),
            "rows": x.elements // x.shape[-1],
            "columns": x.shape[-1],
            "zero_point": x.q.zero_point,
        },
    )
    return kit.Kernel(
        (call,),
        row_extents("rows", "columns"),
        find_overlaps=lambda: elementwise.overlaps_same_shape(op, core),
    )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    elementwise.check_node(node, kit.DType.INT8)
    if node.has_options and node.options.fusedActivationFunction != "NONE":
        raise node.unsupported("a fused activation", "apply it in an operator of its own")
    return kit.ReadOp(kit.Attributes(), (0,))


def _write(op: kit.AnyOperator) -> kit.WrittenOp:
    return kit.WrittenOp("L2_NORMALIZATION", "L2NormOptions", version=2)


def _sample(rng: np.random.Generator) -> kit.Graph:
    """LiteRT takes one to four dimensions."""
    shape = (*elementwise.sample_shape(rng, 3, 6), int(rng.integers(1, 70)))
    x = kit.Tensor("x", shape, kit.DType.INT8, elementwise.sample_quantisation(rng))
    return kit.sample("l2_normalization", kit.Attributes(), x, q=OUTPUT, name="norm")


_SMALLEST = 1e-6
"""The least norm by which a row of float32 is divided."""


def _reference_float(op: kit.AnyOperator, inputs: kit.Inputs) -> kit.Arrays:
    shape = op.y.shape
    rows = inputs[0].astype(np.float32).reshape(-1, shape[-1])
    total = np.zeros(len(rows), np.float32)
    with np.errstate(all="ignore"):
        for column in rows.T:
            total = total + column * column
        length = np.sqrt(total)
        length = np.where(length < np.float32(_SMALLEST), np.float32(_SMALLEST), length)
        return ((rows / length[:, None]).reshape(shape),)


def _select_float(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    x = op.x
    columns = x.shape[-1] if x.shape else 1
    call = kit.Call(
        "thimble_l2_normalization_f32",
        {
            "input": kit.Input(0),
            "output": kit.Output(0),
            "rows": x.elements // columns,
            "columns": columns,
        },
    )
    return kit.Kernel(
        (call,),
        row_extents("rows", "columns"),
        find_overlaps=lambda: elementwise.overlaps_same_shape(op, core),
    )


def _read_float(node: kit.TfliteNode) -> kit.ReadOp:
    check_float_node(node)
    if node.has_options and node.options.fusedActivationFunction != "NONE":
        raise node.unsupported("a fused activation", "apply it in an operator of its own")
    return kit.ReadOp(kit.Attributes(), (0,))


_INT8 = kit.Form(
    kind="l2_normalization",
    attributes=kit.Attributes,
    infer=elementwise.infer_unary,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=kit.leading_axes,
    tflite=kit.TfliteBinding(("L2_NORMALIZATION",), _read, _write),
    dtype=kit.DType.INT8,
    limits="int8, last dimension, output scale 1/128",
)

_FLOAT32 = replace(
    _INT8,
    reference=_reference_float,
    select=_select_float,
    sample=float32_elementwise_sample(_sample),
    tflite=kit.TfliteBinding(
        ("L2_NORMALIZATION",), _read_float, lambda op: replace(_write(op), version=1)
    ),
    dtype=kit.DType.FLOAT32,
    limits="float32, last dimension",
)
SPEC = kit.OpSpec((_INT8, _FLOAT32))
