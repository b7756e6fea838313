"""int32 sums of a fully connected layer over some of its inputs (MOTES, section 4.3, reduced axes).

Inputs: int8 rows, the weights of these inputs, bias or '', int32 sums to add to or ''. Sums wrap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.convolution.common import random_operands, with_sums
from toolchain.ops.matmul.kernels import thimble_partial_fully_connected_s8
from toolchain.ops.matmul.kernels.thimble_partial_fully_connected_s8 import SUMS


@dataclass(frozen=True)
class PartialFullyConnected(kit.Attributes):
    """`keep_dims`: the output keeps the input's leading dimensions instead of being [n, o]."""

    keep_dims: bool = False


def leading_dimensions(x: kit.Tensor, weights: kit.Tensor, keep_dims: bool) -> tuple[int, ...]:
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


def layer_axes(op: kit.AnyOperator) -> tuple[kit.Axis, ...]:
    """Outputs, each with weights of its own; rows where input and output agree on them."""
    x, y = op.input(kit.INPUT), op.y
    filters = (kit.Reach(0),) * (len(op.inputs) - 1)
    outputs = kit.Axis(len(y.shape) - 1, (None, *filters), lambda part: op.attributes)
    if x.shape[:-1] != y.shape[:-1]:
        return (outputs,)
    whole = (None,) * len(filters)
    rows = (
        kit.Axis(axis, (kit.Reach(axis), *whole), lambda part: op.attributes)
        for axis in range(len(y.shape) - 1)
    )
    return (*rows, outputs)


def _infer(op: kit.Operator[PartialFullyConnected]) -> kit.TensorTypes:
    weights = op.input(kit.WEIGHTS)
    rows = leading_dimensions(op.input(kit.INPUT), weights, op.attributes.keep_dims)
    return kit.sums_type(op, SUMS, (*rows, weights.shape[0]))


def _reference(op: kit.AnyOperator, inputs: kit.Inputs) -> kit.Arrays:
    x, y = op.input(kit.INPUT), op.y
    weights = inputs[kit.WEIGHTS].astype(np.int64)
    rows = inputs[kit.INPUT].reshape(-1, weights.shape[1]).astype(np.int64) - x.q.zero_point
    return kit.added_sums(op, (rows @ weights.T).reshape(y.shape), inputs)


def _macs(op: kit.AnyOperator) -> int:
    return op.y.elements * op.input(kit.WEIGHTS).shape[1]


def _sample(rng: np.random.Generator) -> kit.Graph:
    rows, units, depth = (int(n) for n in rng.integers(1, 12, 3))
    operands, _ = random_operands(rng, (rows, depth), (units, depth), depth, biased=0.5)
    given = with_sums(rng, operands, (rows, units))
    attributes = PartialFullyConnected(bool(rng.random() < 0.5))
    return kit.sample("partial_fully_connected", attributes, *given, name="partial")


SPEC = kit.Form(
    quantised=kit.WEIGHTED,
    kind="partial_fully_connected",
    attributes=PartialFullyConnected,
    infer=_infer,
    reference=_reference,
    select=thimble_partial_fully_connected_s8.kernel,
    sample=_sample,
    macs=_macs,
    types=frozenset({kit.DType.INT8, kit.DType.INT32}),
    made_by_passes=True,
    limits="int8 rows, int32 sums; made by splitting only",
)
