"""Which tensors of the graph hold results of the file's operators, to compare them: those of its
QuantizeLinear; of a model whose activations are floats, all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.frontends.onnx.layout import Layout
from toolchain.ir import Graph
from toolchain.ops.spec import Array


@dataclass(frozen=True)
class Stored:
    """The graph's tensor with the result of an operator of the file, and its layout."""

    tensor: str
    layout: Layout

    def of(self, values: Array, graph: Graph) -> Array:
        """ONNX Runtime's `values` in the layout of the graph's tensor."""
        layout = self.layout
        logical = [factor for dim in layout.dims for factor in dim]
        factors = values
        if values.dtype.kind != "f":
            shift = 128 if values.dtype == np.uint8 else 0
            factors = (values.astype(np.int16) - shift).astype(np.int8)
        factors = factors.reshape([layout.sizes[factor] for factor in logical])
        moved = factors.transpose([logical.index(factor) for factor in layout.order])
        return np.ascontiguousarray(moved).reshape(graph.tensors[self.tensor].shape)
