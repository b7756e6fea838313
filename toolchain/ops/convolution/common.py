"""Parts that the convolutions share: attributes, TFLite reader and writer, operand checks,
requantisation.

Images are NHWC. Weights of conv2d and transpose_conv2d are OHWI ([output channels, height, width,
input channels]); those of depthwise_conv2d are [1, height, width, channels].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.arithmetic.fixed_point import quantize_multipliers


@dataclass(frozen=True)
class Windowed(kit.Attributes):
    """Attributes of a window that slides over an image. Pairs are (height, width), in pixels."""

    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: kit.Padding = kit.UNPADDED


@dataclass(frozen=True)
class Convolution(Windowed):
    """Attributes of conv2d and depthwise_conv2d. Their kernel sizes follow from the weights."""

    activation: kit.Activation = kit.Activation.NONE
    rounding: kit.Rounding = kit.Rounding.TFLITE


def window_of(op: kit.Operator[Any]) -> kit.Window:
    """The window of an operator whose weights have the shape [_, height, width, _]; of a transposed
    convolution that of the forward one whose gradient it is.
    """
    _, height, width, _ = op.input(kit.WEIGHTS).shape
    attributes = op.attributes
    return kit.Window((height, width), attributes.stride, attributes.dilation, attributes.padding)


def filters_of(op: kit.AnyOperator) -> packing.Int8:
    """The constant filters [channels, taps], however the kind's weights lie."""
    weights = op.input(kit.WEIGHTS)
    return rows_of(weights, depthwise=op.kind == "depthwise_conv2d")


def depth_of(filters: packing.Int8, window: kit.Window) -> int:
    """The input channels that a filter of [channels, taps] reads."""
    return int(filters.shape[1]) // (window.kernel[0] * window.kernel[1])


def rows_of(weights: kit.Tensor, *, depthwise: bool) -> packing.Int8:
    """Filters [channels, taps] of these weights."""
    data = kit.constant_of(weights).astype(np.int8, copy=False)
    return data.reshape(-1, weights.shape[3]).T if depthwise else data.reshape(len(data), -1)


def read_padding(
    node: kit.TfliteNode,
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int] = (1, 1),
) -> kit.Padding:
    """The padding that SAME or VALID in the file means for an image of this size.

    Raises UnsupportedError for a stride, dilation or kernel below 1, and for a stride, dilation or
    padding beyond the 16 bits in which TFLite's kernels keep it.
    """
    if min(*stride, *dilation, *kernel) < 1:
        raise node.unsupported(f"stride {stride}, dilation {dilation}, kernel {kernel}")
    kit.check_16_bits(node, "stride", stride)
    kit.check_16_bits(node, "dilation", dilation)
    if node.options.padding == "VALID":
        return kit.UNPADDED
    padding = kit.same_padding(size, kernel, stride, dilation)
    kit.check_16_bits(node, "padding", (padding.top, padding.left))
    return padding


def check_operands(
    node: kit.TfliteNode,
    weights_rank: int,
    order: Sequence[int] = (kit.INPUT, kit.WEIGHTS, kit.BIAS),
    *,
    computed: bool = False,
) -> kit.Tensor:
    """Check types and quantisation of input, weights and bias; return the weights.

    `order` gives their indices among the file's inputs. `computed`: weights may be computed at run
    time, and have one zero point. Raises UnsupportedError for operands that
    no convolution kernel takes.
    """
    roles = dict(zip(("input", "weights", "bias"), order, strict=False))
    activations = node.outputs[0].dtype
    bias = kit.DType.INT64 if activations is kit.DType.INT16 else kit.DType.INT32
    wanted = {"input": activations, "weights": kit.DType.INT8, "bias": bias}
    if activations is kit.DType.FLOAT32:
        wanted = dict.fromkeys(roles, kit.DType.FLOAT32)
    operands: dict[str, kit.Tensor] = {}
    for role, index in roles.items():
        tensor = node.inputs[index] if index < len(node.inputs) else None
        if tensor is None:
            continue
        if tensor.dtype is not wanted[role]:
            wide = role == "bias" and activations is kit.DType.INT16
            if activations is kit.DType.FLOAT32:
                raise node.unsupported(
                    f"{role} is {tensor.dtype.value} beside float32 (dynamic-range quantisation)",
                    "quantise activations too, with a representative_dataset, or convert to float",
                )
            raise node.unsupported(
                f"{role} is {tensor.dtype.value}, not {wanted[role].value}",
                "convert with 64-bit biases, the 16x8 scheme's default"
                if wide
                else "quantise the model to int8 (per channel, with int8 inputs and outputs)",
            )
        if role == "bias" or (role == "weights" and not computed):
            node.constant(index)
        operands[role] = tensor
    if "input" not in operands or "weights" not in operands:
        raise node.unsupported("an input is missing")
    x, weights = operands["input"], operands["weights"]
    if len(weights.shape) != weights_rank or len(x.shape) < 1:
        raise node.unsupported(f"weights of shape {weights.shape}")
    if activations is kit.DType.FLOAT32:
        return weights
    for tensor in (x, weights, node.outputs[0]):
        if tensor.quantisation is None:
            raise node.unsupported(
                f"tensor {tensor.name!r} has no quantisation", "quantise the model to int8"
            )
    offset_known = node.legacy and len(order) == 3 and order[0] == kit.INPUT
    offset_known = offset_known or (computed and not weights.q.per_channel)
    if any(weights.q.zero_points) and not offset_known:
        raise node.unsupported(
            "weights with a zero point other than 0", "quantise the weights symmetrically"
        )
    return weights


