"""Bilinear resize in fixed point with 10 fraction bits.

TFLite RESIZE_BILINEAR of int8, `reference_ops::ResizeBilinearInteger`. For some large enlargements
TFLite's rounded scale goes past the last pixel, and TFLite reads out of bounds; here the last pixel
is repeated. Legacy uint8 images are interpolated in float32 (`ResizeBilinear`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.resize import common
from toolchain.ops.resize.common import Resize
from toolchain.ops.resize.extents import extents_in_fixed_point, extents_in_float

ONE = 1 << 10


def infer_bilinear(op: kit.Operator[Resize]) -> kit.TensorTypes:
    """Shape rule. Raises ValueError if corners and centres are both to be aligned, as LiteRT's
    `resize_bilinear.cc` does.
    """
    attributes = op.attributes
    if attributes.align_corners and attributes.half_pixel_centers:
        raise ValueError("align_corners and half_pixel_centers exclude each other")
    return common.infer_resize(op)


def _infer(op: kit.Operator[Resize]) -> kit.TensorTypes:
    x = op.x
    if x.dtype not in (kit.DType.INT8, kit.DType.INT16):
        raise ValueError(f"bilinear resizing needs int8 or int16 data, not {x.dtype.value}")
    return infer_bilinear(op)


def _line(op: kit.Operator[Resize], axis: int) -> tuple[int, int]:
    """(start, step): output position i lies at (start + step * i) / ONE of the input."""
    attributes, place = op.attributes, common.within(op, axis)
    input_size, output_size = place.input, place.output
    if attributes.align_corners and output_size > 1:
        input_size, output_size = input_size - 1, output_size - 1
    step = (ONE * input_size + output_size // 2) // output_size
    start = step // 2 - ONE // 2 if attributes.half_pixel_centers else 0
    return start + step * place.begin - ONE * place.first, step


Weights = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _weights(op: kit.Operator[Resize], axis: int) -> Weights:
    """Lower index, upper index, and how many parts of ONE the upper one weighs."""
    input_size, output_size = op.x.shape[axis], op.y.shape[axis]
    start, step = _line(op, axis)
    place = start + step * np.arange(output_size, dtype=np.int64)
    lower = np.clip(place // ONE, 0, input_size - 1)
    upper = np.minimum(-(-place // ONE), input_size - 1)
    return lower, np.maximum(upper, 0), place - ONE * lower


def _scale(op: kit.Operator[Resize], axis: int) -> np.float32:
    """Input pixels to an output pixel, as the float kernel divides."""
    attributes, place = op.attributes, common.within(op, axis)
    if attributes.align_corners and place.output > 1:
        return np.float32(place.input - 1) / np.float32(place.output - 1)
    return np.float32(place.input) / np.float32(place.output)


FloatWeights = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]


def _float_weights(op: kit.Operator[Resize], axis: int) -> FloatWeights:
    """Lower index, upper index, what the lower weighs, what the upper weighs."""
    scale, half, part = _scale(op, axis), np.float32(0.5), common.within(op, axis)
    place = (part.begin + np.arange(op.y.shape[axis])).astype(np.float32)
    centred = op.attributes.half_pixel_centers
    place = (place + half) * scale - half if centred else place * scale
    lower = np.maximum(np.floor(place).astype(np.int64), 0)
    upper = np.minimum(np.ceil(place).astype(np.int64), part.input - 1)
    near_upper = place - lower.astype(np.float32)
    return lower - part.first, upper - part.first, np.float32(1) - near_upper, near_upper


def _axes(op: kit.Operator[Resize]) -> tuple[kit.Axis, ...]:
    def neighbours(axis: int) -> tuple[common.Indices, common.Indices, int, int]:
        if op.x.dtype is kit.DType.FLOAT32 or op.attributes.legacy:
            lower, upper, *_ = _float_weights(op, axis)
            place, less = common.within(op, axis), int(op.attributes.align_corners)
            return lower, upper, place.input - less, place.output - less
        lower, upper, _ = _weights(op, axis)
        return lower, upper, _line(op, axis)[1], ONE

    return common.resize_axes(op, neighbours)


def interpolated(op: kit.Operator[Resize], data: NDArray[np.float32]) -> NDArray[np.float32]:
    """The resized image in float32, operation by operation as `ResizeBilinear`."""
    top, bottom, near_top, near_bottom = _float_weights(op, 1)
    left, right, near_left, near_right = _float_weights(op, 2)
    near_top, near_bottom = near_top[:, None, None], near_bottom[:, None, None]
    near_left, near_right = near_left[None, :, None], near_right[None, :, None]
    total = data[:, top][:, :, left] * near_top * near_left
    total = total + data[:, bottom][:, :, left] * near_bottom * near_left
    total = total + data[:, top][:, :, right] * near_top * near_right
    return total + data[:, bottom][:, :, right] * near_bottom * near_right


def _legacy_reference(op: kit.Operator[Resize], inputs: kit.Inputs) -> kit.Arrays:
    total = interpolated(op, inputs[0].astype(np.float32) + np.float32(128))
    raised = (total + np.float32(0.5)).astype(np.int64)
    return ((raised - 128).astype(np.int8),)


def _reference(op: kit.Operator[Resize], inputs: kit.Inputs) -> kit.Arrays:
    if op.attributes.legacy:
        return _legacy_reference(op, inputs)
    y = op.y
    top, bottom, down = _weights(op, 1)
    left, right, across = _weights(op, 2)
    data = inputs[0].astype(np.int64)
    down, across = down[:, None, None], across[None, :, None]

    def mixed(rows: NDArray[np.int64]) -> NDArray[np.int64]:
        part = data[:, rows]
        return part[:, :, left] * (ONE - across) + part[:, :, right] * across

    total = mixed(top) * (ONE - down) + mixed(bottom) * down
    half = np.where(total > 0, 1 << 19, -(1 << 19))
    rounded = np.sign(total + half) * (np.abs(total + half) >> 20)
    return (rounded.astype(y.dtype.numpy),)


def float_kernel(op: kit.Operator[Resize], function: str) -> kit.Kernel:
    """A call of `function`, which takes `thimble_resize_float_params`. It declares
    no safe overlap.
    """
    x, y = op.x, op.y
    lines: dict[str, kit.Argument] = {}
    for name, axis in (("rows", 1), ("columns", 2)):
        place = common.within(op, axis)
        scale = float(_scale(op, axis))
        line: dict[str, kit.Argument] = {"scale": scale, "begin": place.begin, "first": place.first}
        lines[name] = kit.Struct("thimble_resize_float_line", line)
    params = kit.Struct(
        "thimble_resize_float_params",
        {
            **common.image_sizes(x, y),
            "channels": x.shape[3],
            **lines,
            "half_pixel_centers": int(op.attributes.half_pixel_centers),
        },
    )
    return kit.Kernel(
        (common.resize_call(function, params),),
        lambda touched: extents_in_float(touched, x.dtype.size_bytes),
    )


_FIXED_POINT = {
    kit.DType.INT8: ("thimble_resize_bilinear_s8", 1),
    kit.DType.INT16: ("thimble_resize_bilinear_s16", 2),
}
"""The C function by element type, and the bytes of an element."""


def _select(op: kit.Operator[Resize], core: kit.Core) -> kit.Kernel:
    if op.attributes.legacy:
        kernel = float_kernel(op, "thimble_resize_bilinear_legacy")
        return replace(kernel, find_overlaps=lambda: _overlaps(op, _float_weights))
    x, y = op.x, op.y
    lines: dict[str, kit.Argument] = {}
    for name, axis in (("rows", 1), ("columns", 2)):
        start, step = _line(op, axis)
        lines[name] = kit.Struct("thimble_resize_line", {"start": start, "step": step})
    params = kit.Struct(
        "thimble_resize_bilinear_params",
        {**common.image_sizes(x, y), "channels": x.shape[3], **lines},
    )
    function, element_bytes = _FIXED_POINT[x.dtype]
    return kit.Kernel(
        (common.resize_call(function, params),),
        lambda touched: extents_in_fixed_point(touched, element_bytes),
        find_overlaps=lambda: _overlaps(op, _weights),
    )


def _overlaps(
    op: kit.Operator[Resize],
    weights: Callable[[kit.Operator[Resize], int], Weights | FloatWeights],
) -> tuple[kit.SafeOverlap, ...]:
    rows, columns = (weights(op, axis)[0] for axis in (1, 2))
    return common.interpolation_overlaps(op, rows, columns)


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = tuple(int(rng.integers(1, high)) for high in (3, 12, 12, 20))
    x = kit.Tensor("x", shape, kit.DType.INT8, kit.sample_quantisation(rng))
    return common.sample_resize(rng, "resize_bilinear", x, both=False)


INT8 = kit.Form(
    kind="resize_bilinear",
    attributes=Resize,
    infer=_infer,
    reference=_reference,
    select=_select,
    axes=_axes,
    sample=_sample,
    tflite=kit.TfliteBinding(
        ("RESIZE_BILINEAR",),
        common.read_resize,
        lambda op: common.write_resize(op, "RESIZE_BILINEAR", "ResizeBilinearOptions"),
    ),
    dtype=kit.DType.INT8,
    limits="NHWC; the size is constant",
)
