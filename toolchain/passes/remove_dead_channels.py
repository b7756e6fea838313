"""Channels that cannot change an output are removed.

Pruned networks keep channels whose weights are all zero. The output of such a channel is a
constant: its requantised bias. The pass follows constants through the graph (a depthwise
convolution, a ReLU or a pool of a constant channel is constant again), and folds them into the bias
of the convolution or fully connected operator that reads them. A channel that nobody reads any more
is not computed.

Everything is exact. A constant folds only where the reader adds the same number at every position:
without padding, or where the constant equals the zero point, which is what padding holds. Whether
the output of another kind of operator is constant is not derived but seen: its reference is run on
the constants.

Channels are kept in groups of `GROUP`, since the kernels compute four at a time. Example: of 64
channels, 22 are needed; 24 stay.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import DType, Graph, Op, Quantisation, RemovedChannels, Tensor
from toolchain.ir.names import GraphNames, Names
from toolchain.ops import spec_of
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.interpret import evaluate
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.spec import Array, Part, Reach
from toolchain.ops.weighted import BIAS, INPUT, WEIGHTS, has_bias
from toolchain.ops.window import UNPADDED
from toolchain.passes._pass import Prepared

GROUP = 4
"""Kernels sum over and compute four channels at a time."""
_LARGEST_BIAS = 1 << 30
Mask = NDArray[np.bool_]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class RemoveDeadChannels:
    """Remove channels that cannot change an output."""

    def run(self, prepared: Prepared) -> Prepared:
        graph = prepared.graph
        known = _constants(graph)
        kept = _kept(graph, known)
        if all(mask.all() for mask in kept.values()):
            return prepared
        smaller = _Rewrite(graph, known, kept, GraphNames.of(graph).tensors).graph()
        return replace(prepared, graph=smaller, removed=_difference(graph, smaller, kept))


@dataclass(frozen=True)
class _Known:
    """The channels of a tensor that hold one value at every position, and that value."""

    constant: Mask
    values: Integers

    @staticmethod
    def nothing(channels: int) -> _Known:
        return _Known(np.zeros(channels, bool), np.zeros(channels, np.int64))


def _channels(tensor: Tensor) -> int:
    return tensor.shape[-1] if tensor.shape else 1


def _sums_channels(op: Op, graph: Graph) -> bool:
    """Whether it is a product with constant int8 weights that sums over all input channels."""
    if not isinstance(op.attributes, Conv2D | FullyConnected) or len(op.inputs) <= WEIGHTS:
        return False
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    bias = graph.input(op, BIAS) if has_bias(op) else None
    return (
        x.dtype is DType.INT8
        and weights.is_constant
        and (bias is None or (bias.is_constant and bias.dtype is DType.INT32))
        and weights.shape[-1] == _channels(x)
        and len(set(weights.q.zero_points)) == 1
    )


def _paired_channels(op: Op, graph: Graph) -> tuple[int | None, ...] | None:
    """The axis of the channels in each operand of an operator whose output channel c reads only
    channel c; None for an operand that is read whole.

    None if the operator is not like that, or if a block of channels needs attributes of its own.
    """
    if len(op.outputs) != 1:
        return None
    y = graph.output(op)
    last = len(y.shape) - 1
    if isinstance(op.attributes, Reshape):
        x = graph.input(op, 0)
        same = bool(x.shape) and bool(y.shape) and _channels(x) == _channels(y)
        return (len(x.shape) - 1,) if same else None
    for axis in spec_of(op.kind).axes(op, graph):
        if axis.axis == last and y.shape[last] > 1:
            alike = {axis.of_block(op, Part(1, begin=i)) for i in (0, 1)} == {op.attributes}
            plain = all(reach is None or reach == Reach(reach.axis) for reach in axis.reaches)
            return tuple(r.axis if r else None for r in axis.reaches) if alike and plain else None
    return None


def _moving(op: Op, graph: Graph, axes: Sequence[int | None]) -> bool:
    """Whether channels run along the last axis of every operand that is not constant."""
    operands = graph.input_tensors(op)
    return all(
        x is None or x.is_constant or (axis is not None and axis == len(x.shape) - 1)
        for x, axis in zip(operands, axes, strict=True)
    )


def _channelwise(op: Op, graph: Graph) -> tuple[int | None, ...] | None:
    """As `_paired_channels`, for operators through which channels can be followed and removed."""
    axes = _paired_channels(op, graph)
    if axes is None or not _moving(op, graph, axes):
        return None
    stateless = not set(op.outputs) & {state.output for state in graph.states}
    return axes if stateless and graph.output(op).dtype is DType.INT8 else None


def _joins_channels(op: Op, graph: Graph) -> bool:
    if not isinstance(op.attributes, Concat):
        return False
    last = len(graph.output(op).shape) - 1
    return op.attributes.axis in (last, -1) and graph.output(op).dtype is DType.INT8


def _constants(graph: Graph) -> dict[str, _Known]:
    """Constant channels of every tensor that an operator computes."""
    known = {name: _Known.nothing(_channels(tensor)) for name, tensor in graph.tensors.items()}
    for op in graph.ops:
        if _sums_channels(op, graph):
            known[op.outputs[0]] = _constant_sums(op, graph, known[op.inputs[INPUT]])
        elif _joins_channels(op, graph):
            parts = [known[name] for name in op.inputs]
            known[op.outputs[0]] = _Known(
                np.concatenate([part.constant for part in parts]),
                np.concatenate([part.values for part in parts]),
            )
        elif (axes := _channelwise(op, graph)) is not None:
            known[op.outputs[0]] = _constant_results(op, graph, axes, known)
    return known


def _zero_weights(op: Op, graph: Graph) -> Mask:
    """For each pair of output and input channel, whether all weights between them stand for 0."""
    weights = graph.input(op, WEIGHTS)
    assert weights.constant is not None
    flat = weights.constant.reshape(weights.shape[0], -1, weights.shape[-1])
    return np.array((flat == weights.q.zero_point).all(axis=1), bool)


def _foldable(op: Op, graph: Graph, known: _Known) -> Mask:
    """The input channels that add the same to every sum."""
    attributes = op.attributes
    padded = isinstance(attributes, Convolution) and attributes.padding != UNPADDED
    zero = np.array(known.values == graph.input(op, INPUT).q.zero_point, bool)
    return known.constant & zero if padded else known.constant


def _added(op: Op, graph: Graph, known: _Known, channels: Mask) -> Integers:
    """The number that the constant `channels` add to each output channel's sum."""
    weights, zero = graph.input(op, WEIGHTS), graph.input(op, INPUT).q.zero_point
    assert weights.constant is not None
    if not channels.any():
        return np.zeros(weights.shape[0], np.int64)
    flat = weights.constant.reshape(weights.shape[0], -1, weights.shape[-1]).astype(np.int64)
    taps = (flat - weights.q.zero_point).sum(axis=1)
    result: Integers = taps @ np.where(channels, known.values - zero, 0)
    return result


