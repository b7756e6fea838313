"""Parts of max and average pooling: attributes, shape rule, reader and writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.readers.float32 import clamped


@dataclass(frozen=True)
class Pool2D(kit.Attributes):
    """Sizes in pixels. Padding takes part neither in a maximum nor in the count of an average.

    `lift` is added to the stored values before an average rounds, and taken off afterwards: 128
    for legacy uint8 models, whose averages round above 0; else 0.
    """

    filter_height: int
    filter_width: int
    stride_height: int
    stride_width: int
    padding: kit.Padding = kit.UNPADDED
    activation: kit.Activation = kit.Activation.NONE
    lift: int = 0


def pool_window(op: kit.Operator[Pool2D]) -> kit.Window:
    """The window that slides over the image."""
    attributes = op.attributes
    return kit.Window(
        (attributes.filter_height, attributes.filter_width),
        (attributes.stride_height, attributes.stride_width),
        padding=attributes.padding,
    )


def infer_pool(op: kit.Operator[Pool2D]) -> kit.TensorTypes:
    """Shape rule. Raises ValueError for a window that covers no input at all."""
    attributes, x = op.attributes, op.x
    if len(x.shape) != 4:
        raise ValueError(f"pooling needs a 4-dimensional NHWC input, not {list(x.shape)}")
    if x.dtype not in (kit.DType.INT8, kit.DType.INT16, kit.DType.FLOAT32):
        raise ValueError(f"pooling needs int8, int16 or float32 data, not {x.dtype.value}")
    batches, height, width, channels = x.shape
    window, pad = pool_window(op), attributes.padding
    out_height = _positions(height, window.kernel[0], window.stride[0], pad.top, pad.bottom)
    out_width = _positions(width, window.kernel[1], window.stride[1], pad.left, pad.right)
    return (kit.TensorType((batches, out_height, out_width, channels), x.dtype),)


def _positions(size: int, window: int, stride: int, before: int, after: int) -> int:
    if window < 1 or stride < 1:
        raise ValueError(f"window {window} and stride {stride} must be at least 1")
    if not 0 <= before < window:
        raise ValueError(f"padding {before} before the data leaves a window {window} wide empty")
    count = (size + before + after - window) // stride + 1
    if count < 1:
        raise ValueError(f"a window {window} wide does not fit {size} padded by {before + after}")
    if (count - 1) * stride - before >= size:
        raise ValueError("the padding after the data leaves the last window empty")
    return count


def pool_axes(op: kit.Operator[Pool2D]) -> tuple[kit.Axis, ...]:
    """Rows, columns and channels."""
    image = kit.window_axes(op, pool_window(op), lambda pad: replace(op.attributes, padding=pad))
    return (*image, *(axis for axis in kit.elementwise_axes(op) if axis.axis == 3))


def windows(op: kit.Operator[Pool2D], image: kit.Array) -> Iterator[tuple[int, int, NDArray[Any]]]:
    """Row and column of every output position in row-major order, and the part of the image
    [batches, rows, columns, channels] that its window covers.
    """
    window, y = pool_window(op), op.y.shape

    def covered(place: int, axis: int, before: int) -> slice:
        first = place * window.stride[axis] - before
        return slice(max(first, 0), first + window.kernel[axis])

    for row, column in np.ndindex(y[1], y[2]):
        rows, columns = covered(row, 0, window.padding.top), covered(column, 1, window.padding.left)
        yield row, column, image[:, rows, columns]


def read_pool(node: kit.TfliteNode) -> kit.ReadOp:
    """The attributes of a TFLite pool. Raises UnsupportedError for those no kernel can compute."""
    options, x = node.options, node.inputs[0]
    assert x is not None
    if len(x.shape) != 4:
        raise node.unsupported(f"an input of {len(x.shape)} dimensions instead of 4")
    window = (int(options.filterHeight), int(options.filterWidth))
    stride = (int(options.strideH), int(options.strideW))
    if min(*window, *stride) < 1:
        raise node.unsupported(f"window {window} or stride {stride} below 1")
    padding = kit.UNPADDED
    if options.padding == "SAME":
        padding = kit.same_padding((x.shape[1], x.shape[2]), window, stride)
        kit.check_16_bits(node, "padding", (padding.top, padding.left))
    lift = 128 if node.legacy and node.builtin == "AVERAGE_POOL_2D" else 0
    return kit.ReadOp(Pool2D(*window, *stride, padding, kit.read_activation(node), lift), (0,))


def write_pool(op: kit.Operator[Pool2D], builtin: str) -> kit.WrittenOp:
    """The TFLite operator `builtin`. Raises ValueError if its padding is neither SAME nor VALID."""
    attributes, x = op.attributes, op.x
    options = {
        "padding": kit.padding_scheme(pool_window(op), (x.shape[1], x.shape[2])),
        "filterHeight": attributes.filter_height,
        "filterWidth": attributes.filter_width,
        "strideH": attributes.stride_height,
        "strideW": attributes.stride_width,
        "fusedActivationFunction": attributes.activation,
    }
    return kit.WrittenOp(builtin, "Pool2DOptions", options, version=2)


def float_reference(
    reduced: Callable[[kit.Float32], kit.Float32],
) -> Callable[[kit.Operator[Pool2D], kit.Inputs], kit.Arrays]:
    """A float32 reference: `reduced` makes [batches, channels] of the [taps, batches, channels] of
    a window.
    """

    def reference(op: kit.Operator[Pool2D], inputs: kit.Inputs) -> kit.Arrays:
        result = np.empty(op.y.shape, np.float32)
        with np.errstate(all="ignore"):
            for row, column, part in windows(op, inputs[0].astype(np.float32)):
                taps = part.reshape(len(part), -1, part.shape[3])
                result[:, row, column] = reduced(taps.swapaxes(0, 1))
        return (clamped(result, op.attributes.activation),)

    return reference


def mean_of(taps: kit.Float32) -> kit.Float32:
    """The mean along the first axis, one tap after the other, in float32."""
    total = np.zeros(taps.shape[1:], np.float32)
    for tap in taps:
        total = total + tap
    return np.asarray(total / np.float32(len(taps)))


def sample_pool(rng: np.random.Generator, kind: str) -> kit.Graph:
    """A random pool: odd sizes, every activation; with padding SAME also windows
    beyond the input.
    """
    batches, height, width = (int(rng.integers(1, high)) for high in (3, 12, 12))
    channels = int(rng.choice([1, 3, 4, 16, 17, 33]))
    window = (int(rng.integers(1, 6)), int(rng.integers(1, 6)))
    if rng.random() < 0.2:
        window = (height, width)
    stride = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    padding = kit.UNPADDED
    if rng.random() < 0.6 or window[0] > height or window[1] > width:
        padding = kit.same_padding((height, width), window, stride)
    quantisation: kit.Quantisation = kit.sample_quantisation(rng)
    activation = kit.sample_activation(rng)
    x = kit.Tensor("x", (batches, height, width, channels), kit.DType.INT8, quantisation)
    return kit.sample(kind, Pool2D(*window, *stride, padding, activation), x, name="pool")


def pool_form(
    kind: str,
    builtin: str,
    *,
    reference: Callable[[kit.Operator[Pool2D], kit.Inputs], kit.Arrays],
    select: kit.Select,
    onnx: kit.OnnxBinding | None = None,
    limits: str = "int8, NHWC",
) -> kit.Form[Pool2D]:
    """The int8 form of `kind`, TFLite's `builtin`."""
    return kit.Form(
        kind=kind,
        attributes=Pool2D,
        infer=infer_pool,
        reference=reference,
        select=select,
        sample=lambda rng: sample_pool(rng, kind),
        tflite=kit.TfliteBinding((builtin,), read_pool, lambda op: write_pool(op, builtin)),
        axes=pool_axes,
        onnx=onnx,
        dtype=kit.DType.INT8,
        limits=limits,
    )