def filter_macs(op: kit.AnyOperator) -> int:
    """Multiply-accumulates of filters [channels, height, width, depth]: all taps of each output."""
    _, height, width, depth = op.input(kit.WEIGHTS).shape
    return op.y.elements * height * width * depth


def check_bias(op: kit.AnyOperator, channels: int) -> None:
    """Raise ValueError if the bias has not one value a channel."""
    bias = op.given(kit.BIAS)
    if bias is not None and bias.elements != channels:
        raise ValueError(f"{bias.elements} bias values for {channels} channels")


def weight_zero_point(weights: kit.Tensor) -> int:
    """The zero point of all weights. Only legacy uint8 models have one other than 0."""
    return weights.q.zero_point


def read_walk(node: kit.TfliteNode) -> Windowed:
    """How the window of a TFLite CONV_2D or DEPTHWISE_CONV_2D moves over an image."""
    x, weights, options = node.inputs[kit.INPUT], node.inputs[kit.WEIGHTS], node.options
    assert x is not None and weights is not None
    if len(x.shape) != 4:
        raise node.unsupported(f"input of shape {list(x.shape)}")
    kernel = (weights.shape[1], weights.shape[2])
    stride = (int(options.strideH), int(options.strideW))
    dilation = (int(options.dilationHFactor), int(options.dilationWFactor))
    padding = read_padding(node, (x.shape[1], x.shape[2]), kernel, stride, dilation)
    return Windowed(stride, dilation, padding)


def read_convolution(node: kit.TfliteNode, attributes: type[Convolution]) -> kit.ReadOp:
    """The attributes of a TFLite CONV_2D or DEPTHWISE_CONV_2D."""
    check_operands(node, 4)
    walk = vars(read_walk(node))
    return kit.ReadOp(
        attributes(**walk, activation=kit.read_activation(node)), kit.present_inputs(node)
    )


def write_convolution(
    op: kit.Operator[Convolution], builtin: str, options_type: str, **options: int
) -> kit.WrittenOp:
    """The TFLite operator `builtin`, inverse of `read_convolution`. Raises as `write_window`."""
    activation = op.attributes.activation
    return write_window(op, activation, builtin, options_type, version=3, **options)


def write_window(
    op: kit.Operator[Windowed],
    activation: kit.Activation,
    builtin: str,
    options_type: str,
    *,
    version: int,
    **options: int,
) -> kit.WrittenOp:
    """The TFLite operator `builtin` of a window over an image.

    Raises ValueError if the padding is neither SAME nor VALID.
    """
    attributes, x = op.attributes, op.input(kit.INPUT)
    assert isinstance(attributes, Windowed)
    shared = {
        "padding": kit.padding_scheme(window_of(op), (x.shape[1], x.shape[2])),
        "strideH": attributes.stride[0],
        "strideW": attributes.stride[1],
        "dilationHFactor": attributes.dilation[0],
        "dilationWFactor": attributes.dilation[1],
        "fusedActivationFunction": activation,
    }
    return kit.WrittenOp(builtin, options_type, shared | options, version=version)


