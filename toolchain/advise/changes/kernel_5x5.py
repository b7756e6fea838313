"""A 5x5 convolution becomes two of 3x3, which see as much of the image."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from toolchain.advise.change import Change, Proposal
from toolchain.advise.surgery import CannotChangeError, Draft, bias_like, filters
from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.weighted import INPUT, WEIGHTS
from toolchain.ops.window import UNPADDED, Padding, same_padding

_LARGE, _SMALL = (5, 5), (3, 3)


def _proposals(graph: Graph, _: Core) -> Iterator[Proposal]:
    for op in graph.ops:
        attributes = op.attributes
        if not isinstance(attributes, Conv2D | DepthwiseConv2D) or attributes.dilation != (1, 1):
            continue
        weights = graph.input(op, WEIGHTS)
        if weights.shape[1:3] != _LARGE or not weights.is_constant:
            continue
        with contextlib.suppress(CannotChangeError):
            kind = "DepthwiseConv2D" if isinstance(attributes, DepthwiseConv2D) else "Conv2D"
            channels = graph.output(op).shape[3]
            groups = f", groups={channels}" if kind == "DepthwiseConv2D" else ""
            filters_of = "" if kind == "DepthwiseConv2D" else f"{channels}, "
            stride = attributes.stride[0]
            yield Proposal(
                op.name,
                f"5x5 -> two 3x3 ({kind}), the first with the stride",
                _two(op, attributes, graph),
                f"{kind}({filters_of}3, strides={stride}, padding='same', activation='relu') and "
                f"{kind}({filters_of}3, padding='same')",
                f"nn.Conv2d(c, {channels}, 3, stride={stride}, padding=1{groups}), nn.ReLU(), "
                f"nn.Conv2d({channels}, {channels}, 3, padding=1{groups})",
            )


def _two(op: Op, attributes: Convolution, graph: Graph) -> Graph:
    """The network with two small convolutions in place of a large one."""
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    draft = Draft.of(graph)
    names, channels = draft.names(), y.shape[3]
    depthwise = isinstance(attributes, DepthwiseConv2D)
    padded = attributes.padding != UNPADDED
    first_shape = (1, *_SMALL, channels) if depthwise else (channels, *_SMALL, weights.shape[3])
    second_depth = weights.shape[3] // (1 if depthwise else x.shape[3]) * channels
    second_shape = (1, *_SMALL, channels) if depthwise else (channels, *_SMALL, second_depth)
    if not depthwise and weights.shape[3] != x.shape[3]:
        second_shape = (channels, *_SMALL, channels // (x.shape[3] // weights.shape[3]))
    made = 3 if depthwise else 0
    one = filters(weights, names.tensors.fresh(f"{weights.name} first"), first_shape, made)
    two = filters(weights, names.tensors.fresh(f"{weights.name} second"), second_shape, made, 1)

    def padding(size: tuple[int, int], stride: tuple[int, int]) -> Padding:
        return same_padding(size, _SMALL, stride) if padded else UNPADDED

    size = x.shape[1], x.shape[2]
    first = replace(attributes, padding=padding(size, attributes.stride))
    between_size = tuple(-(-n // s) for n, s in zip(size, attributes.stride, strict=True))
    if not padded:
        between_size = tuple((n - 3) // s + 1 for n, s in zip(size, attributes.stride, strict=True))
    between = replace(
        y,
        name=names.tensors.fresh(f"{y.name} between"),
        shape=(y.shape[0], *between_size, channels),
    )
    last = replace(
        attributes,
        stride=(1, 1),
        padding=padding((between_size[0], between_size[1]), (1, 1)),
    )
    bias_one = bias_like(x, one, names.tensors.fresh(f"{one.name} bias"), channels)
    bias_two = bias_like(between, two, names.tensors.fresh(f"{two.name} bias"), channels)
    ops = (
        Op(op.kind, op.name, (x.name, one.name, bias_one.name), (between.name,), first),
        Op(
            op.kind,
            names.ops.fresh(f"{op.name} second"),
            (between.name, two.name, bias_two.name),
            op.outputs,
            last,
        ),
    )
    return draft.with_op(op, *ops, tensors=(one, two, between, bias_one, bias_two)).settled()


CHANGE = Change("a 5x5 convolution as two of 3x3", _proposals)
