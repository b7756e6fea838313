"""Changes of a graph, whose shapes then follow through the whole net by the kinds' own shape rules.

Weights get the sizes that the new shapes ask for: they are cut, or repeated from the start, since a
changed network is trained anew and a plan depends on sizes. A change that a later operator cannot
follow (fixed positions, groups that come out uneven, other shapes of the network's outputs) raises
`CannotChangeError`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ir.graph import InvalidGraphError
from toolchain.ir.names import GraphNames
from toolchain.ops import spec_of
from toolchain.ops.check import check
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.pad import Pad
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.normalisation.softmax_s8 import Softmax
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.resize.common import Resize
from toolchain.ops.spec import Array, Part, Reach
from toolchain.ops.weighted import BIAS, INPUT, WEIGHTS, has_bias
from toolchain.ops.window import Padding, same_padding

Size = tuple[int, int]
_ANY_SHAPE = Reduce | Pad | Concat | Softmax
"""Attributes that mean the same for inputs of any shape."""


class CannotChangeError(Exception):
    """An operator cannot follow the change."""


@dataclass(frozen=True)
class Draft:
    """A graph that is being changed: operators in their order, and their tensors, whose shapes need
    not fit any more. `whole`: the graph before.
    """

    whole: Graph
    ops: tuple[Op, ...]
    tensors: Mapping[str, Tensor]

    @staticmethod
    def of(graph: Graph) -> Draft:
        return Draft(graph, graph.ops, graph.tensors)

    def with_op(self, op: Op, *instead: Op, tensors: Iterable[Tensor] = ()) -> Draft:
        """Other operators in place of one, with new or changed `tensors`."""
        ops = [new for old in self.ops for new in (instead if old.name == op.name else (old,))]
        table = {**self.tensors, **{tensor.name: tensor for tensor in tensors}}
        return replace(self, ops=tuple(ops), tensors=table)

    def without(self, op: Op, name: str) -> Draft:
        """No operator; whoever reads its output reads the tensor `name`.

        Raises CannotChangeError where the output is one of the graph's.
        """
        (output,) = op.outputs
        if output in self.whole.kept:
            raise CannotChangeError(f"{output} is an output of the model")
        ops = [
            replace(o, inputs=tuple(name if i == output else i for i in o.inputs))
            for o in self.ops
            if o.name != op.name
        ]
        return replace(self, ops=tuple(ops))

    def names(self) -> GraphNames:
        """Names of the graph before, and of what was added since."""
        names = GraphNames.of(self.whole)
        names.tensors.take(self.tensors)
        names.ops.take(op.name for op in self.ops)
        return names

    def settled(
        self,
        channels: Mapping[str, int] | None = None,
        sizes: Mapping[str, tuple[int, ...]] | None = None,
    ) -> Graph:
        """The graph with shapes that fit. `channels`: how many an operator makes, by its name, of
        those that `makes_channels`. `sizes`: shapes of inputs of the graph.

        Raises CannotChangeError.
        """
        try:
            return _Settling(self, dict(channels or {})).graph(dict(sizes or {}))
        except (ValueError, InvalidGraphError, UnsupportedError) as error:
            raise CannotChangeError(str(error)) from error


def makes_channels(op: Op, graph: Graph) -> bool:
    """Whether the operator's filters alone say how many channels it makes."""
    if len(op.inputs) <= WEIGHTS or not op.inputs[WEIGHTS]:
        return False
    weights = graph.input(op, WEIGHTS)
    if not weights.is_constant or (has_bias(op) and not graph.input(op, BIAS).is_constant):
        return False
    if isinstance(op.attributes, FullyConnected):
        return True
    return isinstance(op.attributes, Conv2D) and weights.shape[3] == graph.input(op, INPUT).shape[3]


def resized(tensor: Tensor, name: str, axis: int, size: int) -> Tensor:
    """The constant with another size of one axis, cut or repeated from its start, with scales."""
    assert tensor.constant is not None
    if tensor.shape[axis] == size:
        return replace(tensor, name=name)
    indices = np.arange(size) % tensor.shape[axis]
    data = np.ascontiguousarray(np.take(tensor.constant, indices, axis))
    data.setflags(write=False)
    q = tensor.quantisation
    if q is not None and q.per_channel and q.axis == axis:
        scales = tuple(q.scales[i] for i in indices)
        q = Quantisation(
            scales, tuple(q.zero_points[i] for i in indices), axis if size > 1 else None
        )
    return replace(tensor, name=name, shape=data.shape, constant=data, quantisation=q)


