"""References and samples of the float32 reductions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops.movement.copies import sample_shape
from toolchain.ops.reduction.common import Reduce, infer_reduction, reduced_axes
from toolchain.ops.spec import Array

Float32 = NDArray[np.float32]


def rows_of_floats(op: Op, graph: Graph, inputs: Sequence[Array]) -> Float32:
    """The input as [reduced, kept] elements: for each output the values it reduces, in row-major
    order.
    """
    axes, values = reduced_axes(op, graph), inputs[0].astype(np.float32)
    kept = [axis for axis in range(values.ndim) if axis not in axes]
    return values.transpose(*axes, *kept).reshape(-1, graph.output(op).elements)


def sum_of_floats(
    op: Op, graph: Graph, inputs: Sequence[Array], *, mean: bool
) -> tuple[Array, ...]:
    """Sum or mean; the elements are added in row-major order."""
    y, rows = graph.output(op), rows_of_floats(op, graph, inputs)
    total = np.zeros(y.elements, np.float32)
    for row in rows:
        total = total + row
    if mean:
        total = total / np.float32(len(rows))
    return (total.reshape(y.shape),)


def float_reduction_sample(rng: np.random.Generator, kind: str, attributes: type[Reduce]) -> Graph:
    """A float32 tensor reduced over random axes."""
    shape = sample_shape(rng, int(rng.integers(1, 5)))
    axes = tuple(axis for axis in range(len(shape)) if rng.random() < 0.5) or (-1,)
    op = Op(kind, "reduce", ("x",), ("y",), attributes(axes, bool(rng.random() < 0.5)))
    x, hollow = Tensor("x", shape, DType.FLOAT32), Tensor("y", (), DType.FLOAT32)
    inferred = infer_reduction(op, Graph.build("shape", [x, hollow], [op], ["x"], ["y"]))
    y = Tensor("y", inferred[0].shape, DType.FLOAT32)
    return Graph.build("sample", [x, y], [op], ["x"], ["y"])
