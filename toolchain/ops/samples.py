"""Samples: random shapes and types of tensors, and graphs of one operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from toolchain.ir import DType, Graph, Op, Quantisation, Tensor


def sample_shape(rng: np.random.Generator, rank: int, elements: int = 2000) -> tuple[int, ...]:
    """A random shape of this rank with at most `elements` elements; dimensions of 1 occur."""
    high = max(2, round(elements ** (1 / max(rank, 1))) + 1)
    return tuple(int(d) for d in rng.integers(1, high, rank))


def sample_quantisation(rng: np.random.Generator) -> Quantisation:
    """A random int8 quantisation. Zero points at the ends of the range are common."""
    scale = float(np.float32(2.0 ** rng.uniform(-9, 1)))
    zero_point = int(rng.choice([-128, 127, 0, int(rng.integers(-128, 128))]))
    return Quantisation((scale,), (zero_point,))


def sample_type(
    rng: np.random.Generator,
    wide: Sequence[DType] = (DType.INT32, DType.FLOAT32, DType.INT64),
) -> tuple[DType, Quantisation | None]:
    """A random element type: mostly int8 with a quantisation, sometimes one of `wide`."""
    if rng.random() < 0.6:
        return DType.INT8, sample_quantisation(rng)
    return wide[int(rng.integers(len(wide)))], None


def sample_graph(op: Op, *tensors: Tensor) -> Graph:
    """A graph of one operator with these tensors; its inputs are the operands without data."""
    inputs = [t.name for t in tensors if t.name in op.inputs and not t.is_constant]
    return Graph.build("sample", tensors, [op], inputs, op.outputs)


def with_tensors(graph: Graph, change: Callable[[Tensor], Tensor]) -> Graph:
    """The graph with each tensor as `change` returns it, which keeps names and shapes."""
    changed = {name: change(tensor) for name, tensor in graph.tensors.items()}
    return replace(graph, tensors=MappingProxyType(changed))
