"""int32 sums of a fully connected layer over some of its inputs (MOTES, section 4.3, reduced axes).

Inputs: int8 rows, the weights of these inputs, bias or '', int32 sums to add to or ''. Sums wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.arithmetic.fixed_point import wrap_int32
from toolchain.ops.convolution.common import random_bias, random_quantisation
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Kernel
from toolchain.ops.matmul.kernels import (
    thimble_partial_fully_connected_lanes_s8,
    thimble_partial_fully_connected_s8,
)
from toolchain.ops.matmul.kernels.unit_sums import SUMS
from toolchain.ops.spec import WEIGHTED, Array, TensorType
from toolchain.ops.weighted import BIAS, INPUT, WEIGHTS


@dataclass(frozen=True)
class PartialFullyConnected(Attributes):
    """`keep_dims`: the output keeps the input's leading dimensions instead of being [n, o]."""

    keep_dims: bool = False


def leading_dimensions(x: Tensor, weights: Tensor, keep_dims: bool) -> tuple[int, ...]:
    """The output's dimensions before its units. Raises ValueError if the weights do not fit x.

    As in LiteRT's `fully_connected.cc`, with `keep_dims` x's last dimension is the weights' depth.
    """
    if len(weights.shape) != 2 or not weights.elements:
        raise ValueError(f"weights {weights} are not a matrix")
    depth = weights.shape[1]
    if keep_dims and x.shape[-1:] != (depth,):
        raise ValueError(f"rows of {x} are not {depth} long, as the weights are, and keep_dims")
    if x.elements % depth:
        raise ValueError(f"input of {x.elements} elements does not divide into rows of {depth}")
    return x.shape[:-1] if keep_dims else (x.elements // depth,)


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    if len(op.inputs) != SUMS + 1:
        raise ValueError("needs rows, weights, a bias or none, and sums or none")
    assert isinstance(op.attributes, PartialFullyConnected)
    weights = graph.input(op, WEIGHTS)
    rows = leading_dimensions(graph.input(op, INPUT), weights, op.attributes.keep_dims)
    units = weights.shape[0]
    if op.inputs[SUMS] and graph.input(op, SUMS).shape != (*rows, units):
        raise ValueError(f"{graph.input(op, SUMS)} cannot be added to int32{[*rows, units]}")
    return (TensorType((*rows, units), DType.INT32),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, y = graph.input(op, INPUT), graph.output(op)
    weights = inputs[WEIGHTS].astype(np.int64)
    rows = inputs[INPUT].reshape(-1, weights.shape[1]).astype(np.int64) - x.q.zero_point
    total = (rows @ weights.T).reshape(y.shape)
    for index in (BIAS, SUMS):
        if op.inputs[index]:
            total = total + inputs[index].astype(np.int64)
    return (wrap_int32(total).astype(np.int32),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    if core.mve:
        return thimble_partial_fully_connected_lanes_s8.kernel(op, graph)
    return thimble_partial_fully_connected_s8.kernel(op, graph)


def _macs(op: Op, graph: Graph) -> int:
    return graph.output(op).elements * graph.input(op, WEIGHTS).shape[1]


def _sample(rng: np.random.Generator) -> Graph:
    rows, units, depth = (int(n) for n in rng.integers(1, 12, 3))
    x_q, w_q, _ = random_quantisation(rng, units, depth)
    weights = rng.integers(-127, 128, (units, depth)).astype(np.int8)
    tensors = [
        Tensor("x", (rows, depth), DType.INT8, x_q),
        Tensor("weights", weights.shape, DType.INT8, w_q, weights),
        Tensor("y", (rows, units), DType.INT32),
    ]
    bias, sums = "", ""
    if rng.random() < 0.5:
        tensors.append(random_bias(rng, x_q, w_q, units))
        bias = "bias"
    if rng.random() < 0.7:
        tensors.append(Tensor("sums", (rows, units), DType.INT32))
        sums = "sums"
    inputs = ("x", "weights", bias, sums)
    attributes = PartialFullyConnected(bool(rng.random() < 0.5))
    op = Op("partial_fully_connected", "partial", inputs, ("y",), attributes)
    return Graph.build("sample", tensors, [op], ["x", sums] if sums else ["x"], ["y"])


SPEC = OldForm(
    quantised=WEIGHTED,
    kind="partial_fully_connected",
    attributes=PartialFullyConnected,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    macs=_macs,
    types=frozenset({DType.INT8, DType.INT32}),
    made_by_passes=True,
    limits="int8 rows, int32 sums; made by splitting only",
)
