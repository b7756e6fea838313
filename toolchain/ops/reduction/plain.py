"""Reductions of int32 and int64 without scales: sum, mean, extremes and product.

They compute with plain integers, as `reference_ops::ReduceGeneric` and `reference_ops::Mean` do:
sums and products wrap, a mean is rounded towards 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.reduction.common import Reduce, reduced_axes
from toolchain.ops.reduction.kernels import integer_reduction

R = TypeVar("R", bound=Reduce)
_TYPES = (kit.DType.INT32, kit.DType.INT64)


def reduced(values: kit.Array, axes: tuple[int, ...], reduction: str) -> NDArray[np.int64]:
    """`values` of int32 or int64 over `axes`, in int64. Sums and products wrap at 64 bits."""
    wide = values.astype(np.int64)
    if reduction == "maximum":
        return np.asarray(wide.max(axis=axes))
    if reduction == "minimum":
        return np.asarray(wide.min(axis=axes))
    if reduction == "product":
        return np.asarray(wide.prod(axis=axes))
    total = np.asarray(wide.sum(axis=axes))
    if reduction == "sum":
        return total
    count = wide.size // max(total.size, 1)
    quotient: NDArray[np.int64] = total // count + ((total < 0) & (total % count != 0))
    return quotient


def integer_forms(
    float32: kit.Form[R], reduction: Callable[[kit.Operator[R]], str], *, limits: str
) -> tuple[kit.Form[R], ...]:
    """The int32 and int64 forms of a kind, of its float32 form.

    `reduction` names what an operator computes: sum, mean, maximum, minimum or product. `limits`
    goes behind the type.
    """

    def reference(op: kit.Operator[R], inputs: kit.Inputs) -> kit.Arrays:
        y = op.y
        result = reduced(inputs[0], reduced_axes(op), reduction(op))
        return (result.astype(y.dtype.numpy).reshape(y.shape),)

    def select(op: kit.Operator[R], core: kit.Core) -> kit.Kernel:
        return integer_reduction(op, reduction(op))

    def form(dtype: kit.DType) -> kit.Form[R]:
        def sample(rng: np.random.Generator) -> kit.Graph:
            graph = float32.sample(rng)
            return kit.with_tensors(graph, lambda tensor: replace(tensor, dtype=dtype))

        return replace(
            float32,
            reference=reference,
            select=select,
            sample=sample,
            dtype=dtype,
            quantised=kit.STORED,
            limits=f"{dtype.value} without scales; {limits}",
        )

    return tuple(form(dtype) for dtype in _TYPES)