def channel_requantisation(
    x: kit.Tensor, weights: kit.Tensor, y: kit.Tensor, channels: int
) -> tuple[kit.Int32, kit.Int32]:
    """Multiplier (Q0.31) and left shift of each output channel.

    They stand for input scale * weight scale / output scale, computed in double in that order
    (TFLite `PopulateConvolutionQuantizationParams`).
    """
    scales = weights.q.scales if weights.q.per_channel else weights.q.scales * channels
    if len(scales) != channels:
        raise ValueError(f"{len(scales)} weight scales for {channels} output channels")
    with np.errstate(over="ignore"):
        return quantize_multipliers(x.q.scale * np.array(scales, np.float64) / y.q.scale)


def random_window(
    rng: np.random.Generator, walk: kit.Window, most: int
) -> tuple[tuple[int, int], kit.Window]:
    """The size of an image that has fewer than `most` pixels more than one window of `walk` along
    each axis, and that window, often with padding SAME.
    """
    extent = walk.extent
    size = (extent[0] + int(rng.integers(0, most)), extent[1] + int(rng.integers(0, most)))
    if rng.random() < 0.6:
        padding = kit.same_padding(size, walk.kernel, walk.stride, walk.dilation)
        walk = replace(walk, padding=padding)
    return size, walk


def random_quantisation(
    rng: np.random.Generator, channels: int, depth: int
) -> tuple[kit.Quantisation, kit.Quantisation, kit.Quantisation]:
    """Random quantisation of a sample's input, weights and output.

    Weights are quantised per channel in three of four cases. The output's scale suits sums of
    `depth` products, so most outputs lie within int8 and some beyond.
    """
    x = kit.Quantisation((_float32(2.0 ** rng.uniform(-8, -2)),), (int(rng.integers(-128, 128)),))
    if rng.random() < 0.75:
        scales = tuple(_float32(s) for s in 2.0 ** rng.uniform(-11, -5, channels))
        weights = kit.Quantisation(scales, (0,) * channels, None if channels == 1 else 0)
    else:
        weights = kit.Quantisation((_float32(2.0 ** rng.uniform(-10, -5)),), (0,))
    spread = 2.0 ** rng.uniform(-2, 2) * 90 * np.sqrt(depth)
    typical = float(np.exp(np.mean(np.log(weights.scales))))
    y = kit.Quantisation((_float32(x.scale * typical * spread),), (int(rng.integers(-128, 128)),))
    return x, weights, y


def random_bias(
    rng: np.random.Generator, x: kit.Quantisation, weights: kit.Quantisation, channels: int
) -> kit.Tensor:
    """A random bias, quantised as TFLite does: int32 with scale input scale * weight scale."""
    scales = tuple(_float32(x.scale * s) for s in weights.scales)
    zeros = (0,) * len(scales)
    data = rng.integers(-20000, 20000, channels).astype(np.int32)
    return kit.Tensor(
        "bias", (channels,), kit.DType.INT32, kit.Quantisation(scales, zeros, weights.axis), data
    )


def random_operands(
    rng: np.random.Generator,
    x: tuple[int, ...],
    weights: tuple[int, ...],
    depth: int,
    *,
    biased: float = 1.0,
    axis: int = 0,
) -> tuple[list[kit.Tensor], kit.Quantisation]:
    """A sample's input and constant weights of these shapes, and a bias in that share of cases; and
    the output's quantisation, for sums of `depth` products. `axis`: that of the weights' channels.
    """
    channels = weights[axis]
    x_q, w_q, y_q = random_quantisation(rng, channels, depth)
    data = rng.integers(-127, 128, weights).astype(np.int8)
    along = replace(w_q, axis=axis) if w_q.per_channel else w_q
    operands = [
        kit.Tensor("x", x, kit.DType.INT8, x_q),
        kit.constant_sample("weights", data, along),
    ]
    if biased == 1.0 or rng.random() < biased:
        operands.append(random_bias(rng, x_q, w_q, channels))
    return operands, y_q


def with_sums(
    rng: np.random.Generator, operands: list[kit.Tensor], shape: tuple[int, ...]
) -> tuple[kit.Tensor | None, ...]:
    """The operands of a partial kind, and in most cases sums of this shape to add to."""
    x, weights, *bias = operands
    sums = kit.Tensor("sums", shape, kit.DType.INT32) if rng.random() < 0.7 else None
    return x, weights, bias[0] if bias else None, sums


def _float32(value: float) -> float:
    return float(np.float32(value))
