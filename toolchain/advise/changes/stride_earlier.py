"""An image is made smaller one layer earlier: the stride of a convolution or pool moves to the
convolution before it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from toolchain.advise.change import Change, Proposal
from toolchain.advise.surgery import CannotChangeError, Draft, only_reader
from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.weighted import INPUT, WEIGHTS
from toolchain.ops.window import UNPADDED, same_padding

_MOST_BETWEEN = 4
"""Operators without a stride between the two."""
_LARGEST = 3
"""Beyond such a stride a pool ends the network rather than narrows its image."""


def _proposals(graph: Graph, _: Core) -> Iterator[Proposal]:
    for op in graph.ops:
        attributes = op.attributes
        if not isinstance(attributes, Convolution) or attributes.stride != (1, 1):
            continue
        later = _stride_behind(op, graph)
        if later is None or attributes.dilation != (1, 1):
            continue
        with contextlib.suppress(CannotChangeError):
            yield _moved(op, attributes, later, graph)


def _stride_behind(op: Op, graph: Graph) -> Op | None:
    """The operator with a stride that reads what comes of `op`, where nothing else reads it."""
    for _ in range(_MOST_BETWEEN):
        (output,) = op.outputs
        reader = only_reader(graph, output)
        if reader is None or len(reader.outputs) != 1:
            return None
        if _stride(reader) != (1, 1):
            ends = graph.output(reader).shape[1:3] == (1, 1)
            return None if ends or max(_stride(reader)) > _LARGEST else reader
        op = reader
    return None


def _stride(op: Op) -> tuple[int, int]:
    attributes = op.attributes
    if isinstance(attributes, Pool2D):
        return attributes.stride_height, attributes.stride_width
    return attributes.stride if isinstance(attributes, Convolution) else (1, 1)


def _moved(op: Op, attributes: Convolution, later: Op, graph: Graph) -> Proposal:
    stride, x = _stride(later), graph.input(op, INPUT)
    padding = attributes.padding
    if padding != UNPADDED:
        weights = graph.input(op, WEIGHTS)
        kernel = weights.shape[1], weights.shape[2]
        padding = same_padding((x.shape[1], x.shape[2]), kernel, stride)
    draft = Draft.of(graph).with_op(
        op, replace(op, attributes=replace(attributes, stride=stride, padding=padding))
    )
    written = f"strides={stride[0]}"
    keras_layer = "DepthwiseConv2D" if isinstance(attributes, DepthwiseConv2D) else "Conv2D"
    if isinstance(later.attributes, Pool2D):
        draft = draft.without(later, later.inputs[0])
        what = f"stride {stride[0]} here, and no pool {later.name}"
        keras = f"{keras_layer}(..., {written}) and no pooling behind it"
        pytorch = f"nn.Conv2d(..., stride={stride[0]}) and no pooling behind it"
    else:
        assert isinstance(later.attributes, Convolution)
        image, weights = graph.input(later, INPUT), graph.input(later, WEIGHTS)
        kernel = weights.shape[1], weights.shape[2]
        kept = later.attributes.padding
        if kept != UNPADDED:
            kept = same_padding((image.shape[1], image.shape[2]), kernel, (1, 1))
        flat = replace(later.attributes, stride=(1, 1), padding=kept)
        draft = draft.with_op(later, replace(later, attributes=flat))
        what = f"the stride {stride[0]} of {later.name} here"
        keras = f"{keras_layer}(..., {written}), and strides=1 in {later.name}"
        pytorch = f"nn.Conv2d(..., stride={stride[0]}), and stride=1 in {later.name}"
    return Proposal(op.name, what, draft.settled(), keras, pytorch)


CHANGE = Change("the stride of a later layer", _proposals)
