"""Sum, mean, maximum and minimum along axes in float32. TFLite SUM, MEAN, REDUCE_MAX and _MIN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops import extents
from toolchain.ops.movement.copies import sample_shape
from toolchain.ops.readers.floats import FLOAT, no_overlaps
from toolchain.ops.reduction.common import (
    Reduce,
    blocks,
    infer_reduction,
    read_reduction,
    reduced_axes,
    reduction_axes,
    write_reduction,
)
from toolchain.ops.spec import (
    Array,
    Lowering,
    OpSpec,
    ReadOp,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_BUILTINS: Mapping[str, str] = MappingProxyType(
    {"mean": "MEAN", "sum": "SUM", "maximum": "REDUCE_MAX", "minimum": "REDUCE_MIN"}
)


@dataclass(frozen=True)
class ReduceFloat(Reduce):
    """`reduction`: sum, mean, maximum or minimum."""

    reduction: str = "mean"


def _reduction(op: Op) -> str:
    assert isinstance(op.attributes, ReduceFloat)
    return op.attributes.reduction


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Elements join in row-major order."""
    y, axes = graph.output(op), reduced_axes(op, graph)
    values, reduction = inputs[0].astype(np.float32), _reduction(op)
    kept = [axis for axis in range(values.ndim) if axis not in axes]
    rows = values.transpose(*axes, *kept).reshape(-1, y.elements)
    if reduction in ("maximum", "minimum"):
        found = rows.max(axis=0) if reduction == "maximum" else rows.min(axis=0)
        return (found.reshape(y.shape),)
    total = np.zeros(y.elements, np.float32)
    for row in rows:
        total = total + row
    if reduction == "mean":
        total = total / np.float32(len(rows))
    return (total.reshape(y.shape),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    outer, first, middle, second, inner = blocks(op, graph)
    return Lowering(
        functions=("thimble_reduce_f32",),
        fields={
            "params": {
                "reduction": f"THIMBLE_{_reduction(op).upper()}",
                "outer": outer,
                "first": first,
                "middle": middle,
                "second": second,
                "inner": inner,
            }
        },
    )


def _read(node: TfliteNode) -> ReadOp:
    answer = read_reduction(node)
    assert isinstance(answer.attributes, Reduce)
    name = next(name for name, builtin in _BUILTINS.items() if builtin == node.builtin)
    axes, keep_dims = answer.attributes.axes, answer.attributes.keep_dims
    return ReadOp(ReduceFloat(axes, keep_dims, reduction=name), answer.inputs)


def _write(op: Op, graph: Graph) -> WrittenOp:
    return write_reduction(op, graph, _BUILTINS[_reduction(op)])


def _sample(rng: np.random.Generator) -> Graph:
    shape = sample_shape(rng, int(rng.integers(1, 5)))
    axes = tuple(axis for axis in range(len(shape)) if rng.random() < 0.5) or (-1,)
    reduction = str(rng.choice(sorted(_BUILTINS)))
    attributes = ReduceFloat(axes, bool(rng.random() < 0.5), reduction=reduction)
    op = Op("reduce_f32", "reduce", ("x",), ("y",), attributes)
    x, hollow = Tensor("x", shape, DType.FLOAT32), Tensor("y", (), DType.FLOAT32)
    inferred = infer_reduction(op, Graph.build("shape", [x, hollow], [op], ["x"], ["y"]))
    y = Tensor("y", inferred[0].shape, DType.FLOAT32)
    return Graph.build("sample", [x, y], [op], ["x"], ["y"])


SPEC = OpSpec(
    kind="reduce_f32",
    attributes=ReduceFloat,
    infer=infer_reduction,
    reference=_reference,
    lower=_lower,
    extents=extents.reduction(4, 4),
    sample=_sample,
    overlaps=no_overlaps,
    axes=reduction_axes,
    tflite=TfliteBinding(tuple(_BUILTINS.values()), _read, _write),
    dtypes=FLOAT,
    limits="float32; constant axes in at most two groups of neighbours",
)
