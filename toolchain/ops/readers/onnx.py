"""Parts of the ONNX readers of several operators: windows, weights, biases, axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.window import check_16_bits

SYMMETRIC_WEIGHTS = (
    "quantise with weight_type=QuantType.QInt8, or extra_options={'WeightSymmetric': True}"
)


@dataclass(frozen=True)
class OnnxWindow:
    """A sliding window as Conv and the pools describe it. Pairs are (height, width), in pixels.

    A one-dimensional operator has height 1. `end` includes the padding that ceil_mode adds.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    begin: tuple[int, int]
    end: tuple[int, int]
    added: tuple[int, int] = (0, 0)

    @property
    def padded(self) -> bool:
        return any(self.begin) or any(self.end)


def image_axes(node: kit.OnnxNode) -> tuple[int, ...]:
    """The axes of an NHWC image, as dimensions of the ONNX tensor. Raises UnsupportedError for 3-D
    images.
    """
    rank = len(node.shape(0))
    if rank not in (3, 4):
        volume = "add 2-D operators over its slices, one for each depth of the kernel"
        raise node.unsupported(
            f"an input of {rank} dimensions; images have 3 or 4",
            volume if rank > 4 else "reshape it to [N, C, H, W]",
        )
    return (0, *range(2, rank), 1)


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """The NHWC shape of an ONNX shape [N, C, (H,) W]."""
    batches, channels, *spatial = shape
    height, width = spatial if len(spatial) == 2 else (1, *spatial)
    return batches, height, width, channels


