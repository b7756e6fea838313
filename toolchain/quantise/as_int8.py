"""A float graph as an int8 one of the same shape, without data: for sizes and time alone.

Weights and scales are made up. Operators that a converter would fold are folded: a product or a sum
with a constant for each channel, after a convolution or a fully connected layer (a batch
normalisation).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import spec_of
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.passes import Prepared
from toolchain.passes.merge_relus import MergeRelus
from toolchain.quantise.tflite_rules import PRESCRIBED

_CLAMPED = Quantisation((float(np.float32(6 / 255)),), (-128,))
"""Quantisation of a ReLU's output: int8 spans the values that the ReLU lets through, as converters
have it."""
_ACTIVATION = Quantisation((2 * _CLAMPED.scale,), (-3,))
"""Twice as coarse: sums of both take the quick kernel, as nearly all sums of real scales do."""
_SPREAD = 73.3
"""Standard deviation of integers spread evenly over [-127, 127]."""
_REMEMBERED = 1024
_CHANNELS = MappingProxyType(
    {"conv2d": 0, "depthwise_conv2d": 3, "fully_connected": 0, "transpose_conv2d": 0}
)
"""The axis of a kind's weights, its second input, that has the output channels."""
_FIXED = MappingProxyType(
    {kind: Quantisation((scale,), (zero,)) for kind, (scale, zero) in PRESCRIBED.items()}
)
_AFFINE = ("mul", "add", "sub")


def as_int8(graph: Graph) -> Graph:
    """The int8 form of `graph`, which is ready to compile (`passes.prepare`); tensors that are no
    float stay as they are.

    A kind that has no int8 kernel is refused when the graph is lowered.
    """
    folded = _folded(graph)
    tensors = {name: _converted(tensor, _ACTIVATION) for name, tensor in folded.tensors.items()}
    view = Graph(folded.name, tensors, folded.ops, folded.inputs, folded.outputs, folded.states)
    ops = []
    for op in folded.ops:
        if op.kind in _CHANNELS:
            op = _with_weights(op, folded, tensors)
        ops.append(_rounded(op))
        _set_output(op, folded, tensors, view)
    made = replace(view, tensors=MappingProxyType(tensors), ops=tuple(ops))
    return MergeRelus().run(Prepared(made)).graph


def _converted(tensor: Tensor, q: Quantisation) -> Tensor:
    if tensor.dtype is not DType.FLOAT32:
        return tensor
    data = np.broadcast_to(np.int8(1), tensor.shape) if tensor.is_constant else None
    return replace(tensor, dtype=DType.INT8, quantisation=q, constant=data)


def _with_weights(op: Op, graph: Graph, tensors: dict[str, Tensor]) -> Op:
    """Weights with a scale for each channel, and a bias: every converter gives one."""
    given = graph.tensors[op.inputs[1]]
    if given.dtype is not DType.FLOAT32 or not given.is_constant:
        return op
    weights = _weights(given.shape, _CHANNELS[op.kind])
    bias = _bias(weights, tensors[op.inputs[0]].q.scale)
    tensors[weights.name], tensors[bias.name] = weights, bias
    return replace(op, inputs=(op.inputs[0], weights.name, bias.name))


@lru_cache(maxsize=_REMEMBERED)
def _weights(shape: tuple[int, ...], axis: int) -> Tensor:
    """Layers of one shape have the same, so that what follows from them is computed once. Sums of
    their products keep the spread of the inputs.
    """
    rng = np.random.default_rng([*shape, axis])
    channels = shape[axis]
    taps = math.prod(shape) // channels
    stretch = rng.uniform(0.7, 1.1, channels) / (_SPREAD * math.sqrt(taps))
    scales = tuple(float(scale) for scale in stretch.astype(np.float32))
    q = Quantisation(scales, (0,) * channels, axis if channels > 1 else None)
    data = rng.integers(-127, 128, shape, np.int8)
    return Tensor(f"int8 weights {shape} along {axis}", shape, DType.INT8, q, data)


@lru_cache(maxsize=_REMEMBERED)
def _bias(weights: Tensor, scale: float) -> Tensor:
    scales = np.float32(scale) * np.array(weights.q.scales, np.float32)
    channels = len(scales)
    over = tuple(float(each) for each in scales)
    q = Quantisation(over, (0,) * channels, 0 if channels > 1 else None)
    data = np.full(channels, 100, np.int32)
    return Tensor(f"bias of {weights.name} by {scale}", (channels,), DType.INT32, q, data)


def _set_output(op: Op, graph: Graph, tensors: dict[str, Tensor], view: Graph) -> None:
    """Outputs as the kind wants them quantised: as the input, as TFLite prescribes, or freely."""
    source = next((tensors[name] for name in op.present_inputs()), None)
    for name in op.outputs:
        readers = [graph.ops[index] for index in graph.consumers[name]]
        if graph.tensors[name].dtype is not DType.FLOAT32:
            continue
        if op.kind in _FIXED:
            tensors[name] = replace(tensors[name], quantisation=_FIXED[op.kind])
        elif source is not None and spec_of(op.kind).form(op, view).quantised.alike:
            tensors[name] = replace(tensors[name], quantisation=source.quantisation)
        elif not _is_plain(op) or "relu" in (op.kind, *(one.kind for one in readers)):
            tensors[name] = replace(tensors[name], quantisation=_CLAMPED)


def _rounded(op: Op) -> Op:
    """The attributes with TFLite's rounding: ONNX's has kernels of its own."""
    if getattr(op.attributes, "rounding", Rounding.TFLITE) is Rounding.TFLITE:
        return op
    return replace(op, attributes=replace(cast(Any, op.attributes), rounding=Rounding.TFLITE))


def _folded(graph: Graph) -> Graph:
    """The graph without products and sums of a constant for each channel behind a layer with
    weights."""
    renamed: dict[str, str] = {}
    ops: list[Op] = []
    layers: dict[str, int] = {}
    """The layers that nothing follows yet, by output."""
    for op in graph.ops:
        op = replace(op, inputs=tuple(renamed.get(name, name) for name in op.inputs))
        layer = _folds(op, graph, layers)
        if layer is not None:
            place = layers.pop(layer)
            clamp = getattr(op.attributes, "activation", Activation.NONE)
            attributes = replace(cast(Any, ops[place].attributes), activation=clamp)
            ops[place] = replace(ops[place], outputs=op.outputs, attributes=attributes)
            if _is_plain(op):
                layers[op.outputs[0]] = place
            continue
        if op.kind in _CHANNELS and _is_plain(op):
            layers[op.outputs[0]] = len(ops)
        ops.append(op)
    used = {name for op in ops for name in (*op.present_inputs(), *op.outputs)}
    kept = {n: t for n, t in graph.tensors.items() if n in used or n in graph.inputs}
    return replace(graph, tensors=MappingProxyType(kept), ops=tuple(ops))


def _folds(op: Op, graph: Graph, layers: Mapping[str, int]) -> str | None:
    """The output of the layer that `op` goes into; None for what stays."""
    if op.kind not in _AFFINE or len(op.inputs) != 2:
        return None
    for name, other in (op.inputs, op.inputs[::-1]):
        constant = graph.tensors[other]
        alone = name in layers and len(graph.consumers[name]) == 1 and name not in graph.outputs
        channels = graph.tensors[name].shape[-1:]
        if alone and constant.is_constant and constant.elements in (1, *channels):
            return name
    return None


def _is_plain(op: Op) -> bool:
    return getattr(op.attributes, "activation", Activation.NONE) is Activation.NONE
