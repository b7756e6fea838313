"""Transposed convolution of int8: each input pixel adds a copy of every filter to the output.

TFLite TRANSPOSE_CONV; weights OHWI, quantised per channel or per tensor. Arithmetic: TFLite
`reference_integer_ops::TransposeConv`. ONNX ConvTranspose rounds as ONNX Runtime does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from toolchain.ops import kit
from toolchain.ops.convolution import common
from toolchain.ops.convolution.kernels import (
    thimble_transpose_conv_lanes_s8,
    thimble_transpose_conv_s8,
)
from toolchain.ops.convolution.kernels.cmsis_nn import arm_transpose_conv_s8
from toolchain.ops.convolution.sums import outputs_of, transposed_sums
from toolchain.ops.readers.onnx import (
    StoredWeights,
    add_bias,
    check_window,
    image_axes,
    image_shape,
    int8_weights,
    onnx_bias,
    weight_quantisation,
)

_FILE_SHAPE, _FILE_WEIGHTS, _FILE_INPUT, _FILE_BIAS = 0, 1, 2, 3
FILE_ORDER = (_FILE_INPUT, _FILE_WEIGHTS, _FILE_BIAS)
"""Places of input, weights and bias in a TFLite file."""
_MOST_SPREAD = 1 << 26
"""Weights, with the zeros of dilations and groups: more than any board's memory holds."""


@dataclass(frozen=True)
class TransposeConv2D(kit.Attributes):
    """Attributes of transpose_conv2d. Pairs are (height, width), in pixels.

    `size` is the output's. Input row i reaches output row y through kernel row y + padding.top - i
    * stride. The bottom and right padding follow from the size.
    """

    size: tuple[int, int]
    dilation: ClassVar[tuple[int, int]] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: kit.Padding = kit.UNPADDED
    activation: kit.Activation = kit.Activation.NONE
    rounding: kit.Rounding = kit.Rounding.TFLITE


def _infer(op: kit.Operator[TransposeConv2D]) -> kit.TensorTypes:
    x, weights, attributes = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.attributes
    if len(x.shape) != 4 or len(weights.shape) != 4 or weights.shape[3] != x.shape[3]:
        raise ValueError(f"needs NHWC input and OHWI weights, got {x.shape} and {weights.shape}")
    pad = attributes.padding
    if min(attributes.size) < 1 or min(attributes.stride) < 1 or min(pad.top, pad.left) < 0:
        raise ValueError(f"size, stride and padding do not make sense: {attributes}")
    common.check_bias(op, weights.shape[0])
    return (kit.TensorType((x.shape[0], *attributes.size, weights.shape[0]), x.dtype),)


def _reference(op: kit.Operator[TransposeConv2D], inputs: kit.Inputs) -> kit.Arrays:
    image = inputs[kit.INPUT].astype(np.int64) - op.input(kit.INPUT).q.zero_point
    return outputs_of(op, transposed_sums(op, image, inputs[kit.WEIGHTS].astype(np.int64)), inputs)


def _axes(op: kit.Operator[TransposeConv2D]) -> tuple[kit.Axis, ...]:
    """Rows, columns and channels.

    Output row y gets input rows from ceil((y + top - kernel + 1) / stride) to
    floor((y + top) / stride); a kernel smaller than the stride counts as one of that size.
    """
    attributes, window = op.attributes, common.window_of(op)
    pads, whole = (window.padding.top, window.padding.left), (None,) * (len(op.inputs) - 1)

    def along(side: int) -> kit.Axis:
        stride = window.stride[side]
        kernel = max(window.kernel[side], stride)
        before = kernel - stride - pads[side]

        def block(part: kit.Part) -> TransposeConv2D:
            top = kernel - stride - part.before
            padding = replace(attributes.padding, **{("top", "left")[side]: top})
            sizes = list(attributes.size)
            sizes[side] = part.length
            return replace(attributes, size=(sizes[0], sizes[1]), padding=padding)

        return kit.Axis(side + 1, (kit.Reach(side + 1, 1, kernel, before, stride), *whole), block)

    filters = tuple(None if x is None else kit.Reach(0) for x in op.inputs[kit.WEIGHTS :])
    return (along(0), along(1), kit.Axis(3, (None, *filters), lambda part: attributes))