def check_window(
    node: kit.OnnxNode, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> None:
    """Raise UnsupportedError for a size below 1, and for steps beyond what kernels hold.

    Each has one item per axis. The image, with its padding, bounds the kernel.
    """
    for name, sizes in (("kernel", kernel), ("strides", stride), ("dilations", dilation)):
        if min(sizes) < 1:
            raise node.unsupported(f"{name} {list(sizes)}")
    check_16_bits(node, "strides", stride)
    check_16_bits(node, "dilations", dilation)


def window(node: kit.OnnxNode, kernel: tuple[int, ...]) -> OnnxWindow:
    """The window that the attributes strides, dilations, pads, auto_pad and ceil_mode describe."""
    rank = len(kernel)
    stride = tuple(node.attribute("strides", [1] * rank))
    dilation = tuple(node.attribute("dilations", [1] * rank))
    pads = tuple(node.attribute("pads", [0] * 2 * rank))
    if not len(stride) == len(dilation) == rank or len(pads) != 2 * rank:
        raise node.unsupported("strides, dilations or pads of another rank than the kernel")
    check_window(node, kernel, stride, dilation)
    begin, end = list(pads[:rank]), list(pads[rank:])
    added = [0] * rank
    scheme = node.attribute("auto_pad", "NOTSET")
    sizes = node.shape(0)[2:]
    for axis in range(rank):
        extent = (kernel[axis] - 1) * dilation[axis] + 1
        if scheme == "VALID":
            begin[axis] = end[axis] = 0
        elif scheme in ("SAME_UPPER", "SAME_LOWER"):
            steps = -(-sizes[axis] // stride[axis])
            total = max((steps - 1) * stride[axis] + extent - sizes[axis], 0)
            small, large = total // 2, total - total // 2
            upper = scheme == "SAME_UPPER"
            begin[axis], end[axis] = (small, large) if upper else (large, small)
        elif node.attribute("ceil_mode", 0):
            steps = node.output_shape()[axis + 2]
            needed = (steps - 1) * stride[axis] + extent
            added[axis] = max(needed - sizes[axis] - begin[axis] - end[axis], 0)
            end[axis] += added[axis]

    def pair(values: tuple[int, ...] | list[int], missing: int) -> tuple[int, int]:
        whole = values if rank == 2 else (missing, *values)
        return int(whole[0]), int(whole[1])

    if min(*begin, *end) < 0:
        raise node.unsupported("negative padding", "crop with Slice instead")
    check_16_bits(node, "padding", (*begin, *end))
    return OnnxWindow(
        pair(kernel, 1),
        pair(stride, 1),
        pair(dilation, 1),
        pair(begin, 0),
        pair(end, 0),
        pair(added, 0),
    )


@dataclass(frozen=True)
class StoredWeights:
    """Weights as the model stores them, with one scale, or one per index of an axis.

    The zero point is 0 unless there is only one scale.
    """

    data: NDArray[np.int8]
    scales: NDArray[np.float32]
    zero_point: int = 0

    def quantisation(self, axis: int) -> kit.Quantisation:
        return weight_quantisation(self.scales, axis, self.zero_point)


def grouped_filters(node: kit.OnnxNode, data: NDArray[Any]) -> tuple[OnnxWindow, NDArray[Any], int]:
    """The window of a Conv with these weights, its filters [channels, height, width, depth], and
    the number of their groups.
    """
    walk, groups = window(node, data.shape[2:]), int(node.attribute("group", 1))
    filters = data.reshape(*data.shape[:2], *walk.kernel).transpose(0, 2, 3, 1)
    channels = node.shape(0)[1]
    if filters.shape[3] * groups != channels:
        raise ValueError(f"{groups} groups of {filters.shape[3]} of {channels} channels")
    return walk, filters, groups


def stored_weights(node: kit.OnnxNode, index: int, axis: int) -> StoredWeights:
    """The constant weights of an input, with the zero point subtracted if the result still fits
    int8.

    In a float model the weights stay float32. Raises UnsupportedError for weights that are not
    constant or not quantised to 8 bits, or whose zero point differs along `axis`.
    """
    stored = node.constant(index)
    q = stored.quantisation
    if node.in_float:
        real: NDArray[Any] = stored.real.astype(np.float32)
        return StoredWeights(real, np.ones(1, np.float32))
    if q is None or stored.data.dtype != np.int8:
        raise node.left_in_float(
            "its weights are not quantised to 8 bits",
            "quantise the whole model (quantize_static with all operator types)",
        )
    if q.axis is not None and q.axis != axis:
        raise node.unsupported(
            f"its weights are quantised along dimension {q.axis}, not {axis}",
            "quantise with per_channel=False",
        )
    shape = [1] * stored.data.ndim
    if q.axis is not None:
        shape[q.axis] = -1
    zeros = np.array(q.zero_points, dtype=np.int16).reshape(shape)
    centred = stored.data.astype(np.int16) - zeros
    scales = np.array(q.scales, dtype=np.float32)
    if not centred.size or (centred.min() >= -128 and centred.max() <= 127):
        return StoredWeights(centred.astype(np.int8), scales)
    if q.axis is not None:
        raise node.unsupported(
            "weights with a zero point other than 0 for each channel", SYMMETRIC_WEIGHTS
        )
    return StoredWeights(stored.data.astype(np.int8), scales, int(zeros.reshape(())))


def int8_weights(
    node: kit.OnnxNode, index: int, axis: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """`stored_weights` with zero point 0. Raises UnsupportedError for any other."""
    weights = stored_weights(node, index, axis)
    if weights.zero_point:
        raise node.unsupported("weights with a zero point other than 0", SYMMETRIC_WEIGHTS)
    return weights.data, weights.scales


_MOST_LOST = 0.25
"""How much rounding a bias to steps of the accumulator may move the output, in steps of the output.
Exporters lose nothing.
"""


_FARTHEST = 255
"""The greatest distance of an int8 input from its zero point."""


def add_bias(
    node: kit.OnnxNode,
    real: NDArray[np.float64],
    x_scale: float,
    weights: StoredWeights,
) -> str:
    """Add an int32 bias of the `real` values, one per row of weights, in the accumulator's scale.

    A bias that would overflow 32 bits together with the sums is clipped. Raises UnsupportedError if
    that, or its rounding, moves the output by more than `_MOST_LOST` steps. In real models channels
    that never fire have weights of tiny scales and biases near 2**31, which lose little.
    """
    if node.in_float:
        return node.add_constant("bias", real.astype(np.float32), None)
    scales = np.float32(x_scale) * weights.scales
    stored = np.rint(real / scales.astype(np.float64))
    taps = weights.data.reshape(len(stored), -1).astype(np.int64) - weights.zero_point
    reach = np.abs(taps).sum(axis=1) * _FARTHEST
    room = np.maximum(np.iinfo(np.int32).max - reach, 0)
    fits = np.abs(stored) <= room
    stored = np.clip(stored, -room, room)
    lost = np.abs(stored * scales - real).max(initial=0) / node.output_quantisation().scale
    if lost > _MOST_LOST and not fits.all():
        raise node.unsupported(
            "its bias is too large for an int32 accumulator",
            "quantise with per_channel=False, which gives rows of tiny weights a larger scale",
        )
    if lost > _MOST_LOST:
        raise node.unsupported(
            f"its bias loses up to {lost:.3g} steps of the output in steps of input times weights",
            "quantise with a representative data set",
        )
    q = kit.Quantisation(
        tuple(float(s) for s in scales), (0,) * scales.size, 0 if scales.size > 1 else None
    )
    return node.add_constant("bias", stored.astype(np.int32), q)


def weight_quantisation(
    scales: NDArray[np.float32], axis: int, zero_point: int = 0
) -> kit.Quantisation:
    return kit.Quantisation(
        tuple(float(s) for s in scales),
        (zero_point,) * scales.size,
        axis if scales.size > 1 else None,
    )


def onnx_bias(
    node: kit.OnnxNode, index: int, channels: int, axis: int
) -> NDArray[np.float64] | None:
    """The bias in input `index`, in an Add after the node along output dimension `axis`, or the sum
    of both.

    The Add is then consumed. Returns None if there is no bias.
    """
    real = None
    if node.has(index):
        constant = node.constant(index).real
        if constant.size not in (1, channels):
            raise node.unsupported(f"a bias of shape {list(constant.shape)}")
        real = np.broadcast_to(constant.reshape(-1), (channels,))
    following = node.following_bias(axis)
    if following is None:
        return real
    return following if real is None else real + following


def resolve_axes(node: kit.OnnxNode, axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Axes as indices from 0. Raises UnsupportedError if one is out of range."""
    if any(not -rank <= axis < rank for axis in axes):
        raise node.unsupported(f"axes {list(axes)} of a tensor of {rank} dimensions")
    return tuple(axis % rank for axis in axes)


def axes_argument(node: kit.OnnxNode, index: int = 1) -> tuple[int, ...] | None:
    """The axes of an operator: an attribute in old opsets, an input in new ones."""
    if node.has(index):
        return node.integers(index)
    axes = node.attribute("axes")
    return None if axes is None else tuple(axes)
