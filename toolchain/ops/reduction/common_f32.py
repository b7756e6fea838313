"""References and samples of the float32 reductions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.reduction.common import Reduce, reduced_axes

Float32 = NDArray[np.float32]


def rows_of_floats(op: kit.Operator[Reduce], inputs: kit.Inputs) -> Float32:
    """The input as [reduced, kept] elements: for each output the values it reduces, in row-major
    order.
    """
    axes, values = reduced_axes(op), inputs[0].astype(np.float32)
    kept = [axis for axis in range(values.ndim) if axis not in axes]
    return values.transpose(*axes, *kept).reshape(-1, op.y.elements)


def sum_of_floats(op: kit.Operator[Reduce], inputs: kit.Inputs, *, mean: bool) -> kit.Arrays:
    """Sum or mean; the elements are added in row-major order."""
    y, rows = op.y, rows_of_floats(op, inputs)
    total = np.zeros(y.elements, np.float32)
    for row in rows:
        total = total + row
    if mean:
        total = total / np.float32(len(rows))
    return (total.reshape(y.shape),)


def float_reduction_sample(
    rng: np.random.Generator, kind: str, attributes: type[Reduce]
) -> kit.Graph:
    """A float32 tensor reduced over random axes."""
    shape = kit.sample_shape(rng, int(rng.integers(1, 5)))
    axes = tuple(axis for axis in range(len(shape)) if rng.random() < 0.5) or (-1,)
    x = kit.Tensor("x", shape, kit.DType.FLOAT32)
    return kit.sample(kind, attributes(axes, bool(rng.random() < 0.5)), x, name="reduce")