def _constant_sums(op: Op, graph: Graph, known: _Known) -> _Known:
    """Output channels whose weights all multiply constants. Their values are those of the reference
    on an image of one window, with the constants in their channels and the zero point elsewhere.
    """
    silent = _zero_weights(op, graph) | _foldable(op, graph, known)[None, :]
    constant = np.array(silent.all(axis=1), bool)
    if not constant.any():
        return _Known.nothing(len(constant))
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    pixel = np.where(known.constant, known.values, x.q.zero_point).astype(np.int8)
    if isinstance(op.attributes, Conv2D):
        _, height, width, _ = weights.shape
        attributes = replace(op.attributes, stride=(1, 1), dilation=(1, 1), padding=UNPADDED)
        small = replace(op, attributes=attributes)
        window: tuple[int, ...] = (1, height, width, len(pixel))
        result_shape: tuple[int, ...] = (1, 1, 1, len(constant))
    else:
        assert isinstance(op.attributes, FullyConnected)
        small = replace(op, attributes=replace(op.attributes, keep_dims=False))
        window, result_shape = (1, len(pixel)), (1, len(constant))
    shapes = {op.inputs[INPUT]: window, op.outputs[0]: result_shape}
    tensors = [
        replace(tensor, shape=shapes.get(name, tensor.shape))
        for name, tensor in graph.tensors.items()
    ]
    one = graph.with_ops([small], tensors)
    given = [np.broadcast_to(pixel, window), *_stored(op, graph)[1:]]
    (result,) = evaluate(small, one, given)
    return _Known(constant, result.reshape(-1).astype(np.int64))


def _stored(op: Op, graph: Graph) -> list[Array]:
    """The constants among an operator's inputs; an empty array for any other."""
    empty = np.zeros(0)
    return [
        empty if x is None or x.constant is None else x.constant for x in graph.input_tensors(op)
    ]