def _select(op: kit.Operator[TransposeConv2D], core: kit.Core) -> kit.Kernel:
    """Thimble's own kernel: CMSIS-NN's needs an int32 for every tap of every pixel."""
    if core.mve:
        return thimble_transpose_conv_lanes_s8.kernel(op)
    return thimble_transpose_conv_s8.kernel(op)


def _macs(op: kit.AnyOperator) -> int:
    channels, height, width, _ = op.input(kit.WEIGHTS).shape
    return op.input(kit.INPUT).elements * channels * height * width


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    common.check_operands(node, 4, _present(node))
    return read_transposed(node)


def _present(node: kit.TfliteNode) -> tuple[int, ...]:
    """The operands that the file gives, by their places."""
    present = len(node.inputs) > _FILE_BIAS and node.inputs[_FILE_BIAS] is not None
    return FILE_ORDER if present else FILE_ORDER[:-1]


def read_transposed(node: kit.TfliteNode) -> kit.ReadOp:
    """The operator of a node whose operands were checked."""
    weights = node.inputs[_FILE_WEIGHTS]
    assert weights is not None
    shape = [int(v) for v in node.constant(_FILE_SHAPE).reshape(-1)]
    if len(shape) != 4:
        raise node.unsupported(f"output shape {shape}")
    options, size = node.options, (shape[1], shape[2])
    if node.outputs[0].dtype is kit.DType.INT16 and options.quantizedBiasType == "INT32":
        raise node.unsupported(
            "its quantized_bias_type is INT32, so LiteRT adds in 32 bits, not in 64",
            "convert with 64-bit biases, the 16x8 scheme's default",
        )
    stride = (int(options.strideH), int(options.strideW))
    padding = common.read_padding(node, size, (weights.shape[1], weights.shape[2]), stride)
    attributes = TransposeConv2D(size, stride, padding, kit.read_activation(node))
    return kit.ReadOp(attributes, _present(node))


def _write(op: kit.Operator[TransposeConv2D]) -> kit.WrittenOp:
    attributes, y = op.attributes, op.y
    shape = kit.Tensor(
        "output_shape", (4,), kit.DType.INT32, None, np.array(y.shape, dtype=np.int32)
    )
    count = len(op.inputs)
    return kit.WrittenOp(
        "TRANSPOSE_CONV",
        "TransposeConvOptions",
        {
            "padding": kit.padding_scheme(common.window_of(op), attributes.size),
            "strideH": attributes.stride[0],
            "strideW": attributes.stride[1],
            "fusedActivationFunction": attributes.activation,
        },
        extra_inputs=(shape,),
        version=4,
        order=(count, kit.WEIGHTS, kit.INPUT, *range(kit.BIAS, count)),
    )


