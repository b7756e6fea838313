"""Reductions of int32 and int64 without scales: sum, mean, extremes and product.

They compute with plain integers, as `reference_ops::ReduceGeneric` and `reference_ops::Mean` do:
sums and products wrap, a mean is rounded towards 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Kernel
from toolchain.ops.reduction.common import reduced_axes
from toolchain.ops.reduction.kernels import integer_reduction
from toolchain.ops.spec import STORED, Array

_TYPES = (DType.INT32, DType.INT64)


def reduced(values: Array, axes: tuple[int, ...], reduction: str) -> NDArray[np.int64]:
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
    float32: OldForm, reduction: Callable[[Op], str], *, limits: str
) -> tuple[OldForm, ...]:
    """The int32 and int64 forms of a kind, of its float32 form.

    `reduction` names what an operator computes: sum, mean, maximum, minimum or product. `limits`
    goes behind the type.
    """

    def reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
        y = graph.output(op)
        found = reduced(inputs[0], reduced_axes(op, graph), reduction(op))
        return (found.astype(y.dtype.numpy).reshape(y.shape),)

    def select(op: Op, graph: Graph, core: Core) -> Kernel:
        return integer_reduction(op, graph, reduction(op))

    def form(dtype: DType) -> OldForm:
        def sample(rng: np.random.Generator) -> Graph:
            graph = float32.sample(rng)
            tensors = [replace(tensor, dtype=dtype) for tensor in graph.tensors.values()]
            return Graph.build("sample", tensors, graph.ops, graph.inputs, graph.outputs)

        return replace(
            float32,
            reference=reference,
            select=select,
            sample=sample,
            dtype=dtype,
            quantised=STORED,
            limits=f"{dtype.value} without scales; {limits}",
        )

    return tuple(form(dtype) for dtype in _TYPES)
