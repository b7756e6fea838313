"""Identity graph rewriting (SERENITY, MLSys 2020, 3.3): avoid storing concatenations whole.

Channel-wise partition, concat + conv2d: W * [x1 .. xk] = W1 * x1 + .. + Wk * xk. Each part is a
`partial_conv2d` that adds to int32 sums, in the order in which the graph computes the operands.
`requantise_sums` rounds once, so every byte is the same as before.

Kernel-wise partition, concat + depthwise_conv2d: channels are independent, so each operand is
convolved with its own share of the filters and the concatenation follows. That is exact as well. If
a conv2d follows, the new concatenation may be partitioned in turn.

Neither always helps, because int32 sums are four times as large as their int8 outputs.
`lowest_peak` therefore takes a rewrite only where the planner's own measure falls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ir.names import GraphNames
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.axes import resolve_axis
from toolchain.ops.convolution.common import weight_zero_point
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.convolution.partial_conv2d import PartialConv2D
from toolchain.ops.convolution.reductions import convolution_ending
from toolchain.ops.movement.concat import Concat
from toolchain.ops.operator import operator_of
from toolchain.ops.weighted import BIAS, INPUT, WEIGHTS, constant_of
from toolchain.passes._rewrite import live_ops

_CHANNELS = 3


@dataclass(frozen=True)
class _Part:
    """An operand of the concatenation: its channels are [begin, end) of the whole."""

    tensor: Tensor
    begin: int
    end: int


def sites(graph: Graph) -> tuple[str, ...]:
    """Outputs of the concatenations whose readers can all be partitioned."""
    return tuple(
        op.outputs[0]
        for op in graph.ops
        if isinstance(op.attributes, Concat) and _is_site(op, graph)
    )


def _is_site(op: Op, graph: Graph) -> bool:
    whole = graph.output(op)
    readers = graph.consumers[whole.name]
    if len(op.inputs) < 2 or len(whole.shape) != 4 or whole.dtype is not DType.INT8:
        return False
    assert isinstance(op.attributes, Concat)
    if resolve_axis(op.attributes.axis, 4) != _CHANNELS or whole.name in graph.outputs:
        return False
    if not readers or any(graph.tensors[name].is_constant for name in op.inputs):
        return False
    return all(_is_divisible(graph.ops[reader], whole, graph) for reader in readers)


def _is_divisible(op: Op, whole: Tensor, graph: Graph) -> bool:
    """An ungrouped or depthwise convolution of the whole, with TFLite's rounding."""
    attributes = op.attributes
    if not isinstance(attributes, Conv2D | DepthwiseConv2D) or op.inputs[INPUT] != whole.name:
        return False
    if attributes.rounding is not Rounding.TFLITE or op.inputs.count(whole.name) != 1:
        return False
    weights = graph.input(op, WEIGHTS)
    if not all(graph.tensors[name].is_constant for name in op.inputs[WEIGHTS:] if name):
        return False
    if weight_zero_point(weights) != 0:
        return False
    return isinstance(attributes, DepthwiseConv2D) or weights.shape[3] == whole.shape[3]


def partition(graph: Graph, whole: str) -> Graph:
    """Partition every reader of the concatenation that writes `whole`, one of `sites`."""
    concat = graph.ops[graph.producers[whole]]
    inputs = [graph.tensors[name] for name in concat.inputs]
    bounds = [0, *accumulate(tensor.shape[_CHANNELS] for tensor in inputs)]
    parts = [_Part(t, a, b) for t, (a, b) in zip(inputs, pairwise(bounds), strict=True)]
    readers = set(graph.consumers[whole])
    names = GraphNames.of(graph)
    tensors: list[Tensor] = list(graph.tensors.values())
    ops: list[Op] = []
    for index, op in enumerate(graph.ops):
        if index not in readers:
            ops.append(op)
            continue
        divide = _channel_wise if isinstance(op.attributes, Conv2D) else _kernel_wise
        new_ops, new_tensors = divide(op, graph, parts, names)
        ops += new_ops
        tensors += new_tensors
    return graph.with_ops(live_ops(ops, graph.kept), tensors)