def _sample(rng: np.random.Generator) -> kit.Graph:
    kernel = (int(rng.integers(1, 6)), int(rng.integers(1, 6)))
    stride = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    depth, channels = int(rng.integers(1, 12)), int(rng.integers(1, 9))
    rows, columns = int(rng.integers(1, 7)), int(rng.integers(1, 7))
    if rng.random() < 0.6:
        size = (rows * stride[0], columns * stride[1])
        padding = kit.same_padding(size, kernel, stride)
    else:
        size = ((rows - 1) * stride[0] + kernel[0], (columns - 1) * stride[1] + kernel[1])
        padding = kit.UNPADDED
    taps = -(-kernel[0] // stride[0]) * -(-kernel[1] // stride[1])
    x_q, w_q, y_q = common.random_quantisation(rng, channels, taps * depth)
    w_shape = (channels, *kernel, depth)
    x = kit.Tensor("x", (1, rows, columns, depth), kit.DType.INT8, x_q)
    filters = kit.constant_sample("weights", rng.integers(-127, 128, w_shape, np.int8), w_q)
    bias = [common.random_bias(rng, x_q, w_q, channels)] if rng.random() < 0.8 else []
    attributes = TransposeConv2D(size, stride, padding)
    kind = "transpose_conv2d"
    return kit.sample(kind, attributes, x, filters, *bias, q=y_q, name="transposed")


def _onnx_padding(
    node: kit.OnnxNode, extent: tuple[int, int], stride: tuple[int, int]
) -> kit.Padding:
    """Padding at the top and left; the output's size gives the other sides."""
    rank = len(node.shape(kit.INPUT)) - 2
    source, target = image_shape(node.shape(kit.INPUT)), image_shape(node.output_shape())
    begin = [0, 0]
    scheme = node.attribute("auto_pad", "NOTSET")
    if scheme == "NOTSET" and node.attribute("output_shape") is None:
        begin[2 - rank :] = node.attribute("pads", [0] * 2 * rank)[:rank]
    elif scheme != "VALID":
        extra = [0, 0]
        extra[2 - rank :] = node.attribute("output_padding", [0] * rank)
        for axis in range(2):
            full = stride[axis] * (source[axis + 1] - 1) + extra[axis] + extent[axis]
            total = full - target[axis + 1]
            begin[axis] = total // 2 if scheme == "SAME_UPPER" else total - total // 2
    if min(begin) < 0:
        raise node.unsupported(f"negative padding {begin}")
    kit.check_16_bits(node, "padding", begin)
    return kit.Padding(top=begin[0], left=begin[1])


def _read_onnx(node: kit.OnnxNode) -> None:
    """ConvTranspose; groups and dilation become zeros in the filters."""
    axes = image_axes(node)
    weights, scales = int8_weights(node, kit.WEIGHTS, axis=1)
    rank, groups = weights.ndim - 2, int(node.attribute("group", 1))
    depth, per_group = weights.shape[:2]
    if groups < 1 or depth % groups:
        raise ValueError(f"{groups} groups of {depth} channels")
    kernel = weights.shape[2:] if rank == 2 else (1, *weights.shape[2:])
    stride = (1, 1, *node.attribute("strides", [1] * rank))[-2:]
    dilation = (1, 1, *node.attribute("dilations", [1] * rank))[-2:]
    check_window(node, kernel, stride, dilation)
    extent = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
    spread = (groups * per_group, *extent, depth)
    if math.prod(spread) > _MOST_SPREAD:
        raise node.unsupported(
            f"filters that {groups} groups and dilations {list(dilation)} spread to "
            f"{math.prod(spread):,} weights",
            "use smaller dilations",
        )
    filters = np.zeros(spread, dtype=weights.dtype)
    flat = weights.reshape(groups, depth // groups, per_group, *kernel)
    for group in range(groups):
        outputs = slice(group * per_group, (group + 1) * per_group)
        inputs = slice(group * (depth // groups), (group + 1) * (depth // groups))
        taps = filters[outputs, :: dilation[0], :: dilation[1], inputs]
        taps[...] = flat[group].transpose(1, 2, 3, 0)
    if scales.size > 1:
        scales = np.tile(scales, groups)
    bias = onnx_bias(node, kit.BIAS, len(filters), axis=1)
    q, size = node.output_quantisation(), image_shape(node.output_shape())
    padding = _onnx_padding(node, (extent[0], extent[1]), (stride[0], stride[1]))
    activation = kit.Activation(node.fused_activation())
    operands = [
        node.operand(kit.INPUT, axes, image_shape(node.shape(kit.INPUT))),
        node.add_constant("weights", filters, weight_quantisation(scales, 0)),
    ]
    if bias is not None:
        stored = StoredWeights(filters, scales)
        operands.append(add_bias(node, bias, node.quantisation(kit.INPUT).scale, stored))
    attributes = TransposeConv2D(
        (size[1], size[2]), (stride[0], stride[1]), padding, activation, kit.Rounding.ONNX
    )
    node.emit("transpose_conv2d", attributes, operands, q, axes, size)


S8 = kit.Form(
    quantised=kit.WEIGHTED,
    kind="transpose_conv2d",
    attributes=TransposeConv2D,
    infer=_infer,
    reference=_reference,
    select=kit.Choice(_select, arm_transpose_conv_s8.kernel),
    sample=_sample,
    macs=_macs,
    axes=_axes,
    tflite=kit.TfliteBinding(("TRANSPOSE_CONV",), _read, _write),
    onnx=kit.OnnxBinding(("ConvTranspose",), _read_onnx),
    dtype=kit.DType.INT8,
    limits="int8, constant weights, per channel or per tensor; any stride and output size",
)
