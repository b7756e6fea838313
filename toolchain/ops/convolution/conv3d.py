"""3-D convolution in float32. TFLite CONV_3D, `reference_ops::Conv3D`.

Volumes are NDHWC, filters [planes, rows, columns, input channels, output channels].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.arithmetic.activation import Activation, read_activation
from toolchain.ops.convolution.common import check_operands
from toolchain.ops.extents import Extents, whole, window_reach
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import (
    Call,
    Input,
    Kernel,
    Output,
    Struct,
    Touched,
    numbers,
)
from toolchain.ops.readers.float32 import range_of, with_bias_and_activation
from toolchain.ops.spec import (
    Array,
    Axis,
    Part,
    Reach,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)
from toolchain.ops.terms import along
from toolchain.ops.weighted import (
    BIAS,
    INPUT,
    WEIGHTS,
    has_bias,
    present_inputs,
)

Triple = tuple[int, int, int]

_OPTIONS = ("strideD", "strideH", "strideW")
_DILATIONS = ("dilationDFactor", "dilationHFactor", "dilationWFactor")


@dataclass(frozen=True)
class Conv3D(Attributes):
    """Triples are by plane, row and column, in voxels: `before` and `after` are the padding."""

    stride: Triple = (1, 1, 1)
    dilation: Triple = (1, 1, 1)
    before: Triple = (0, 0, 0)
    after: Triple = (0, 0, 0)
    activation: Activation = Activation.NONE


def _attributes(op: Op) -> Conv3D:
    assert isinstance(op.attributes, Conv3D)
    return op.attributes


def _extent(taps: int, dilation: int) -> int:
    return (taps - 1) * dilation + 1


def _same(size: int, taps: int, stride: int, dilation: int) -> tuple[int, int]:
    """The padding that TFLite calls SAME, along one axis: an odd voxel follows the last one."""
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + _extent(taps, dilation) - size, 0)
    return total // 2, total - total // 2


def _three(values: Sequence[int]) -> Triple:
    planes, rows, columns = (int(value) for value in values)
    return planes, rows, columns


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, weights, own = graph.input(op, INPUT), graph.input(op, WEIGHTS), _attributes(op)
    if len(x.shape) != 5 or len(weights.shape) != 5:
        raise ValueError(f"needs NDHWC input and DHWIO weights, got {x.shape} and {weights.shape}")
    *taps, depth, channels = weights.shape
    if depth != x.shape[4]:
        raise ValueError(f"filters of depth {depth} for {x.shape[4]} channels")
    if has_bias(op) and graph.input(op, BIAS).elements != channels:
        raise ValueError(f"{graph.input(op, BIAS).elements} bias values for {channels} channels")
    if min(*taps, *own.stride, *own.dilation) < 1 or min(*own.before, *own.after) < 0:
        raise ValueError(f"stride, dilation, kernel or padding out of range: {own}, {taps}")
    sizes = []
    for axis in range(3):
        extent = _extent(taps[axis], own.dilation[axis])
        rest = x.shape[1 + axis] + own.before[axis] + own.after[axis] - extent
        if rest < 0:
            raise ValueError(f"a window of {extent} does not fit the padded axis {1 + axis}")
        sizes.append(rest // own.stride[axis] + 1)
    return (TensorType((x.shape[0], *sizes, channels), x.dtype),)


def _taps(op: Op, graph: Graph, volume: Array) -> Iterator[tuple[NDArray[np.float32], Triple]]:
    """What each tap sees of the volume, 0 outside of it, in the order of the taps."""
    own, y = _attributes(op), graph.output(op)
    pads = ((0, 0), *zip(own.before, own.after, strict=True), (0, 0))
    wide = np.pad(volume.astype(np.float32), pads)
    for tap in np.ndindex(*graph.input(op, WEIGHTS).shape[:3]):
        seen = [
            slice(place * dilation, place * dilation + (size - 1) * stride + 1, stride)
            for place, dilation, size, stride in zip(
                tap, own.dilation, y.shape[1:4], own.stride, strict=True
            )
        ]
        yield wide[(slice(None), *seen)], _three(tap)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    filters = inputs[WEIGHTS].astype(np.float32)
    sums = np.zeros(graph.output(op).shape, np.float32)
    for seen, tap in _taps(op, graph, inputs[INPUT]):
        for channel in range(filters.shape[3]):
            sums = sums + seen[..., channel, None] * filters[tap][channel]
    return (with_bias_and_activation(sums, op, inputs, _attributes(op).activation),)


def _macs(op: Op, graph: Graph) -> int:
    weights = graph.input(op, WEIGHTS)
    return graph.output(op).elements * weights.elements // weights.shape[4]


def _axes(op: Op, graph: Graph) -> tuple[Axis, ...]:
    """Planes, rows, columns, and output channels: each has filters of its own."""
    own, taps = _attributes(op), graph.input(op, WEIGHTS).shape
    rest = (None,) * (len(op.inputs) - 1)

    def along_axis(axis: int) -> Axis:
        def block(part: Part) -> Attributes:
            before, after = list(own.before), list(own.after)
            before[axis], after[axis] = part.before, part.after
            return replace(own, before=_three(before), after=_three(after))

        extent = _extent(taps[axis], own.dilation[axis])
        reach = Reach(1 + axis, own.stride[axis], extent, own.before[axis])
        return Axis(1 + axis, (reach, *rest), block)

    filters = (None, Reach(4), Reach(0))[: len(op.inputs)]
    return (*(along_axis(axis) for axis in range(3)), Axis(4, filters, lambda part: own))


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    own = _attributes(op)
    low, high = range_of(own.activation)
    window = Struct(
        "thimble_volume_f32",
        {
            "batches": x.shape[0],
            "input": numbers(x.shape[1:4]),
            "input_c": x.shape[4],
            "output": numbers(y.shape[1:4]),
            "output_c": y.shape[4],
            "kernel": numbers(weights.shape[:3]),
            "stride": numbers(own.stride),
            "dilation": numbers(own.dilation),
            "pad": numbers(own.before),
            "min": low,
            "max": high,
        },
    )
    call = Call(
        "thimble_convolve_3d_f32",
        {
            "window": window,
            "input": Input(INPUT),
            "filters": Input(WEIGHTS),
            "bias": Input(BIAS),
            "output": Output(0),
        },
    )
    return Kernel((call,), _extents, find_terms=lambda: _terms(op, graph))


def _terms(op: Op, graph: Graph) -> dict[str, float]:
    """Turns of the kernel's loops: four channels of a voxel are summed at once."""
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    own, inside = _attributes(op), 1
    for axis in range(3):
        inside *= along(
            x.shape[1 + axis],
            y.shape[1 + axis],
            weights.shape[axis],
            own.stride[axis],
            own.dilation[axis],
            own.before[axis],
            0,
        ).taps
    taps = inside * x.shape[0]
    fours, rest = divmod(y.shape[4], 4)
    return {
        "call": 1.0,
        "block": y.elements // y.shape[4] * (fours + (rest > 0)),
        "tap of 4": taps * fours,
        "word of 4": taps * fours * x.shape[4],
        "tap": taps * rest,
        "word": taps * rest * x.shape[4],
        "output": y.elements,
    }


