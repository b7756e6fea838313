"""Parts of samples; those of float layers are made of those of integer ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from toolchain.ops import kit


def random_q(
    rng: np.random.Generator, low: float, high: float, zero_point: int = 0
) -> kit.Quantisation:
    """A quantisation with a random scale of 2**low to 2**high."""
    return kit.Quantisation((kit.sample_scale(rng, low, high),), (zero_point,))


def in_float(graph: kit.Graph, rng: np.random.Generator) -> kit.Graph:
    """A sample with float32 tensors, small constants and states of zeros."""
    tensors = []
    for tensor in graph.tensors.values():
        data = None
        if tensor.is_constant:
            data = rng.normal(0, 0.3, tensor.shape).astype(np.float32)
        tensors.append(kit.Tensor(tensor.name, tensor.shape, kit.DType.FLOAT32, None, data))
    states = [
        kit.State(kept.input, kept.output, np.zeros(kept.initial.shape, np.float32))
        for kept in graph.states
    ]
    return kit.Graph.build("sample", tensors, graph.ops, graph.inputs, graph.outputs, states)


def with_int8_weights(
    graph: kit.Graph, weights: Iterable[str], largest_scale: float, rng: np.random.Generator
) -> kit.Graph:
    """A float sample whose constants of these names are int8."""
    tensors = dict(graph.tensors)
    for name in weights:
        scale = float(np.float32(rng.uniform(0.002, largest_scale)))
        data = rng.integers(-127, 128, tensors[name].shape).astype(np.int8)
        q = kit.Quantisation((scale,), (0,))
        tensors[name] = replace(tensors[name], dtype=kit.DType.INT8, quantisation=q, constant=data)
    return kit.Graph.build(
        "sample", tensors.values(), graph.ops, graph.inputs, graph.outputs, graph.states
    )


def with_attributes(graph: kit.Graph, attributes: kit.Attributes) -> kit.Graph:
    """A graph of one operator, with other attributes."""
    return graph.with_ops([replace(graph.ops[0], attributes=attributes)])