def filters(
    like: Tensor, name: str, shape: tuple[int, ...], channel_axis: int, seed: int = 0
) -> Tensor:
    """Random filters of the type and about the scale of others. `channel_axis`: of the channels
    that they make."""
    rng, q = np.random.default_rng(seed), like.quantisation
    data: Array
    if like.dtype is DType.FLOAT32:
        data = rng.normal(0, 0.1, shape).astype(np.float32)
    else:
        data = rng.integers(-127, 128, shape).astype(like.dtype.numpy)
    data.setflags(write=False)
    if q is not None:
        scales = tuple(float(s) for s in np.resize(np.array(q.scales), shape[channel_axis]))
        per_channel = q.per_channel and len(scales) > 1
        scales = scales if per_channel else scales[:1]
        q = Quantisation(scales, (0,) * len(scales), channel_axis if per_channel else None)
    return Tensor(name, shape, like.dtype, q, data)


def bias_like(x: Tensor, weights: Tensor, name: str, channels: int) -> Tensor:
    """A bias of zeros for a product."""
    if weights.dtype is DType.FLOAT32:
        return Tensor(name, (channels,), DType.FLOAT32, None, np.zeros(channels, np.float32))
    dtype = DType.INT64 if x.dtype is DType.INT16 else DType.INT32
    scales = tuple(float(np.float32(x.q.scale) * np.float32(s)) for s in weights.q.scales)
    q = Quantisation(scales, (0,) * len(scales), 0 if len(scales) > 1 else None)
    return Tensor(name, (channels,), dtype, q, np.zeros(channels, dtype.numpy))


