"""The zoo's networks before somebody quantised them."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from toolchain.ir import DType, Graph


def in_float(graph: Graph) -> Graph:
    """The network before somebody quantised it, as far as sizes go."""
    tensors = {}
    for name, tensor in graph.tensors.items():
        if tensor.quantisation is not None:
            data = None if tensor.constant is None else np.ones(tensor.shape, np.float32)
            tensor = replace(tensor, dtype=DType.FLOAT32, quantisation=None, constant=data)
        tensors[name] = tensor
    return replace(graph, tensors=MappingProxyType(tensors))
