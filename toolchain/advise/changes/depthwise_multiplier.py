"""A depthwise convolution that makes several channels of each makes one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from toolchain.advise.change import Change, Proposal
from toolchain.advise.surgery import CannotChangeError, Draft
from toolchain.boards import Core
from toolchain.ir import Graph
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.weighted import INPUT, WEIGHTS


def _proposals(graph: Graph, _: Core) -> Iterator[Proposal]:
    for op in graph.ops:
        if not isinstance(op.attributes, DepthwiseConv2D):
            continue
        channels, made = graph.input(op, INPUT).shape[3], graph.output(op).shape[3]
        each = made // channels
        if each < 2 or not graph.input(op, WEIGHTS).is_constant:
            continue
        with contextlib.suppress(CannotChangeError):
            yield Proposal(
                op.name,
                f"depthwise multiplier {each} -> 1 ({made} -> {channels} channels)",
                Draft.of(graph).with_op(op, replace(op)).settled({op.name: channels}),
                "DepthwiseConv2D(..., depth_multiplier=1)",
                f"nn.Conv2d({channels}, {channels}, ..., groups={channels}); in_channels of its "
                "readers too",
            )


CHANGE = Change("a depthwise convolution with one channel for each", _proposals)
