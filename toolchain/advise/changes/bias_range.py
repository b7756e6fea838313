"""Scales and biases of a layer in the range where its sums are rounded once, which is quicker: no
factor of 0.5 or more from the sums to the output, and no bias beyond what the products reach."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from toolchain.advise.change import Change, Proposal
from toolchain.advise.surgery import CannotChangeError, Draft
from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.weighted import BIAS, INPUT, WEIGHTS, has_bias

_QUICK = 0.49
"""The largest factor whose rounding needs no path of its own (`ops.weighted.slow_channels`)."""
_REACH = 128


def _proposals(graph: Graph, _: Core) -> Iterator[Proposal]:
    for op in graph.ops:
        if not isinstance(op.attributes, Convolution | FullyConnected):
            continue
        x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
        if {x.dtype, weights.dtype, y.dtype} != {DType.INT8} or not weights.is_constant:
            continue
        bias = _in_reach(op, graph)
        limit = _QUICK * y.q.scale / x.q.scale
        scales = tuple(s if s <= limit else float(np.float32(limit)) for s in weights.q.scales)
        slow = sum(a != b for a, b in zip(scales, weights.q.scales, strict=True))
        if not slow and bias is None:
            continue
        changed = [replace(weights, quantisation=replace(weights.q, scales=scales))]
        changed += [] if bias is None else [bias]
        if any(len(graph.consumers[tensor.name]) > 1 for tensor in changed):
            continue
        with contextlib.suppress(CannotChangeError):
            why = f"{slow} of {len(scales)} factors below 0.5" if slow else ""
            much = "" if bias is None else "biases within what the products reach"
            yield Proposal(
                op.name,
                " and ".join(text for text in (why, much) if text),
                Draft.of(graph).with_op(op, op, tensors=changed).settled(),
                "kernel_constraint=keras.constraints.MaxNorm(1), bias_regularizer='l2', "
                "then quantise again",
                "weight_decay in the optimiser, or torch.clamp_ of weight and bias after each "
                "step; then quantise again",
            )


def _in_reach(op: Op, graph: Graph) -> Tensor | None:
    """The bias cut to what the products can reach; None where it is, or where there is none."""
    bias = graph.input(op, BIAS) if has_bias(op) else None
    weights = graph.input(op, WEIGHTS)
    if bias is None or bias.constant is None or weights.constant is None:
        return None
    axis = 3 if isinstance(op.attributes, DepthwiseConv2D) else 0
    flat = np.moveaxis(weights.constant, axis, 0).reshape(weights.shape[axis], -1)
    most = _REACH * np.abs(flat.astype(np.int64)).sum(axis=1)
    values = bias.constant.reshape(-1).astype(np.int64)
    cut = np.clip(values, -most, most)
    if (cut == values).all():
        return None
    data = cut.astype(bias.dtype.numpy).reshape(bias.shape)
    return replace(bias, constant=data)


CHANGE = Change("weights and biases in the range of the quick rounding", _proposals)
