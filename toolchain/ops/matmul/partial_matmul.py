"""int32 sums of a matrix product over a part of the inner dimension (MOTES, section 4.3).

Inputs: two int8 matrices (or batches of them), int32 sums to add to or ''. Sums wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops.arithmetic.fixed_point import wrap_int32
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Kernel
from toolchain.ops.matmul.common import (
    BatchMatMul,
    infer_matmul,
    matmul_macs,
    matmul_sums,
    sample_matmul,
)
from toolchain.ops.matmul.kernels import thimble_partial_matmul_s8
from toolchain.ops.matmul.kernels.thimble_partial_matmul_s8 import SUMS
from toolchain.ops.spec import Array, TensorType


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    (made,) = infer_matmul(op, graph)
    if len(op.inputs) != SUMS + 1:
        raise ValueError("needs two matrices, and sums or none")
    if op.inputs[SUMS] and graph.input(op, SUMS).shape != made.shape:
        raise ValueError(f"{graph.input(op, SUMS)} cannot be added to int32{list(made.shape)}")
    return (TensorType(made.shape, DType.INT32),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    total = matmul_sums(op, graph, inputs)
    if op.inputs[SUMS]:
        total = total + inputs[SUMS].astype(np.int64)
    return (wrap_int32(total).astype(np.int32),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    return thimble_partial_matmul_s8.kernel(op, graph)


def _sample(rng: np.random.Generator) -> Graph:
    graph = sample_matmul(rng)
    (op,) = graph.ops
    z = Tensor("z", graph.output(op).shape, DType.INT32)
    tensors, sums = [t for t in graph.tensors.values() if t.name != "z"] + [z], ""
    if rng.random() < 0.7:
        tensors.append(Tensor("sums", z.shape, DType.INT32))
        sums = "sums"
    op = replace(op, kind="partial_matmul", inputs=(*op.inputs, sums))
    given = [*graph.inputs, sums] if sums else graph.inputs
    return Graph.build("sample", tensors, [op], given, ["z"])


SPEC = OldForm(
    kind="partial_matmul",
    attributes=BatchMatMul,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    macs=matmul_macs,
    types=frozenset({DType.INT8, DType.INT32}),
    made_by_passes=True,
    limits="int8 matrices, int32 sums; made by splitting only",
)