def _extents(touched: Touched) -> Extents:
    call = touched.call
    window = {
        name: call.row(f"window.{name}")
        for name in ("input", "output", "kernel", "stride", "dilation", "pad")
    }
    batches, depth, channels = (
        call[f"window.{name}"] for name in ("batches", "input_c", "output_c")
    )

    def volume(sizes: Sequence[int]) -> int:
        planes, rows, columns = sizes
        return planes * rows * columns

    read = {
        INPUT: whole(batches * volume(window["input"]) * depth, 4),
        WEIGHTS: whole(volume(window["kernel"]) * depth * channels, 4),
    }
    if touched.has(BIAS):
        read[BIAS] = whole(channels, 4)
    steps = zip(
        *(window[name] for name in ("output", "stride", "kernel", "dilation", "pad")), strict=True
    )
    return Extents(
        read,
        {0: whole(batches * volume(window["output"]) * channels, 4)},
        largest=window_reach(steps),
    )


def _read(node: TfliteNode) -> ReadOp:
    weights, x, options = check_operands(node, 5), node.inputs[INPUT], node.options
    assert x is not None
    if len(x.shape) != 5:
        raise node.unsupported(f"input of shape {x.shape}")
    stride = _three([getattr(options, name) for name in _OPTIONS])
    dilation = _three([getattr(options, name) for name in _DILATIONS])
    taps = weights.shape[:3]
    if min(*stride, *dilation, *taps) < 1:
        raise node.unsupported(f"stride {stride}, dilation {dilation}, kernel {taps}")
    before = after = [0, 0, 0]
    if options.padding == "SAME":
        pads = map(_same, x.shape[1:4], taps, stride, dilation)
        before, after = map(list, zip(*pads, strict=True))
    attributes = Conv3D(stride, dilation, _three(before), _three(after), read_activation(node))
    return ReadOp(attributes, present_inputs(node))


