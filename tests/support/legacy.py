"""Legacy uint8 models: an int8 sample with every zero point and value raised by 128."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.ir import DType, Graph, Quantisation, Tensor

WEIGHTED = frozenset({"conv2d", "depthwise_conv2d", "fully_connected"})


def as_uint8(graph: Graph, rng: np.random.Generator) -> Graph:
    """A single-operator graph of uint8 tensors; weights get one scale and any zero point."""
    (op,) = graph.ops
    tensors = {name: _raised(tensor) for name, tensor in graph.tensors.items()}
    if op.kind in WEIGHTED:
        x, weights = (tensors[name] for name in op.inputs[:2])
        zero = int(rng.choice([0, 127, 128, 255, int(rng.integers(0, 256))]))
        scale = weights.q.scales[0]
        data = rng.integers(0, 256, weights.shape).astype(np.uint8)
        tensors[weights.name] = replace(
            weights, quantisation=Quantisation((scale,), (zero,)), constant=data
        )
        if len(op.inputs) > 2:
            bias_scale = float(np.float32(x.q.scale) * np.float32(scale))
            bias = tensors[op.inputs[2]]
            tensors[bias.name] = replace(bias, quantisation=Quantisation((bias_scale,), (0,)))
    return Graph.build(graph.name, tensors.values(), graph.ops, graph.inputs, graph.outputs)


def _raised(tensor: Tensor) -> Tensor:
    if tensor.dtype is not DType.INT8 or tensor.quantisation is None:
        return tensor
    zeros = tuple(zero + 128 for zero in tensor.quantisation.zero_points)
    data = tensor.constant
    if data is not None:
        data = (data.astype(np.int16) + 128).astype(np.uint8)
    return replace(
        tensor,
        dtype=DType.UINT8,
        quantisation=replace(tensor.quantisation, zero_points=zeros),
        constant=data,
    )
