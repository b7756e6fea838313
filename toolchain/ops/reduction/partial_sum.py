"""int32 sums over axes of a part of an int8 tensor (MOTES, section 4.3, reduced axes).

The stored values are summed; `requantise_sums` subtracts what the zero point contributes. Inputs:
the data, int32 sums to add to or ''.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops.arithmetic.fixed_point import wrap_int32
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import (
    NULL,
    Call,
    Input,
    Kernel,
    Output,
    SafeOverlap,
    Struct,
)
from toolchain.ops.reduction.common import (
    Reduce,
    infer_reduction,
    reduced_axes,
    sample_reduction,
)
from toolchain.ops.reduction.kernels import reduce_extents, reduction_terms, shape_of
from toolchain.ops.spec import Array, TensorType

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


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    shape, adds = shape_of(op, graph), bool(op.inputs[SUMS])
    call = Call(
        "thimble_partial_sum_s8",
        {
            "shape": Struct("thimble_reduce_shape", shape),
            "input": Input(0),
            "sums": Input(SUMS) if adds else NULL,
            "output": Output(0),
        },
    )
    output = graph.output(op).elements
    return Kernel(
        (call,),
        reduce_extents("shape"),
        # Each sum is read just before it is written.
        find_overlaps=lambda: (SafeOverlap(SUMS),) if adds else (),
        find_terms=lambda: {**reduction_terms(shape), "added": output * adds},
    )


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


SPEC = OldForm(
    kind="partial_sum",
    attributes=Reduce,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    types=frozenset({DType.INT8, DType.INT32}),
    made_by_passes=True,
    limits="int8 to int32 sums, axes in at most two groups of neighbours; made by splitting only",
)
