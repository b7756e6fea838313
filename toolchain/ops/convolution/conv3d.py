"""3-D convolution in float32. TFLite CONV_3D, `reference_ops::Conv3D`.

Volumes are NDHWC, filters [planes, rows, columns, input channels, output channels].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.convolution.common import check_bias, check_operands
from toolchain.ops.readers.float32 import range_of, with_bias_and_activation

Triple = tuple[int, int, int]

_FUNCTION = "thimble_convolve_3d_f32"
_OPTIONS = ("strideD", "strideH", "strideW")
_DILATIONS = ("dilationDFactor", "dilationHFactor", "dilationWFactor")


@dataclass(frozen=True)
class Conv3D(kit.Attributes):
    """Triples are by plane, row and column, in voxels: `before` and `after` are the padding."""

    stride: Triple = (1, 1, 1)
    dilation: Triple = (1, 1, 1)
    before: Triple = (0, 0, 0)
    after: Triple = (0, 0, 0)
    activation: kit.Activation = kit.Activation.NONE


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


def _infer(op: kit.Operator[Conv3D]) -> kit.TensorTypes:
    x, weights, attributes = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.attributes
    if len(x.shape) != 5 or len(weights.shape) != 5:
        raise ValueError(f"needs NDHWC input and DHWIO weights, got {x.shape} and {weights.shape}")
    *taps, depth, channels = weights.shape
    if depth != x.shape[4]:
        raise ValueError(f"filters of depth {depth} for {x.shape[4]} channels")
    check_bias(op, channels)
    if (
        min(*taps, *attributes.stride, *attributes.dilation) < 1
        or min(*attributes.before, *attributes.after) < 0
    ):
        raise ValueError(f"stride, dilation, kernel or padding out of range: {attributes}, {taps}")
    sizes = []
    for axis in range(3):
        extent = _extent(taps[axis], attributes.dilation[axis])
        rest = x.shape[1 + axis] + attributes.before[axis] + attributes.after[axis] - extent
        if rest < 0:
            raise ValueError(f"a window of {extent} does not fit the padded axis {1 + axis}")
        sizes.append(rest // attributes.stride[axis] + 1)
    return (kit.TensorType((x.shape[0], *sizes, channels), x.dtype),)


def _taps(
    op: kit.Operator[Conv3D], volume: kit.Array
) -> Iterator[tuple[NDArray[np.float32], Triple]]:
    """The values that each tap sees, 0 outside of the volume, in the order of the taps."""
    attributes, y = op.attributes, op.y
    pads = ((0, 0), *zip(attributes.before, attributes.after, strict=True), (0, 0))
    wide = np.pad(volume.astype(np.float32), pads)
    for tap in np.ndindex(*op.input(kit.WEIGHTS).shape[:3]):
        seen = [
            slice(place * dilation, place * dilation + (size - 1) * stride + 1, stride)
            for place, dilation, size, stride in zip(
                tap, attributes.dilation, y.shape[1:4], attributes.stride, strict=True
            )
        ]
        yield wide[(slice(None), *seen)], _three(tap)


def _reference(op: kit.Operator[Conv3D], inputs: kit.Inputs) -> kit.Arrays:
    filters = inputs[kit.WEIGHTS].astype(np.float32)
    sums = np.zeros(op.y.shape, np.float32)
    for seen, tap in _taps(op, inputs[kit.INPUT]):
        for channel in range(filters.shape[3]):
            sums = sums + seen[..., channel, None] * filters[tap][channel]
    return (with_bias_and_activation(sums, op, inputs, op.attributes.activation),)


def _macs(op: kit.AnyOperator) -> int:
    weights = op.input(kit.WEIGHTS)
    return op.y.elements * weights.elements // weights.shape[4]


def _axes(op: kit.Operator[Conv3D]) -> tuple[kit.Axis, ...]:
    """Planes, rows, columns, and output channels: each has filters of its own."""
    attributes, taps = op.attributes, op.input(kit.WEIGHTS).shape
    rest = (None,) * (len(op.inputs) - 1)

    def along_axis(axis: int) -> kit.Axis:
        def block(part: kit.Part) -> kit.Attributes:
            before, after = list(attributes.before), list(attributes.after)
            before[axis], after[axis] = part.before, part.after
            return replace(attributes, before=_three(before), after=_three(after))

        extent = _extent(taps[axis], attributes.dilation[axis])
        reach = kit.Reach(1 + axis, attributes.stride[axis], extent, attributes.before[axis])
        return kit.Axis(1 + axis, (reach, *rest), block)

    filters = (None, kit.Reach(4), kit.Reach(0))[: len(op.inputs)]
    return (*(along_axis(axis) for axis in range(3)), kit.Axis(4, filters, lambda part: attributes))


def _select(op: kit.Operator[Conv3D], core: kit.Core) -> kit.Kernel:
    x, weights, y = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    attributes = op.attributes
    low, high = range_of(attributes.activation)
    window = kit.Struct(
        "thimble_volume_f32",
        {
            "batches": x.shape[0],
            "input": kit.numbers(x.shape[1:4]),
            "input_c": x.shape[4],
            "output": kit.numbers(y.shape[1:4]),
            "output_c": y.shape[4],
            "kernel": kit.numbers(weights.shape[:3]),
            "stride": kit.numbers(attributes.stride),
            "dilation": kit.numbers(attributes.dilation),
            "pad": kit.numbers(attributes.before),
            "min": low,
            "max": high,
        },
    )
    call = kit.Call(
        _FUNCTION,
        {
            "window": window,
            "input": kit.Input(kit.INPUT),
            "filters": kit.Input(kit.WEIGHTS),
            "bias": kit.Input(kit.BIAS),
            "output": kit.Output(0),
        },
    )
    return kit.Kernel((call,), _extents, find_terms=lambda: _terms(op))


def _terms(op: kit.Operator[Conv3D]) -> dict[str, float]:
    """Turns of the kernel's loops: four channels of a voxel are summed at once."""
    x, weights, y = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    attributes, inside = op.attributes, 1
    for axis in range(3):
        inside *= kit.along(
            x.shape[1 + axis],
            y.shape[1 + axis],
            weights.shape[axis],
            attributes.stride[axis],
            attributes.dilation[axis],
            attributes.before[axis],
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


def _extents(touched: kit.Touched) -> kit.Extents:
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
        kit.INPUT: kit.whole(batches * volume(window["input"]) * depth, 4),
        kit.WEIGHTS: kit.whole(volume(window["kernel"]) * depth * channels, 4),
    }
    if touched.has(kit.BIAS):
        read[kit.BIAS] = kit.whole(channels, 4)
    steps = zip(
        *(window[name] for name in ("output", "stride", "kernel", "dilation", "pad")), strict=True
    )
    return kit.Extents(
        read,
        {0: kit.whole(batches * volume(window["output"]) * channels, 4)},
        largest=kit.window_reach(steps),
    )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    weights, x, options = check_operands(node, 5), node.inputs[kit.INPUT], node.options
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
    attributes = Conv3D(stride, dilation, _three(before), _three(after), kit.read_activation(node))
    return kit.ReadOp(attributes, kit.present_inputs(node))


