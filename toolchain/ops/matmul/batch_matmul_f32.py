"""Matrix product over batches in float32. TFLite BATCH_MATMUL, `reference_ops::BatchMatMul`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import product_extents
from toolchain.ops.matmul import batch_matmul
from toolchain.ops.matmul.common import BatchMatMul, product_shape
from toolchain.ops.readers.floats import FLOAT, check_float_node, float_sample
from toolchain.ops.spec import Array, Lowering, ReadOp, TfliteBinding, TfliteNode, no_reductions


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    attributes = op.attributes
    assert isinstance(attributes, BatchMatMul)
    left, right = (values.astype(np.float32) for values in inputs)
    left = np.swapaxes(left, -1, -2) if attributes.adjoint_x else left
    right = np.swapaxes(right, -1, -2) if attributes.adjoint_y else right
    total = np.zeros(graph.output(op).shape, np.float32)
    for index in range(left.shape[-1]):
        total = total + left[..., :, index, None] * right[..., None, index, :]
    return (total,)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    return Lowering(functions=("thimble_batch_matmul_f32",), fields=product_shape(op, graph))


def _read(node: TfliteNode) -> ReadOp:
    check_float_node(node)
    return ReadOp(BatchMatMul(bool(node.options.adjX), bool(node.options.adjY)), (0, 1))


assert batch_matmul.SPEC.tflite is not None

SPEC = replace(
    batch_matmul.SPEC,
    kind="batch_matmul_f32",
    reference=_reference,
    lower=_lower,
    extents=product_extents.matmul(4, 4),
    sample=float_sample(batch_matmul.SPEC.sample, "batch_matmul_f32"),
    tflite=TfliteBinding(("BATCH_MATMUL",), _read, batch_matmul.SPEC.tflite.write),
    onnx=None,
    reductions=no_reductions,
    dtypes=FLOAT,
    limits="float32, up to three batch dimensions, constant or computed operands",
)
