"""Legacy uint8 models: an int8 sample with every zero point and value raised by 128."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.support.weights import sample_with_constant_weights
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.movement.concat import Concat

WEIGHTED = frozenset({"conv2d", "depthwise_conv2d", "fully_connected"})


def legacy_sample(kind: str, rng: np.random.Generator) -> Graph:
    """A random single operator of uint8. Weights are constant."""
    return as_uint8(sample_with_constant_weights(kind, rng), rng)


def as_uint8(graph: Graph, rng: np.random.Generator) -> Graph:
    """A single-operator graph of uint8 tensors; weights get one scale and any zero point."""
    (op,) = graph.ops
    tensors = {name: raised(tensor) for name, tensor in graph.tensors.items()}
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


def raised(tensor: Tensor) -> Tensor:
    """An int8 tensor as uint8; any other as it is."""
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


def joined(rng: np.random.Generator) -> Graph:
    """A CONCATENATION of uint8 tensors, most of which have another scale than it."""
    shape = [int(size) for size in rng.integers(1, 6, int(rng.integers(1, 5)))]
    axis = int(rng.integers(len(shape)))

    def quantised() -> Quantisation:
        return Quantisation((float(np.float32(2.0 ** rng.uniform(-9, 3))),), (_byte(rng),))

    whole, total = quantised(), 0
    tensors = []
    for index in range(int(rng.integers(1, 5))):
        part = [*shape[:axis], int(rng.integers(1, 7)), *shape[axis + 1 :]]
        total += part[axis]
        kept = rng.random() < 0.3
        near = Quantisation((float(np.float32(whole.scale * rng.uniform(0.3, 3))),), (_byte(rng),))
        q = whole if kept else near if rng.random() < 0.7 else quantised()
        fixed = rng.integers(0, 256, part).astype(np.uint8) if rng.random() < 0.2 else None
        constant = fixed if index else None
        tensors.append(Tensor(f"x{index}", tuple(part), DType.UINT8, q, constant))
    names = [tensor.name for tensor in tensors]
    y = Tensor("y", (*shape[:axis], total, *shape[axis + 1 :]), DType.UINT8, whole)
    op = Op("concat", "concat", tuple(names), ("y",), Concat(axis))
    given = [tensor.name for tensor in tensors if not tensor.is_constant]
    return Graph.build("joined", [*tensors, y], [op], given, ["y"])


def _byte(rng: np.random.Generator) -> int:
    return int(rng.choice([0, 128, 255, int(rng.integers(256))]))