def _constant_results(
    op: Op, graph: Graph, axes: Sequence[int | None], known: Mapping[str, _Known]
) -> _Known:
    """Channels that the reference makes of constants alone, and that are constant themselves."""
    given, candidates = _stored(op, graph), np.ones(_channels(graph.output(op)), bool)
    silent = _silent_filters(op, graph)
    for index, (name, axis) in enumerate(zip(op.inputs, axes, strict=True)):
        x = graph.tensors[name] if name else None
        if x is not None and not x.is_constant:
            candidates &= known[name].constant | silent
            given[index] = np.broadcast_to(known[name].values.astype(np.int8), x.shape)
        elif x is not None and axis is None and x.elements > 1:
            return _Known.nothing(len(candidates))
    if not candidates.any():
        return _Known.nothing(len(candidates))
    (result,) = evaluate(op, graph, given)
    rows = result.reshape(-1, len(candidates)).astype(np.int64)
    return _Known(candidates & (rows == rows[0]).all(axis=0), rows[0])


def _silent_filters(op: Op, graph: Graph) -> Mask:
    """The channels of a depthwise convolution whose weights all stand for 0."""
    if not isinstance(op.attributes, DepthwiseConv2D):
        return np.zeros(_channels(graph.output(op)), bool)
    weights = graph.input(op, WEIGHTS)
    return np.array((_stored(op, graph)[WEIGHTS] == weights.q.zero_point).all(axis=(0, 1, 2)), bool)


def _kept(graph: Graph, known: Mapping[str, _Known]) -> dict[str, Mask]:
    """The channels of each tensor that stay: the smallest sets that are closed under what the
    operators demand of one another, in whole groups.
    """
    kept = {name: np.zeros(_channels(tensor), bool) for name, tensor in graph.tensors.items()}
    for name in (*graph.sources, *graph.kept):
        kept[name][:] = True
    changed = True
    while changed:
        while changed:
            before = sum(int(mask.sum()) for mask in kept.values())
            for op in reversed(graph.ops):
                _demand(op, graph, known, kept)
            changed = before != sum(int(mask.sum()) for mask in kept.values())
        for op in graph.ops:
            for name in op.outputs:
                changed |= _fill_group(kept[name])
    return kept


