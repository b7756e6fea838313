"""A network as another training leaves it: other weights and biases, scales and zero points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.ir import DType, Graph, Quantisation, Tensor

_NEARLY = 0.15
"""The most that a scale changes, as a part of it."""


def retrained(graph: Graph, rng: np.random.Generator) -> Graph:
    """The same architecture. Tensors of one scale and zero point keep one; inputs and outputs, and
    what has a scale that its operator fixes, keep theirs.
    """
    ends = {graph.tensors[name].quantisation for name in (*graph.inputs, *graph.outputs)}
    fixed = {
        graph.tensors[name].quantisation
        for op in graph.ops
        if op.kind in ("softmax", "logistic", "tanh", "l2_normalization", "log_softmax")
        for name in op.outputs
    }
    others: dict[Quantisation, Quantisation] = {}

    def changed(q: Quantisation | None, weights: bool) -> Quantisation | None:
        if q is None or (not weights and q in (*ends, *fixed)):
            return q
        if q not in others:
            factors = rng.uniform(1 - _NEARLY, 1 + _NEARLY, len(q.scales))
            scales = tuple(float(np.float32(s * f)) for s, f in zip(q.scales, factors, strict=True))
            zero = tuple(z if weights else int(rng.integers(-40, 41)) for z in q.zero_points)
            others[q] = replace(q, scales=scales, zero_points=zero)
        return others[q]

    def one(tensor: Tensor) -> Tensor:
        if tensor.constant is None and tensor.dtype is not DType.INT8:
            return tensor
        if tensor.constant is None:
            return replace(tensor, quantisation=changed(tensor.quantisation, weights=False))
        if tensor.dtype is DType.INT8 and tensor.quantisation is not None:
            data = rng.permutation(tensor.constant.reshape(-1)).reshape(tensor.shape)
            return replace(
                tensor, constant=data, quantisation=changed(tensor.quantisation, weights=True)
            )
        is_bias = tensor.dtype is DType.INT32 and len(tensor.shape) == 1 and _is_bias(graph, tensor)
        if is_bias:
            return replace(tensor, constant=rng.permutation(tensor.constant))
        return tensor

    return Graph.build(
        graph.name,
        [one(tensor) for tensor in graph.tensors.values()],
        graph.ops,
        graph.inputs,
        graph.outputs,
        graph.states,
    )


def _is_bias(graph: Graph, tensor: Tensor) -> bool:
    kinds = {op.kind for op in graph.ops if tensor.name in op.inputs}
    return kinds <= {"conv2d", "depthwise_conv2d", "fully_connected", "transpose_conv2d"}
