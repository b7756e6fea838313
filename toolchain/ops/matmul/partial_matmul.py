"""int32 sums of a matrix product over a part of the inner dimension (MOTES, section 4.3).

Inputs: two int8 matrices (or batches of them), int32 sums to add to or ''. Sums wrap.
"""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.matmul import common
from toolchain.ops.matmul.common import BatchMatMul
from toolchain.ops.matmul.kernels import thimble_partial_matmul_s8
from toolchain.ops.matmul.kernels.thimble_partial_matmul_s8 import SUMS


def _infer(op: kit.Operator[BatchMatMul]) -> kit.TensorTypes:
    (made,) = common.infer_matmul(op)
    return kit.sums_type(op, SUMS, made.shape)


def _reference(op: kit.Operator[BatchMatMul], inputs: kit.Inputs) -> kit.Arrays:
    return kit.added_sums(op, common.matmul_sums(op, inputs), inputs)


def _select(op: kit.Operator[BatchMatMul], core: kit.Core) -> kit.Kernel:
    return thimble_partial_matmul_s8.kernel(op)


def _sample(rng: np.random.Generator) -> kit.Graph:
    graph = common.sample_matmul(rng)
    (op,) = graph.ops
    shape, sums = graph.output(op).shape, None
    if rng.random() < 0.7:
        sums = kit.Tensor("sums", shape, kit.DType.INT32)
    x, y = graph.input(op, 0), graph.input(op, 1)
    return kit.sample("partial_matmul", op.attributes, x, y, sums, outputs=("z",), name="matmul")


SPEC = kit.Form(
    kind="partial_matmul",
    attributes=BatchMatMul,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    macs=common.matmul_macs,
    types=frozenset({kit.DType.INT8, kit.DType.INT32}),
    made_by_passes=True,
    limits="int8 matrices, int32 sums; made by splitting only",
)
