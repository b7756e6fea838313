"""Windows that slide over NHWC images: kernel, stride, dilation and padding.

Convolutions and pools share them. Heights and widths come as pairs (height, width), in pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from toolchain.ops.kernel import Argument, Call
from toolchain.ops.spec import OnnxNode, TfliteNode

_INT16_MAX = 32767
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True)
class Padding:
    """Rows and columns that are added around an image.

    For a convolution they hold real 0.0. For a pool they hold nothing: they take part neither in a
    maximum nor in the count of an average.
    """

    top: int = 0
    left: int = 0
    bottom: int = 0
    right: int = 0


UNPADDED = Padding()


@dataclass(frozen=True)
class Window:
    """How a window slides over an image. `kernel`: its taps along each axis."""

    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: Padding = UNPADDED

    @property
    def extent(self) -> tuple[int, int]:
        """Height and width of the part of the image that one window spans, dilation included."""
        return (
            (self.kernel[0] - 1) * self.dilation[0] + 1,
            (self.kernel[1] - 1) * self.dilation[1] + 1,
        )

    def output_size(self, height: int, width: int) -> tuple[int, int]:
        """Output height and width for an image of this size.

        Raises ValueError if the padded image is smaller than one window.
        """
        pad, (extent_h, extent_w) = self.padding, self.extent
        if min(*self.stride, *self.dilation, *self.kernel) < 1:
            raise ValueError(f"stride, dilation and kernel must be positive: {self}")
        if min(pad.top, pad.left, pad.bottom, pad.right) < 0:
            raise ValueError(f"negative padding {pad}")
        rest_h = height + pad.top + pad.bottom - extent_h
        rest_w = width + pad.left + pad.right - extent_w
        if rest_h < 0 or rest_w < 0:
            raise ValueError(
                f"a window of {extent_h}x{extent_w} does not fit the padded {height}x{width} image"
            )
        return rest_h // self.stride[0] + 1, rest_w // self.stride[1] + 1


def same_padding(
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int] = (1, 1),
) -> Padding:
    """The padding that TFLite calls SAME: ceil(size / stride) outputs along each axis.

    An odd pixel goes to the bottom or to the right (`ComputePaddingHeightWidth`).
    """

    def total(length: int, k: int, s: int, d: int) -> int:
        out = -(-length // s)
        return max((out - 1) * s + (k - 1) * d + 1 - length, 0)

    rows = total(size[0], kernel[0], stride[0], dilation[0])
    columns = total(size[1], kernel[1], stride[1], dilation[1])
    return Padding(rows // 2, columns // 2, rows - rows // 2, columns - columns // 2)


def padding_scheme(window: Window, size: tuple[int, int]) -> str:
    """TFLite's name of the window's padding: 'VALID' or 'SAME'. Raises ValueError if it is neither.

    `size`: height and width of the image.
    """
    if window.padding == UNPADDED:
        return "VALID"
    if window.padding == same_padding(size, window.kernel, window.stride, window.dilation):
        return "SAME"
    raise ValueError(f"{window.padding} is neither SAME nor VALID padding")


def check_16_bits(node: TfliteNode | OnnxNode, name: str, pair: Sequence[int]) -> None:
    """Raise UnsupportedError if a height or width does not fit the 16 bits kernels keep it in."""
    if max(pair) > _INT16_MAX:
        raise node.unsupported(
            f"{name} {list(pair)} beyond {_INT16_MAX:,}: kernels keep 16 bits of it",
            "use a smaller window or stride",
        )


@dataclass(frozen=True)
class Along:
    """Counts of the windows along one axis of an image.

    `windows` is their number, `taps` the sum of their taps inside the image, `whole` the number of
    windows that lie inside the image altogether, `last` the number of those that end at its last
    pixel.
    """

    windows: int
    taps: int
    whole: int
    last: int


def along(
    size: int, windows: int, kernel: int, stride: int, dilation: int, before: int, margin: int
) -> Along:
    """Count windows and taps along one axis, in pixels.

    `before` is the padding at the start. A window counts as whole only if `margin` more pixels
    follow its last tap.
    """
    taps = whole = last = 0
    for first in range(-before, windows * stride - before, stride):
        inside = range(max(-(first // dilation), 0) if first < 0 else 0, kernel)
        end = min(kernel, -(-(size - first) // dilation)) if first < size else 0
        taps += max(end - inside.start, 0)
        final = first + (kernel - 1) * dilation
        whole += first >= 0 and final + margin < size
        last += first >= 0 and final == size - 1
    return Along(windows, taps, whole, last)


def image_patches(
    image: NDArray[Number], window: Window, shape: tuple[int, ...]
) -> Iterator[tuple[tuple[int, int], NDArray[Number]]]:
    """Each tap (row, column) of a window, and the values that the pixels of an output of this shape
    read there, 0 outside the image.
    """
    pad, (stride_h, stride_w) = window.padding, window.stride
    _, height, width, _ = shape
    wide = np.pad(image, ((0, 0), (pad.top, pad.bottom), (pad.left, pad.right), (0, 0)))
    for row, column in np.ndindex(*window.kernel):
        top, left = row * window.dilation[0], column * window.dilation[1]
        yield (row, column), wide[:, top::stride_h, left::stride_w][:, :height, :width]


def walked(x: Sequence[int], y: Sequence[int], window: Window) -> tuple[Along, Along]:
    """The windows along the rows and along the columns of an image of shape `x`, for outputs of
    shape `y`.
    """
    pads = (window.padding.top, window.padding.left)
    rows, columns = (
        along(
            x[1 + i], y[1 + i], window.kernel[i], window.stride[i], window.dilation[i], pads[i], 0
        )
        for i in (0, 1)
    )
    return rows, columns


def window_reach(sizes: Iterable[tuple[int, int, int, int, int]]) -> int:
    """The largest coordinate that a kernel computes while a window slides over an image.

    `sizes` has one entry per axis: outputs, stride, kernel, dilation, padding.
    """
    return max(
        outputs * stride + kernel * dilation + abs(pad)
        for outputs, stride, kernel, dilation, pad in sizes
    )


def sized(name: str, sizes: Iterable[int]) -> dict[str, Argument]:
    """Members of a struct in C: height, width and, where there are three sizes, channels."""
    return {f"{name}_{axis}": size for axis, size in zip("hwc", sizes, strict=False)}


def window_members(window: Window) -> dict[str, Argument]:
    """Members of a struct in C that say how a window moves."""
    pads = {"pad_top": window.padding.top, "pad_left": window.padding.left}
    return sized("stride", window.stride) | sized("dilation", window.dilation) | pads


def shape_in(call: Call, struct: str, image: str) -> tuple[int, ...]:
    """The shape [batches, height, width, channels] of `image`, "input" or "output", that a call's
    struct has.
    """
    return call[f"{struct}.batches"], *(call[f"{struct}.{image}_{axis}"] for axis in "hwc")


def reach_in(call: Call, struct: str) -> int:
    """`window_reach` of the window that a call's struct has."""
    return window_reach(
        (
            call[f"{struct}.output_{axis}"],
            call[f"{struct}.stride_{axis}"],
            call[f"{struct}.kernel_{axis}"],
            call.get(f"{struct}.dilation_{axis}", 1),
            call[f"{struct}.pad_{side}"],
        )
        for axis, side in (("h", "top"), ("w", "left"))
    )
