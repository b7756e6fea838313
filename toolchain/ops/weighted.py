"""What operators with an input, weights and a bias share, in this order of operands."""

from __future__ import annotations

import numpy as np

from toolchain.ir import Graph, Op, Tensor
from toolchain.ops.arithmetic.fixed_point import Int32
from toolchain.ops.spec import Array, TfliteNode

INPUT, WEIGHTS, BIAS = 0, 1, 2


def constant_of(tensor: Tensor) -> Array:
    """The data of a weight or bias tensor. Raises ValueError if the tensor is not constant."""
    if tensor.constant is None:
        raise ValueError(f"tensor {tensor.name!r} must be constant")
    return tensor.constant


def has_bias(op: Op) -> bool:
    """Whether the operator has a bias."""
    return len(op.inputs) > BIAS and bool(op.inputs[BIAS])


def bias_of(op: Op, graph: Graph, channels: int) -> Int32:
    """The bias as int32, one per channel; zeros if the operator has none."""
    if has_bias(op):
        return constant_of(graph.input(op, BIAS)).reshape(-1).astype(np.int32)
    return np.zeros(channels, dtype=np.int32)


def present_inputs(node: TfliteNode) -> tuple[int, ...]:
    """The indices of input, weights and bias that the file's operator has."""
    return tuple(i for i, tensor in enumerate(node.inputs[:3]) if tensor is not None)
