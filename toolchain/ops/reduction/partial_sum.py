"""int32 sums over axes of a part of an int8 tensor (MOTES, section 4.3, reduced axes).

The stored values are summed; `requantise_sums` subtracts what the zero point contributes. Inputs:
the data, int32 sums to add to or ''.
"""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.reduction import common
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.reduction.kernels import reduce_extents, reduction_terms, shape_of

SUMS = 1


def _infer(op: kit.Operator[Reduce]) -> kit.TensorTypes:
    (made,) = common.infer_reduction(op)
    if len(op.inputs) != SUMS + 1:
        raise ValueError("needs data, and sums or none")
    if op.inputs[SUMS] and op.input(SUMS).shape != made.shape:
        raise ValueError(f"{op.input(SUMS)} cannot be added to int32{list(made.shape)}")
    return (kit.TensorType(made.shape, kit.DType.INT32),)


def _reference(op: kit.Operator[Reduce], inputs: kit.Inputs) -> kit.Arrays:
    total = inputs[0].astype(np.int64).sum(axis=common.reduced_axes(op))
    total = total.reshape(op.y.shape)
    if op.inputs[SUMS]:
        total = total + inputs[SUMS].astype(np.int64)
    return (kit.wrap_int32(total).astype(np.int32),)


def _select(op: kit.Operator[Reduce], core: kit.Core) -> kit.Kernel:
    shape, adds = shape_of(op), op.inputs[SUMS] is not None
    call = kit.Call(
        "thimble_partial_sum_s8",
        {
            "shape": kit.Struct("thimble_reduce_shape", shape),
            "input": kit.Input(0),
            "sums": kit.Input(SUMS) if adds else kit.NULL,
            "output": kit.Output(0),
        },
    )
    output = op.y.elements
    return kit.Kernel(
        (call,),
        reduce_extents("shape"),
        # Each sum is read just before it is written.
        find_overlaps=lambda: (kit.SafeOverlap(SUMS),) if adds else (),
        find_terms=lambda: {**reduction_terms(shape), "added": output * adds},
    )


def _sample(rng: np.random.Generator) -> kit.Graph:
    graph = common.sample_reduction(rng, "sum")
    (op,) = graph.ops
    sums = None
    if rng.random() < 0.7:
        sums = kit.Tensor("sums", graph.output(op).shape, kit.DType.INT32)
    return kit.sample("partial_sum", op.attributes, graph.input(op, 0), sums, name="reduce")


SPEC = kit.Form(
    kind="partial_sum",
    attributes=Reduce,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    types=frozenset({kit.DType.INT8, kit.DType.INT32}),
    made_by_passes=True,
    limits="int8 to int32 sums, axes in at most two groups of neighbours; made by splitting only",
)
