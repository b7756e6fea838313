"""Resize by bilinear interpolation in fixed point with 10 fraction bits.

TFLite RESIZE_BILINEAR, int8, `reference_ops::ResizeBilinearInteger`. Where its rounded scale runs
past the last pixel (enlarging by some tens or more) TFLite reads out of bounds; here the last pixel
stands for what lies beyond. Legacy uint8 images are interpolated in float32 (`ResizeBilinear`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops._movement import sample_quantisation
from toolchain.ops._resizing import (
    Resize,
    infer_resize,
    interpolation_overlaps,
    read_resize,
    resize_attributes,
    sample_resize,
    write_resize,
)
from toolchain.ops.spec import Array, Lowering, OpSpec, SafeOverlap, TensorType, TfliteBinding

ONE = 1 << 10


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    attributes, x = resize_attributes(op), graph.input(op, 0)
    if x.dtype not in (DType.INT8, DType.INT16):
        raise ValueError(f"bilinear resizing needs int8 or int16 data, not {x.dtype.value}")
    if attributes.align_corners and attributes.half_pixel_centers:
        raise ValueError("align_corners and half_pixel_centers exclude each other")
    return infer_resize(op, graph)


def _line(attributes: Resize, input_size: int, output_size: int) -> tuple[int, int]:
    """(start, step): output position i lies at (start + step * i) / ONE of the input."""
    if attributes.align_corners and output_size > 1:
        input_size, output_size = input_size - 1, output_size - 1
    step = (ONE * input_size + output_size // 2) // output_size
    return (step // 2 - ONE // 2 if attributes.half_pixel_centers else 0), step


Weights = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _weights(attributes: Resize, input_size: int, output_size: int) -> Weights:
    """Lower index, upper index, and how many parts of ONE the upper one weighs."""
    start, step = _line(attributes, input_size, output_size)
    place = start + step * np.arange(output_size, dtype=np.int64)
    lower = np.clip(place // ONE, 0, input_size - 1)
    upper = np.minimum(-(-place // ONE), input_size - 1)
    return lower, np.maximum(upper, 0), place - ONE * lower


def _scale(attributes: Resize, input_size: int, output_size: int) -> np.float32:
    """Input pixels to an output pixel, as the float kernel divides."""
    if attributes.align_corners and output_size > 1:
        return np.float32(input_size - 1) / np.float32(output_size - 1)
    return np.float32(input_size) / np.float32(output_size)


FloatWeights = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]


def _float_weights(attributes: Resize, input_size: int, output_size: int) -> FloatWeights:
    """Lower index, upper index, what the lower weighs, what the upper weighs."""
    scale, half = _scale(attributes, input_size, output_size), np.float32(0.5)
    place = np.arange(output_size, dtype=np.float32)
    place = (place + half) * scale - half if attributes.half_pixel_centers else place * scale
    lower = np.maximum(np.floor(place).astype(np.int64), 0)
    upper = np.minimum(np.ceil(place).astype(np.int64), input_size - 1)
    near_upper = place - lower.astype(np.float32)
    return lower, upper, np.float32(1) - near_upper, near_upper


def interpolated(op: Op, graph: Graph, data: NDArray[np.float32]) -> NDArray[np.float32]:
    """The resized image in float32, operation by operation as `ResizeBilinear`."""
    attributes, x, y = resize_attributes(op), graph.input(op, 0), graph.output(op)
    top, bottom, near_top, near_bottom = _float_weights(attributes, x.shape[1], y.shape[1])
    left, right, near_left, near_right = _float_weights(attributes, x.shape[2], y.shape[2])
    near_top, near_bottom = near_top[:, None, None], near_bottom[:, None, None]
    near_left, near_right = near_left[None, :, None], near_right[None, :, None]
    total = data[:, top][:, :, left] * near_top * near_left
    total = total + data[:, bottom][:, :, left] * near_bottom * near_left
    total = total + data[:, top][:, :, right] * near_top * near_right
    return total + data[:, bottom][:, :, right] * near_bottom * near_right


def _legacy_reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    total = interpolated(op, graph, inputs[0].astype(np.float32) + np.float32(128))
    raised = (total + np.float32(0.5)).astype(np.int64)
    return ((raised - 128).astype(np.int8),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    attributes, x, y = resize_attributes(op), graph.input(op, 0), graph.output(op)
    if attributes.legacy:
        return _legacy_reference(op, graph, inputs)
    top, bottom, down = _weights(attributes, x.shape[1], y.shape[1])
    left, right, across = _weights(attributes, x.shape[2], y.shape[2])
    data = inputs[0].astype(np.int64)
    down, across = down[:, None, None], across[None, :, None]

    def mixed(rows: NDArray[np.int64]) -> NDArray[np.int64]:
        part = data[:, rows]
        return part[:, :, left] * (ONE - across) + part[:, :, right] * across

    total = mixed(top) * (ONE - down) + mixed(bottom) * down
    half = np.where(total > 0, 1 << 19, -(1 << 19))
    rounded = np.sign(total + half) * (np.abs(total + half) >> 20)
    return (rounded.astype(y.dtype.numpy),)


def _sizes(op: Op, graph: Graph) -> dict[str, int]:
    x, y = graph.input(op, 0), graph.output(op)
    return {
        "batches": x.shape[0],
        "input_height": x.shape[1],
        "input_width": x.shape[2],
        "output_height": y.shape[1],
        "output_width": y.shape[2],
        "channels": x.shape[3],
    }


def float_fields(op: Op, graph: Graph) -> dict[str, int | str]:
    """`thimble_resize_float_params`."""
    attributes, x, y = resize_attributes(op), graph.input(op, 0), graph.output(op)
    return {
        **_sizes(op, graph),
        "row_scale": f"{float(_scale(attributes, x.shape[1], y.shape[1])).hex()}f",
        "column_scale": f"{float(_scale(attributes, x.shape[2], y.shape[2])).hex()}f",
        "half_pixel_centers": int(attributes.half_pixel_centers),
    }


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    attributes, x, y = resize_attributes(op), graph.input(op, 0), graph.output(op)
    if attributes.legacy:
        return Lowering(
            functions=("thimble_resize_bilinear_legacy",),
            fields={"legacy": True, "params": float_fields(op, graph)},
        )
    row_start, row_step = _line(attributes, x.shape[1], y.shape[1])
    column_start, column_step = _line(attributes, x.shape[2], y.shape[2])
    wide = x.dtype is DType.INT16
    function = "thimble_resize_bilinear_s16" if wide else "thimble_resize_bilinear_s8"
    return Lowering(
        functions=(function,),
        fields=_sizes(op, graph)
        | {
            "legacy": False,
            "function": function,
            "row_start": row_start,
            "row_step": row_step,
            "column_start": column_start,
            "column_step": column_step,
        },
    )


def _overlaps(op: Op, graph: Graph, core: Core) -> tuple[SafeOverlap, ...]:
    attributes, x, y = resize_attributes(op), graph.input(op, 0), graph.output(op)
    weights = _float_weights if attributes.legacy else _weights
    rows, columns = (
        weights(attributes, x.shape[axis], y.shape[axis])[0].astype(np.int64) for axis in (1, 2)
    )
    return interpolation_overlaps(op, graph, rows, columns)


def _sample(rng: np.random.Generator) -> Graph:
    shape = tuple(int(rng.integers(1, high)) for high in (3, 12, 12, 20))
    x = Tensor("x", shape, DType.INT8, sample_quantisation(rng))
    return sample_resize(rng, "resize_bilinear", x, both=False)


SPEC = OpSpec(
    kind="resize_bilinear",
    attributes=Resize,
    infer=_infer,
    reference=_reference,
    lower=_lower,
    overlaps=_overlaps,
    sample=_sample,
    tflite=TfliteBinding(
        ("RESIZE_BILINEAR",),
        read_resize,
        lambda op, graph: write_resize(op, "RESIZE_BILINEAR", "ResizeBilinearOptions"),
    ),
    limits="int8, NHWC; the size is constant",
)