def _write(op: Op, graph: Graph) -> WrittenOp:
    own, x, taps = _attributes(op), graph.input(op, INPUT), graph.input(op, WEIGHTS).shape[:3]
    same = tuple(map(_same, x.shape[1:4], taps, own.stride, own.dilation))
    pads = tuple(zip(own.before, own.after, strict=True))
    if any(map(any, pads)) and pads != same:
        raise ValueError(f"{pads} is neither SAME nor VALID padding")
    options = {
        "padding": "SAME" if any(map(any, pads)) else "VALID",
        "fusedActivationFunction": own.activation,
        **dict(zip(_OPTIONS, own.stride, strict=True)),
        **dict(zip(_DILATIONS, own.dilation, strict=True)),
    }
    return WrittenOp("CONV_3D", "Conv3DOptions", options)


def _sample(rng: np.random.Generator) -> Graph:
    def three(least: int, most: int) -> Triple:
        return _three([int(value) for value in rng.integers(least, most + 1, 3)])

    taps, stride = three(1, 3), three(1, 2)
    dilation = three(1, 2) if rng.random() < 0.5 else (1, 1, 1)
    sizes = tuple(_extent(taps[i], dilation[i]) + int(rng.integers(0, 4)) for i in range(3))
    before = after = (0, 0, 0)
    if rng.random() < 0.6:
        before, after = map(_three, zip(*map(_same, sizes, taps, stride, dilation), strict=True))
    outputs = [
        (sizes[i] + before[i] + after[i] - _extent(taps[i], dilation[i])) // stride[i] + 1
        for i in range(3)
    ]
    depth, channels, batches = (int(rng.integers(1, most)) for most in (7, 10, 3))
    weights = rng.normal(0, 0.3, (*taps, depth, channels)).astype(np.float32)
    bias = rng.normal(0, 3, channels).astype(np.float32)
    tensors = [
        Tensor("x", (batches, *sizes, depth), DType.FLOAT32),
        Tensor("weights", weights.shape, DType.FLOAT32, None, weights),
        Tensor("y", (batches, *outputs, channels), DType.FLOAT32),
        Tensor("bias", (channels,), DType.FLOAT32, None, bias),
    ]
    activation = list(Activation)[int(rng.integers(len(Activation)))]
    attributes = Conv3D(stride, dilation, before, after, activation)
    names = ("x", "weights", "bias")[: int(rng.integers(2, 4))]
    kept = [tensor for tensor in tensors if tensor.name in (*names, "y")]
    op = Op("conv3d", "conv", names, ("y",), attributes)
    return Graph.build("sample", kept, [op], ["x"], ["y"])


SPEC = OldForm(
    kind="conv3d",
    attributes=Conv3D,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("CONV_3D",), _read, _write),
    macs=_macs,
    axes=_axes,
    dtype=DType.FLOAT32,
    limits="float32, constant weights; any stride, dilation, padding",
)
