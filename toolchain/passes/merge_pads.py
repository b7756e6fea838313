"""Padding in front of a convolution or a max pool becomes the window's own padding.

The padded copy of the image is then not stored. A convolution's own padding is real 0.0, which is
the stored zero point, so a pad with that value merges exactly. A max pool ignores padded elements,
so a pad with the smallest value of the type merges exactly, unless some window would contain only
padding. The smallest float32 is the smallest finite one: no maximum is below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops import spec_of
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.movement.pad import Pad
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.window import Padding
from toolchain.passes._pass import Prepared
from toolchain.passes._rewrite import live_ops

_ROWS, _COLUMNS = 1, 2


@dataclass(frozen=True)
class MergePads:
    """Merge a pad into the convolutions or max pools that read it."""

    def run(self, prepared: Prepared) -> Prepared:
        graph = prepared.graph
        merged: dict[int, Op] = {}
        for pad in graph.ops:
            if isinstance(pad.attributes, Pad) and pad.outputs[0] not in graph.outputs:
                merged |= _merge(pad, pad.attributes, graph)
        if not merged:
            return prepared
        ops = [merged.get(index, op) for index, op in enumerate(graph.ops)]
        return prepared.with_graph(graph.with_ops(live_ops(ops, graph.kept)))


def _merge(pad: Op, attributes: Pad, graph: Graph) -> Mapping[int, Op]:
    """All readers of a pad with its padding merged into them; none unless every one of them can."""
    result: dict[int, Op] = {}
    image = (_ROWS, _COLUMNS)
    sides = dict(enumerate(attributes.paddings))
    if graph.input(pad, 0).quantisation != graph.output(pad).quantisation:
        return {}
    if len(sides) != 4 or any(sides[axis] != (0, 0) for axis in sides if axis not in image):
        return {}
    for index in graph.consumers[pad.outputs[0]]:
        op = graph.ops[index]
        reads_once = op.inputs.count(pad.outputs[0]) == 1 and op.inputs[0] == pad.outputs[0]
        wider = _widened(op, sides, _stored_value(pad, attributes, graph), graph)
        if not reads_once or wider is None:
            return {}
        result[index] = replace(wider, inputs=(pad.inputs[0], *op.inputs[1:]))
        if not _keeps_shape(result[index], graph):
            return {}
    return result


def _stored_value(pad: Op, attributes: Pad, graph: Graph) -> float:
    return _zero(graph.output(pad)) if attributes.value is None else attributes.value


def _zero(tensor: Tensor) -> int:
    """The stored value of real 0."""
    return 0 if tensor.dtype is DType.FLOAT32 else tensor.q.zero_point


def _widened(op: Op, sides: Mapping[int, tuple[int, int]], value: float, graph: Graph) -> Op | None:
    """The operator with the padding added to its own; None where that changes its meaning."""
    (top, bottom), (left, right) = sides[_ROWS], sides[_COLUMNS]
    attributes = op.attributes
    x = graph.input(op, 0)
    if isinstance(attributes, Conv2D | DepthwiseConv2D):
        neutral: float = _zero(x)
    elif isinstance(attributes, Pool2D) and op.kind == "max_pool2d":
        neutral = _smallest(x)
    else:
        return None
    if value != neutral:
        return None
    old = attributes.padding
    padding = Padding(old.top + top, old.left + left, old.bottom + bottom, old.right + right)
    return replace(op, attributes=replace(attributes, padding=padding))


def _smallest(tensor: Tensor) -> float:
    """The smallest value that a maximum can have."""
    if tensor.dtype is DType.FLOAT32:
        return float(np.finfo(np.float32).min)
    return int(np.iinfo(tensor.dtype.value).min)


def _keeps_shape(op: Op, graph: Graph) -> bool:
    try:
        (derived,) = spec_of(op.kind).infer(op, graph)
    except ValueError:
        return False
    return derived.shape == graph.output(op).shape
