"""A convolution becomes a depthwise one and a pointwise one, as in MobileNet."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from toolchain.advise.change import Change, Proposal
from toolchain.advise.surgery import (
    CannotChangeError,
    Draft,
    bias_like,
    filters,
    makes_channels,
)
from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.weighted import INPUT, WEIGHTS
from toolchain.ops.window import UNPADDED

_FEWEST_CHANNELS = 4
"""With fewer in its input, a convolution is the stem of a network, and has little to save."""


def _proposals(graph: Graph, _: Core) -> Iterator[Proposal]:
    for op in graph.ops:
        attributes = op.attributes
        if not isinstance(attributes, Conv2D) or not makes_channels(op, graph):
            continue
        height, width, depth = graph.input(op, WEIGHTS).shape[1:]
        if (height, width) == (1, 1) or depth < _FEWEST_CHANNELS:
            continue
        with contextlib.suppress(CannotChangeError):
            channels, stride = graph.output(op).shape[3], attributes.stride[0]
            yield Proposal(
                op.name,
                f"{height}x{width} convolution -> depthwise {height}x{width} and pointwise 1x1",
                _two(op, attributes, graph),
                f"SeparableConv2D({channels}, ({height}, {width}), strides={stride}, ...)",
                f"nn.Conv2d({depth}, {depth}, ({height}, {width}), stride={stride}, "
                f"groups={depth}), nn.Conv2d({depth}, {channels}, 1)",
            )


def _two(op: Op, attributes: Conv2D, graph: Graph) -> Graph:
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    draft = Draft.of(graph)
    names, (channels, height, width, depth) = draft.names(), weights.shape
    deep = filters(
        weights, names.tensors.fresh(f"{weights.name} deep"), (1, height, width, depth), 3
    )
    wide = filters(
        weights, names.tensors.fresh(f"{weights.name} wide"), (channels, 1, 1, depth), 0, 1
    )
    between = replace(y, name=names.tensors.fresh(f"{y.name} between"), shape=(*y.shape[:3], depth))
    deep_bias = bias_like(x, deep, names.tensors.fresh(f"{deep.name} bias"), depth)
    wide_bias = bias_like(between, wide, names.tensors.fresh(f"{wide.name} bias"), channels)
    depthwise = DepthwiseConv2D(
        attributes.stride,
        attributes.dilation,
        attributes.padding,
        attributes.activation,
        attributes.rounding,
    )
    pointwise = replace(attributes, stride=(1, 1), dilation=(1, 1), padding=UNPADDED)
    ops = (
        Op(
            "depthwise_conv2d",
            names.ops.fresh(f"{op.name} depthwise"),
            (x.name, deep.name, deep_bias.name),
            (between.name,),
            depthwise,
        ),
        Op(op.kind, op.name, (between.name, wide.name, wide_bias.name), op.outputs, pointwise),
    )
    return draft.with_op(op, *ops, tensors=(deep, wide, between, deep_bias, wide_bias)).settled()


CHANGE = Change("a convolution as a depthwise and a pointwise one", _proposals)
