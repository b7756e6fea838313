"""Sums over axes of some of an int8 tensor, in int32 (MOTES 4.3, reduced axes).

Of the stored values: what the zero point adds is for `requantise_sums` to take off. Inputs: the
data, int32 sums to add to or ''.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops import extents
from toolchain.ops.convolution.common import wrap_int32
from toolchain.ops.reduction.common import (
    Reduce,
    blocks,
    infer_reduction,
    reduced_axes,
    sample_reduction,
)
from toolchain.ops.spec import Array, Lowering, OpSpec, SafeOverlap, TensorType

SUMS = 1


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    (made,) = infer_reduction(op, graph)
    if len(op.inputs) != SUMS + 1:
        raise ValueError("needs data, and sums or none")
    if op.inputs[SUMS] and graph.input(op, SUMS).shape != made.shape:
        raise ValueError(f"{graph.input(op, SUMS)} cannot be added to int32{list(made.shape)}")
    return (TensorType(made.shape, DType.INT32),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    total = inputs[0].astype(np.int64).sum(axis=reduced_axes(op, graph))
    total = total.reshape(graph.output(op).shape)
    if op.inputs[SUMS]:
        total = total + inputs[SUMS].astype(np.int64)
    return (wrap_int32(total).astype(np.int32),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    names = ("outer", "first", "middle", "second", "inner")
    return Lowering(
        functions=("thimble_partial_sum_s8",),
        fields=dict(zip(names, blocks(op, graph), strict=True)),
    )


def _overlaps(op: Op, graph: Graph, core: Core) -> tuple[SafeOverlap, ...]:
    """Each sum is read just before it is written."""
    return (SafeOverlap(SUMS),) if op.inputs[SUMS] else ()


def _sample(rng: np.random.Generator) -> Graph:
    graph = sample_reduction(rng, "sum")
    (op,) = graph.ops
    y = Tensor("y", graph.output(op).shape, DType.INT32)
    tensors, sums = [graph.tensors["x"], y], ""
    if rng.random() < 0.7:
        tensors.append(Tensor("sums", y.shape, DType.INT32))
        sums = "sums"
    op = replace(op, kind="partial_sum", inputs=("x", sums))
    return Graph.build("sample", tensors, [op], ["x", sums] if sums else ["x"], ["y"])


SPEC = OpSpec(
    kind="partial_sum",
    attributes=Reduce,
    infer=_infer,
    reference=_reference,
    lower=_lower,
    extents=extents.reduction(1, 4),
    sample=_sample,
    overlaps=_overlaps,
    dtypes=frozenset({DType.INT8, DType.INT32}),
    made_by_passes=True,
    limits="int8 to int32 sums, axes in at most two groups of neighbours; made by splitting only",
)