def _channel_wise(
    op: Op, graph: Graph, parts: Sequence[_Part], names: GraphNames
) -> tuple[list[Op], list[Tensor]]:
    attributes = op.attributes
    assert isinstance(attributes, Conv2D)
    weights, y = graph.input(op, WEIGHTS), graph.output(op)
    kernels = constant_of(weights)
    bias = op.inputs[BIAS] if len(op.inputs) > BIAS else ""
    ordered = sorted(parts, key=lambda part: graph.producers.get(part.tensor.name, -1))
    ops: list[Op] = []
    tensors: list[Tensor] = []
    sums = ""
    for index, part in enumerate(ordered):
        share = Tensor(
            names.tensors.fresh(f"{y.name}/weights{index}"),
            (*weights.shape[:3], part.end - part.begin),
            weights.dtype,
            weights.quantisation,
            kernels[..., part.begin : part.end].copy(),
        )
        total = Tensor(names.tensors.fresh(f"{y.name}/sums{index}"), y.shape, DType.INT32)
        tensors += [share, total]
        ops.append(
            Op(
                "partial_conv2d",
                names.ops.fresh(f"{op.name}/part{index}"),
                (part.tensor.name, share.name, "" if index else bias, sums),
                (total.name,),
                PartialConv2D(attributes.stride, attributes.dilation, attributes.padding),
            )
        )
        sums = total.name
    ending = convolution_ending(operator_of(op, graph), attributes.activation, attributes.rounding)
    ops.append(Op("requantise_sums", op.name, (sums,), (y.name,), ending))
    return ops, tensors


def _kernel_wise(
    op: Op, graph: Graph, parts: Sequence[_Part], names: GraphNames
) -> tuple[list[Op], list[Tensor]]:
    weights, y = graph.input(op, WEIGHTS), graph.output(op)
    kernels = constant_of(weights)
    times = weights.shape[_CHANNELS] // graph.input(op, INPUT).shape[_CHANNELS]
    bias = graph.input(op, BIAS) if len(op.inputs) > BIAS and op.inputs[BIAS] else None
    ops: list[Op] = []
    tensors: list[Tensor] = []
    for index, part in enumerate(parts):
        begin, end = part.begin * times, part.end * times
        share = Tensor(
            names.tensors.fresh(f"{y.name}/weights{index}"),
            (*weights.shape[:3], end - begin),
            weights.dtype,
            _share(weights.q, begin, end),
            kernels[..., begin:end].copy(),
        )
        made, shape = names.tensors.fresh(f"{y.name}/part{index}"), (*y.shape[:3], end - begin)
        out = Tensor(made, shape, y.dtype, y.quantisation)
        tensors += [share, out]
        inputs = [part.tensor.name, share.name]
        if bias is not None:
            part_bias = Tensor(
                names.tensors.fresh(f"{y.name}/bias{index}"),
                (end - begin,),
                bias.dtype,
                bias.quantisation and _share(bias.quantisation, begin, end),
                constant_of(bias).reshape(-1)[begin:end].copy(),
            )
            tensors.append(part_bias)
            inputs.append(part_bias.name)
        called = names.ops.fresh(f"{op.name}/part{index}")
        ops.append(replace(op, name=called, inputs=tuple(inputs), outputs=(out.name,)))
    joined = tuple(o.outputs[0] for o in ops)
    ops.append(Op("concat", op.name, joined, (y.name,), Concat(_CHANNELS)))
    return ops, tensors


def _share(q: Quantisation, begin: int, end: int) -> Quantisation:
    """The quantisation of some of the channels."""
    if not q.per_channel:
        return q
    axis = q.axis if end - begin > 1 else None
    return Quantisation(q.scales[begin:end], q.zero_points[begin:end], axis)


def lowest_peak(graph: Graph, peak_bytes: Callable[[Graph], int]) -> Graph:
    """Take the rewrites that lower `peak_bytes`, the one that lowers it most first.

    A concatenation that a kernel-wise partition moved is tried together with that partition.
    """
    if not sites(graph):
        return graph
    least = peak_bytes(graph)
    while True:
        best: tuple[int, Graph] | None = None
        for whole in sites(graph):
            candidate = graph
            pending = [whole]
            while pending:
                before = set(sites(candidate))
                candidate = partition(candidate, pending.pop())
                peak = peak_bytes(candidate)
                if peak < least and (best is None or peak < best[0]):
                    best = (peak, candidate)
                pending += [name for name in sites(candidate) if name not in before]
        if best is None:
            return graph
        least, graph = best
