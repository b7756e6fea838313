"""Matrix product of int16 over batches. TFLite BATCH_MATMUL, 16x8.

Arithmetic: `reference_ops::BatchMatMul` with int64 sums.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op
from toolchain.ops import product_extents
from toolchain.ops.elementwise.common import check_node, require_types
from toolchain.ops.matmul import batch_matmul
from toolchain.ops.matmul.batch_matmul import matmul_requantisation
from toolchain.ops.matmul.common import (
    BatchMatMul,
    matmul_depth,
    matmul_fields,
    matmul_scratch_bytes,
    sample_matmul,
)
from toolchain.ops.readers.wide import LARGEST_SUM, WIDE, widened
from toolchain.ops.spec import Lowering, ReadOp, TfliteBinding, TfliteNode, no_reductions


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    require_types(op, graph, DType.INT16)
    multiplier, shift = matmul_requantisation(op, graph)
    largest = matmul_depth(op, graph) * 2.0 ** (30 + shift) * multiplier / (1 << 31)
    if largest >= LARGEST_SUM or shift > 14:
        raise UnsupportedError(
            f"{op.kind} {op.name!r}: its output scale {graph.output(op).q.scale:g} is too small "
            "for the sums it holds; quantise the model with a representative data set"
        )
    return Lowering(
        functions=("thimble_batch_matmul_s16",),
        scratch_bytes=matmul_scratch_bytes(op, graph),
        fields=matmul_fields(op, graph) | {"multiplier": multiplier, "code": shift},
    )


def _read(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT16)
    return ReadOp(BatchMatMul(bool(node.options.adjX), bool(node.options.adjY)), (0, 1))


def _sample(rng: np.random.Generator) -> Graph:
    return widened(sample_matmul(rng))


_WRITTEN = batch_matmul.SPEC.tflite
assert _WRITTEN is not None

SPEC = replace(
    batch_matmul.SPEC,
    kind="batch_matmul_s16",
    lower=_lower,
    extents=product_extents.matmul(2, 2),
    sample=_sample,
    reductions=no_reductions,
    tflite=TfliteBinding(("BATCH_MATMUL",), _read, _WRITTEN.write),
    dtypes=WIDE,
    limits="int16, up to three batch dimensions, constant or computed operands",
)