def _fill_group(mask: Mask) -> bool:
    """Keep further channels, up to a whole group; True if there are any."""
    wanted = max(-(-int(mask.sum()) // GROUP) * GROUP, min(GROUP, len(mask)))
    lacking = min(wanted, len(mask)) - int(mask.sum())
    mask[np.flatnonzero(~mask)[:lacking]] = True
    return lacking > 0


def _demand(op: Op, graph: Graph, known: Mapping[str, _Known], kept: Mapping[str, Mask]) -> None:
    """Add the channels that the operator needs of its inputs, and those that its outputs then must
    have."""
    if _sums_channels(op, graph):
        source = op.inputs[INPUT]
        kept[source][:] |= _needed(op, graph, known[source], kept[op.outputs[0]])
        return
    if _joins_channels(op, graph):
        done, whole = 0, kept[op.outputs[0]]
        for name in op.inputs:
            run = whole[done : done + len(kept[name])]
            run |= kept[name]
            kept[name][:] |= run
            done += len(run)
        return
    names = op.present_inputs()
    axes = _channelwise(op, graph)
    if axes is None:
        for name in (*names, *op.outputs):
            kept[name][:] = True
        return
    moving = [name for name in names if not graph.tensors[name].is_constant]
    together = kept[op.outputs[0]].copy()
    for name in moving:
        together |= kept[name]
    for name in (*moving, *op.outputs):
        kept[name][:] = together


def _needed(op: Op, graph: Graph, known: _Known, outputs: Mask) -> Mask:
    """The input channels that a product must read to compute its kept `outputs`."""
    read: Mask = np.logical_not(_zero_weights(op, graph)[outputs].all(axis=0))
    foldable = _foldable(op, graph, known)
    bias = _stored(op, graph)[BIAS] if has_bias(op) else np.zeros(1, np.int64)
    total = bias.reshape(-1).astype(np.int64) + _added(op, graph, known, foldable)
    return read & ~foldable if np.abs(total).max() < _LARGEST_BIAS else read


@dataclass(frozen=True)
class _Rewrite:
    """The graph without the channels that are not `kept`. `names`: of its tensors."""

    whole: Graph
    known: Mapping[str, _Known]
    kept: Mapping[str, Mask]
    names: Names

    def graph(self) -> Graph:
        tensors = {
            name: tensor if tensor.is_constant else self._narrowed(tensor)
            for name, tensor in self.whole.tensors.items()
        }
        ops = []
        for op in self.whole.ops:
            smaller, constants = self._operator(op)
            ops.append(smaller)
            tensors |= {tensor.name: tensor for tensor in constants}
        return self.whole.with_ops(ops, tensors.values())

    def _narrowed(self, tensor: Tensor) -> Tensor:
        count = int(self.kept[tensor.name].sum())
        if count == _channels(tensor):
            return tensor
        return replace(tensor, shape=(*tensor.shape[:-1], count))

    def _changed(self, op: Op) -> bool:
        names = (*op.present_inputs(), *op.outputs)
        moving = (name for name in names if not self.whole.tensors[name].is_constant)
        return not all(self.kept[name].all() for name in moving)

    def _operator(self, op: Op) -> tuple[Op, tuple[Tensor, ...]]:
        graph = self.whole
        if not self._changed(op) or _joins_channels(op, graph):
            return op, ()
        if _sums_channels(op, graph):
            return self._product(op)
        if isinstance(op.attributes, Reshape):
            shape = (*op.attributes.shape[:-1], int(self.kept[op.outputs[0]].sum()))
            return replace(op, attributes=Reshape(shape)), ()
        axes = _channelwise(op, graph)
        assert axes is not None
        mask = self.kept[op.outputs[0]]
        operands = tuple(zip(op.inputs, axes, strict=True))
        shortened = {
            (name, axis): _taken(graph.tensors[name], self._copy_name(op, name), axis, mask)
            for name, axis in dict.fromkeys(operands)
            if name and graph.tensors[name].is_constant and axis is not None
        }
        inputs = tuple(shortened[one].name if one in shortened else one[0] for one in operands)
        return replace(op, inputs=inputs), tuple(shortened.values())

    def _product(self, op: Op) -> tuple[Op, tuple[Tensor, ...]]:
        graph, source = self.whole, op.inputs[INPUT]
        inputs, outputs = self.kept[source], self.kept[op.outputs[0]]
        weights = graph.input(op, WEIGHTS)
        narrow = _taken(weights, self._copy_name(op, weights.name), 0, outputs)
        narrow = _taken(narrow, narrow.name, len(narrow.shape) - 1, inputs)
        known = self.known[source]
        added = _added(op, graph, known, _foldable(op, graph, known) & ~inputs)
        if not has_bias(op) and not added.any():
            return replace(op, inputs=(source, narrow.name)), (narrow,)
        bias = graph.input(op, BIAS) if has_bias(op) else _no_bias(op, graph)
        assert bias.constant is not None
        total = (bias.constant.reshape(-1).astype(np.int64) + added).astype(np.int32)
        whole = replace(bias, shape=total.shape, constant=total)
        short = _taken(whole, self._copy_name(op, bias.name), 0, outputs)
        return replace(op, inputs=(source, narrow.name, short.name)), (narrow, short)

    def _copy_name(self, op: Op, name: str) -> str:
        """A name for the operator's own copy of a constant, which others may share."""
        return self.names.fresh(f"{name} of {op.name}")


def _no_bias(op: Op, graph: Graph) -> Tensor:
    """Zeros, quantised as the bias of a product is."""
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    scales = tuple(float(np.float32(x.q.scale * scale)) for scale in weights.q.scales)
    axis = 0 if len(scales) > 1 else None
    quantisation = Quantisation(scales, (0,) * len(scales), axis)
    zeros = np.zeros(weights.shape[0], np.int32)
    return Tensor("bias", zeros.shape, DType.INT32, quantisation, zeros)


def _taken(tensor: Tensor, name: str, axis: int, mask: Mask) -> Tensor:
    """The constant with only those indices of `axis`, and their scales."""
    assert tensor.constant is not None
    data = np.ascontiguousarray(np.compress(mask, tensor.constant, axis))
    data.setflags(write=False)
    quantisation = tensor.quantisation
    if quantisation is not None and quantisation.per_channel and quantisation.axis == axis:
        scales = tuple(itertools.compress(quantisation.scales, mask))
        zeros = tuple(itertools.compress(quantisation.zero_points, mask))
        quantisation = Quantisation(scales, zeros, axis if len(scales) > 1 else None)
    return replace(tensor, name=name, shape=data.shape, constant=data, quantisation=quantisation)


def _difference(whole: Graph, smaller: Graph, kept: Mapping[str, Mask]) -> RemovedChannels:
    def macs(graph: Graph) -> int:
        return sum(spec_of(op.kind).macs(op, graph) for op in graph.ops)

    def weight_bytes(graph: Graph) -> int:
        return sum(tensor.size_bytes for tensor in graph.tensors.values() if tensor.is_constant)

    computed: Iterable[str] = (name for op in whole.ops for name in op.outputs)
    return RemovedChannels(
        channels=sum(int((~kept[name]).sum()) for name in computed),
        macs=macs(whole) - macs(smaller),
        weight_bytes=weight_bytes(whole) - weight_bytes(smaller),
    )