def _write(op: kit.Operator[Conv3D]) -> kit.WrittenOp:
    attributes, x, taps = op.attributes, op.input(kit.INPUT), op.input(kit.WEIGHTS).shape[:3]
    same = tuple(map(_same, x.shape[1:4], taps, attributes.stride, attributes.dilation))
    pads = tuple(zip(attributes.before, attributes.after, strict=True))
    if any(map(any, pads)) and pads != same:
        raise ValueError(f"{pads} is neither SAME nor VALID padding")
    options = {
        "padding": "SAME" if any(map(any, pads)) else "VALID",
        "fusedActivationFunction": attributes.activation,
        **dict(zip(_OPTIONS, attributes.stride, strict=True)),
        **dict(zip(_DILATIONS, attributes.dilation, strict=True)),
    }
    return kit.WrittenOp("CONV_3D", "Conv3DOptions", options)


def _sample(rng: np.random.Generator) -> kit.Graph:
    def three(least: int, most: int) -> Triple:
        return _three([int(value) for value in rng.integers(least, most + 1, 3)])

    taps, stride = three(1, 3), three(1, 2)
    dilation = three(1, 2) if rng.random() < 0.5 else (1, 1, 1)
    sizes = tuple(_extent(taps[i], dilation[i]) + int(rng.integers(0, 4)) for i in range(3))
    before = after = (0, 0, 0)
    if rng.random() < 0.6:
        before, after = map(_three, zip(*map(_same, sizes, taps, stride, dilation), strict=True))
    depth, channels, batches = (int(rng.integers(1, most)) for most in (7, 10, 3))
    weights = rng.normal(0, 0.3, (*taps, depth, channels)).astype(np.float32)
    bias = rng.normal(0, 3, channels).astype(np.float32)
    x = kit.Tensor("x", (batches, *sizes, depth), kit.DType.FLOAT32)
    activation = list(kit.Activation)[int(rng.integers(len(kit.Activation)))]
    attributes = Conv3D(stride, dilation, before, after, activation)
    constants = [kit.constant_sample("weights", weights), kit.constant_sample("bias", bias)]
    kept = constants[: int(rng.integers(2, 4)) - 1]
    return kit.sample("conv3d", attributes, x, *kept, name="conv")


SPEC = kit.Form(
    kind="conv3d",
    attributes=Conv3D,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("CONV_3D",), _read, _write),
    macs=_macs,
    axes=_axes,
    dtype=kit.DType.FLOAT32,
    limits="float32, constant weights; any stride, dilation, padding",
)
