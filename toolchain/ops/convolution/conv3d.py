"""3-D convolution in float32. TFLite CONV_3D, `reference_ops::Conv3D`; it has no quantised form.

Volumes are [batch, depth, height, width, channels], filters [depth, height, width, inputs,
outputs].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.arithmetic.activation import Activation, read_activation
from toolchain.ops.convolution.common import BIAS, INPUT, WEIGHTS, has_bias, present_inputs
from toolchain.ops.extents import Extents, whole, window_reach
from toolchain.ops.kernel import Argument, Call, Input, Kernel, Output, Struct, Touched
from toolchain.ops.readers.float32 import (
    FLOAT32_ONLY,
    check_float_node,
    range_of,
    with_bias_and_activation,
)
from toolchain.ops.spec import (
    Array,
    OpSpec,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_WIDTH = 4
_AXES = "dhw"
_PADS = ("front", "top", "left")


@dataclass(frozen=True)
class Conv3d(Attributes):
    """Along depth, height and width. `padding`: zeros before and after the volume."""

    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    activation: Activation


def _attributes(op: Op) -> Conv3d:
    assert isinstance(op.attributes, Conv3d)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, weights, attributes = graph.input(op, INPUT), graph.input(op, WEIGHTS), _attributes(op)
    if len(x.shape) != 5 or len(weights.shape) != 5 or weights.shape[3] != x.shape[4]:
        raise ValueError(f"filters {list(weights.shape)} over a volume {list(x.shape)}")
    if has_bias(op) and graph.input(op, BIAS).elements != weights.shape[4]:
        raise ValueError(f"a bias {graph.input(op, BIAS)} for {weights.shape[4]} channels")
    sizes = []
    for axis in range(3):
        before, after = attributes.padding[axis]
        extent = (weights.shape[axis] - 1) * attributes.dilation[axis] + 1
        rest = x.shape[axis + 1] + before + after - extent
        if min(before, after) < 0 or attributes.stride[axis] < 1 or attributes.dilation[axis] < 1:
            raise ValueError(f"padding, stride or dilation of {attributes}")
        if rest < 0:
            raise ValueError(f"{extent} taps do not fit the padded {x.shape[axis + 1]}")
        sizes.append(rest // attributes.stride[axis] + 1)
    return (TensorType((x.shape[0], *sizes, weights.shape[4]), DType.FLOAT32),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """A tap at a time; taps outside of the volume add nothing, not even a zero."""
    attributes, y = _attributes(op), graph.output(op)
    image, filters = inputs[INPUT].astype(np.float32), inputs[WEIGHTS].astype(np.float32)
    sums = np.zeros(y.shape, np.float32)
    for tap in itertools.product(*map(range, filters.shape[:3])):
        at, taken = [slice(None)], [slice(None)]
        for axis, place in enumerate(tap):
            start = place * attributes.dilation[axis] - attributes.padding[axis][0]
            places = start + attributes.stride[axis] * np.arange(y.shape[axis + 1])
            inside = np.flatnonzero((places >= 0) & (places < image.shape[axis + 1]))
            if not inside.size:
                break
            first, last = int(inside[0]), int(inside[-1])
            at.append(slice(first, last + 1))
            taken.append(slice(int(places[first]), int(places[last]) + 1, attributes.stride[axis]))
        else:
            seen = image[tuple(taken)]
            for channel in range(image.shape[4]):
                products = seen[..., channel, None] * filters[(*tap, channel)]
                sums[tuple(at)] = sums[tuple(at)] + products
    return (with_bias_and_activation(sums, op, inputs, attributes.activation),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    attributes = _attributes(op)
    low, high = range_of(attributes.activation)
    fields: dict[str, int | float] = {"batches": x.shape[0]}
    for name, shape in (("input", x.shape), ("output", y.shape)):
        fields |= {f"{name}_{axis}": size for axis, size in zip("dhwc", shape[1:], strict=True)}
    for axis, kernel, stride, dilation in zip(
        _AXES, weights.shape, attributes.stride, attributes.dilation, strict=False
    ):
        fields |= {f"kernel_{axis}": kernel, f"stride_{axis}": stride}
        fields[f"dilation_{axis}"] = dilation
    pads = zip(_PADS, attributes.padding, strict=True)
    fields |= {f"pad_{side}": before for side, (before, _) in pads}
    arguments: dict[str, Argument] = {
        "volume": Struct("thimble_volume_f32", {**fields, "min": low, "max": high}),
        "input": Input(INPUT),
        "filters": Input(WEIGHTS),
        "bias": Input(BIAS),
        "output": Output(0),
    }
    return Kernel((Call("thimble_convolve_3d_f32", arguments),), _extents)


def _extents(touched: Touched) -> Extents:
    call = touched.call

    def volume(end: str) -> int:
        return call["volume.batches"] * math.prod(call[f"volume.{end}_{a}"] for a in "dhwc")

    taps = math.prod(call[f"volume.kernel_{axis}"] for axis in _AXES)
    inputs, outputs = call["volume.input_c"], call["volume.output_c"]
    read = {0: whole(volume("input"), _WIDTH), 1: whole(taps * inputs * outputs, _WIDTH)}
    if touched.has(BIAS):
        read[BIAS] = whole(outputs, _WIDTH)
    reach = window_reach(
        (
            call[f"volume.output_{axis}"],
            call[f"volume.stride_{axis}"],
            call[f"volume.kernel_{axis}"],
            call[f"volume.dilation_{axis}"],
            call[f"volume.pad_{side}"],
        )
        for axis, side in zip(_AXES, _PADS, strict=True)
    )
    return Extents(read, {0: whole(volume("output"), _WIDTH)}, largest=reach)


def _macs(op: Op, graph: Graph) -> int:
    return graph.output(op).elements * math.prod(graph.input(op, WEIGHTS).shape[:4])


def _same(size: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """Zeros before and after for SAME: an odd one goes after."""
    total = max((-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


def _paddings(
    scheme: str, sizes: Sequence[int], attributes: Conv3d, kernel: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    if scheme == "VALID":
        return ((0, 0),) * 3
    axes = zip(sizes, kernel, attributes.stride, attributes.dilation, strict=True)
    return tuple(_same(*axis) for axis in axes)


def _read(node: TfliteNode) -> ReadOp:
    check_float_node(node)
    x, weights = node.inputs[INPUT], node.inputs[WEIGHTS]
    if x is None or weights is None or len(x.shape) != 5 or len(weights.shape) != 5:
        raise node.unsupported("its input or its filters are no volumes")
    options = node.options
    stride = (int(options.strideD), int(options.strideH), int(options.strideW))
    dilation = (
        int(options.dilationDFactor),
        int(options.dilationHFactor),
        int(options.dilationWFactor),
    )
    if min(*stride, *dilation, *weights.shape) < 1:
        raise node.unsupported(f"stride {stride}, dilation {dilation}")
    plain = Conv3d(stride, dilation, (), read_activation(node))
    padding = _paddings(options.padding, x.shape[1:4], plain, weights.shape[:3])
    return ReadOp(Conv3d(stride, dilation, padding, plain.activation), present_inputs(node))


def _write(op: Op, graph: Graph) -> WrittenOp:
    attributes, x = _attributes(op), graph.input(op, INPUT)
    kernel = graph.input(op, WEIGHTS).shape[:3]
    for scheme in ("VALID", "SAME"):
        if attributes.padding == _paddings(scheme, x.shape[1:4], attributes, kernel):
            break
    else:
        raise ValueError(f"{attributes.padding} is neither SAME nor VALID padding")
    options: dict[str, object] = {"padding": scheme}
    for axis, stride, dilation in zip("DHW", attributes.stride, attributes.dilation, strict=True):
        options |= {f"stride{axis}": stride, f"dilation{axis}Factor": dilation}
    options["fusedActivationFunction"] = attributes.activation.value
    return WrittenOp("CONV_3D", "Conv3DOptions", options)


def _sample(rng: np.random.Generator) -> Graph:
    kernel = tuple(int(rng.integers(1, 4)) for _ in range(3))
    stride = tuple(int(rng.integers(1, 4)) for _ in range(3))
    dilation = tuple(int(rng.integers(1, 3)) if rng.random() < 0.4 else 1 for _ in range(3))
    sizes = tuple(
        int(rng.integers((k - 1) * d + 1, (k - 1) * d + 6))
        for k, d in zip(kernel, dilation, strict=True)
    )
    inputs, outputs = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    plain = Conv3d(stride, dilation, (), list(Activation)[int(rng.integers(4))])
    scheme = ("VALID", "SAME")[int(rng.integers(2))]
    padding = _paddings(scheme, sizes, plain, kernel)
    attributes = Conv3d(stride, dilation, padding, plain.activation)
    weights = rng.standard_normal((*kernel, inputs, outputs)).astype(np.float32)
    bias = rng.standard_normal(outputs).astype(np.float32)
    tensors = [
        Tensor("x", (int(rng.integers(1, 3)), *sizes, inputs), DType.FLOAT32),
        Tensor("weights", weights.shape, DType.FLOAT32, None, weights),
        Tensor("bias", bias.shape, DType.FLOAT32, None, bias),
    ]
    names = ("x", "weights", "bias")[: 2 if rng.random() < 0.3 else 3]
    op = Op("conv3d", "conv3d", names, ("y",), attributes)
    known = Graph("", {t.name: t for t in tensors}, (), (), ())
    (made,) = _infer(op, known)
    tensors = [t for t in tensors if t.name in names]
    tensors.append(Tensor("y", made.shape, made.dtype))
    return Graph.build("sample", tensors, [op], ["x"], ["y"])


SPEC = OpSpec(
    kind="conv3d",
    attributes=Conv3d,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("CONV_3D",), _read, _write),
    macs=_macs,
    dtypes=FLOAT32_ONLY,
    limits="float32 (LiteRT has no quantised form); any stride, dilation, padding",
)