@dataclass
class _Settling:
    draft: Draft
    channels: dict[str, int]

    def graph(self, sizes: Mapping[str, tuple[int, ...]]) -> Graph:
        whole = self.draft.whole
        self.old = Graph.build(
            whole.name,
            _used(self.draft, whole),
            self.draft.ops,
            whole.inputs,
            whole.outputs,
            whole.states,
        )
        self.names = GraphNames.of(self.old).tensors
        self.tensors = {
            name: replace(
                self.old.tensors[name], shape=sizes.get(name, self.old.tensors[name].shape)
            )
            for name in whole.sources
        }
        ops = []
        for op in self.draft.ops:
            for name in op.present_inputs():
                constant = self.old.tensors[name]
                if constant.is_constant:
                    self.tensors.setdefault(name, constant)
            ops.append(self._follow(op))
        for name in whole.kept:
            self.tensors.setdefault(name, self.old.tensors[name])
        for name in (*whole.outputs, *(name for s in whole.states for name in (s.input, s.output))):
            if self.tensors[name].shape != whole.tensors[name].shape:
                raise CannotChangeError(f"{name} of the model would have another shape")
        used = {name for op in ops for name in (*op.present_inputs(), *op.outputs)}
        used |= {*whole.sources, *whole.kept}
        kept = [tensor for name, tensor in self.tensors.items() if name in used]
        return check(Graph.build(whole.name, kept, ops, whole.inputs, whole.outputs, whole.states))

    def _follow(self, op: Op) -> Op:
        """The operator for the new shapes of its inputs; adds its outputs."""
        changed = self._changed(op) or op.name in self.channels
        fitted = self._fitted(op) if changed else op
        part = Graph.build(
            "part",
            {
                name: self.tensors.get(name, self.old.tensors.get(name))
                for name in (*fitted.present_inputs(), *fitted.outputs)
            }.values(),  # type: ignore[arg-type]
            [fitted],
            [],
            [],
        )
        for name, made in zip(
            fitted.outputs, spec_of(fitted.kind).infer(fitted, part), strict=True
        ):
            self.tensors[name] = replace(self.old.tensors[name], shape=made.shape)
        return fitted

    def _changed(self, op: Op) -> bool:
        return any(self._shape(n) != self.old.tensors[n].shape for n in op.present_inputs())

    def _shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name].shape

    def _fitted(self, op: Op) -> Op:
        if op.attributes.nested:
            raise CannotChangeError(f"{op.name} holds graphs")
        attributes: Any = op.attributes
        if isinstance(attributes, Convolution):
            return self._convolution(op, attributes)
        if isinstance(attributes, FullyConnected):
            return self._fully_connected(op)
        if isinstance(attributes, Pool2D):
            kernel = attributes.filter_height, attributes.filter_width
            stride = attributes.stride_height, attributes.stride_width
            padding = self._padding(op, attributes.padding, kernel, stride, (1, 1))
            return replace(op, attributes=replace(attributes, padding=padding))
        if isinstance(attributes, Resize):
            return self._resize(op, attributes)
        if isinstance(attributes, Reshape):
            return self._reshape(op, attributes)
        if isinstance(attributes, _ANY_SHAPE):
            return op
        return self._pointwise(op)

    def _convolution(self, op: Op, attributes: Convolution) -> Op:
        x, weights = self.old.input(op, INPUT), self.old.input(op, WEIGHTS)
        depth = self._shape(op.inputs[INPUT])[3]
        kernel = weights.shape[1], weights.shape[2]
        padding = self._padding(
            op, attributes.padding, kernel, attributes.stride, attributes.dilation
        )
        op = replace(op, attributes=replace(attributes, padding=padding))
        if isinstance(attributes, DepthwiseConv2D):
            each = weights.shape[3] // x.shape[3]
            made = self.channels.get(op.name, each * depth)
            return self._weighted(op, {3: made}, made)
        made = self.channels.get(op.name, weights.shape[0])
        groups = x.shape[3] // weights.shape[3]
        if depth % groups or made % groups:
            raise CannotChangeError(f"{op.name}: {depth} channels make no {groups} groups")
        return self._weighted(op, {0: made, 3: depth // groups}, made)

    def _fully_connected(self, op: Op) -> Op:
        x, weights = self.old.input(op, INPUT), self.old.input(op, WEIGHTS)
        before, now = x.elements, math.prod(self._shape(op.inputs[INPUT]))
        rows, depth = before // weights.shape[-1], weights.shape[-1]
        if x.shape and x.shape[-1] == depth:
            depth = self._shape(op.inputs[INPUT])[-1]
        elif now % rows == 0:
            depth = now // rows
        made = self.channels.get(op.name, weights.shape[0])
        return self._weighted(op, {0: made, len(weights.shape) - 1: depth}, made)

    def _weighted(self, op: Op, sizes: Mapping[int, int], channels: int) -> Op:
        """The operator with weights and bias of its own, in these sizes of their axes."""
        weights = self.old.input(op, WEIGHTS)
        if not weights.is_constant:
            raise CannotChangeError(f"{op.name} computes its weights")
        narrow = weights
        for axis, size in sizes.items():
            narrow = resized(narrow, narrow.name, axis, size)
        inputs = [op.inputs[INPUT], self._own(op, narrow)]
        if has_bias(op):
            bias = self.old.input(op, BIAS)
            if bias.constant is None:
                raise CannotChangeError(f"{op.name} computes its bias")
            flat = replace(bias, shape=(bias.elements,), constant=bias.constant.reshape(-1))
            inputs.append(self._own(op, resized(flat, bias.name, 0, channels)))
        return replace(op, inputs=tuple(inputs))

    def _own(self, op: Op, constant: Tensor) -> str:
        """The name of the operator's own copy of a constant, which is added."""
        name = self.names.fresh(f"{constant.name} of {op.name}")
        self.tensors[name] = replace(constant, name=name)
        return name

    def _padding(
        self, op: Op, padding: Padding, kernel: Size, stride: Size, dilation: Size
    ) -> Padding:
        """SAME padding for the new size where it was SAME for the old one; else as it is."""
        old, new = self.old.input(op, INPUT).shape, self._shape(op.inputs[INPUT])
        if padding == same_padding((old[1], old[2]), kernel, stride, dilation):
            return same_padding((new[1], new[2]), kernel, stride, dilation)
        return padding

    def _resize(self, op: Op, attributes: Resize) -> Op:
        old, new = self.old.input(op, INPUT).shape, self._shape(op.inputs[INPUT])
        sizes = []
        for before, now, wanted in (
            (old[1], new[1], attributes.height),
            (old[2], new[2], attributes.width),
        ):
            if wanted * now % before:
                raise CannotChangeError(
                    f"{op.name}: {wanted} pixels of {before} are no size of {now}"
                )
            sizes.append(wanted * now // before)
        return replace(op, attributes=replace(attributes, height=sizes[0], width=sizes[1]))

    def _reshape(self, op: Op, attributes: Reshape) -> Op:
        """The shape in which the dimensions that the input had in the same place follow it, or the
        only one that is not 1, as of a flattened image."""
        old, new = self.old.input(op, INPUT).shape, self._shape(op.inputs[INPUT])
        shape, elements = list(attributes.shape), math.prod(new)
        open_axes = [i for i, size in enumerate(shape) if size != 1]
        if len(open_axes) == 1:
            shape[open_axes[0]] = elements
        elif len(old) == len(new):
            shape = _followed(old, new, attributes.shape)
        if math.prod(shape) != elements:
            raise CannotChangeError(f"{op.name} makes {attributes.shape} of {old}")
        return replace(op, attributes=Reshape(tuple(shape)))

    def _pointwise(self, op: Op) -> Op:
        """An operator whose output index along each changed axis reads that index alone. Constants
        along such an axis are resized."""
        axes = spec_of(op.kind).axes(op, self.old)
        inputs = list(op.inputs)
        along: dict[int, dict[int, int]] = {}
        for place, name in enumerate(op.inputs):
            old = self.old.tensors[name] if name else None
            if old is None or old.is_constant:
                continue
            for axis, (before, now) in enumerate(zip(old.shape, self._shape(name), strict=True)):
                if before == now:
                    continue
                found = next(
                    (a for a in axes if a.reaches[place] == Reach(axis) and _plain(a, op)), None
                )
                if found is None:
                    raise CannotChangeError(f"{op.name} does not follow axis {axis} of {name}")
                for other, reach in enumerate(found.reaches):
                    constant = self.old.tensors[op.inputs[other]] if op.inputs[other] else None
                    if reach is not None and constant is not None and constant.is_constant:
                        along.setdefault(other, {})[reach.axis] = now
        for place, sizes in along.items():
            constant = self.old.tensors[op.inputs[place]]
            for axis, size in sizes.items():
                constant = resized(constant, constant.name, axis, size)
            inputs[place] = self._own(op, constant)
        return replace(op, inputs=tuple(inputs))


def _plain(axis: Any, op: Op) -> bool:
    """Whether blocks along the axis have the operator's own attributes, wherever they begin."""
    return {axis.of_block(op, Part(1, begin=i)) for i in (0, 1)} == {op.attributes}


def _followed(old: Sequence[int], new: Sequence[int], shape: Sequence[int]) -> list[int]:
    """A reshape's shape with the dimensions that equal the input's from its start or its end."""
    made = list(shape)
    for count in range(min(len(old), len(shape))):
        if old[-1 - count] != shape[-1 - count]:
            break
        made[-1 - count] = new[-1 - count]
    for count in range(min(len(old), len(shape))):
        if old[count] != shape[count]:
            break
        made[count] = new[count]
    lost = [i for i, size in enumerate(shape) if made[i] == size and size != 1]
    if math.prod(made) != math.prod(new) and len(lost) == 1:
        rest = math.prod(made) // made[lost[0]]
        if math.prod(new) % rest == 0:
            made[lost[0]] = math.prod(new) // rest
    return made


def _used(draft: Draft, whole: Graph) -> list[Tensor]:
    names = {name for op in draft.ops for name in (*op.present_inputs(), *op.outputs)}
    names |= {*whole.inputs, *whole.sources, *whole.kept}
    return [tensor for name, tensor in draft.tensors.items() if name in names]


def only_reader(graph: Graph, name: str) -> Op | None:
    """The operator that alone reads a tensor; None where there are others, or it is an output."""
    readers = graph.consumers[name]
    return graph.ops[readers[0]] if len(readers) == 1 and name not in graph.kept else None
