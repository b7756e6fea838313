"""A camera's frame as a model's input: cut, resized, converted and quantised.

Resizing is that of Pillow before 13, bit for bit (`Resample.c`): `nearest` takes the pixel at the
middle of each output pixel, `bilinear` weighs all pixels that it covers by a triangle, lines first,
then columns, each rounded to 8 bits. Grey is Pillow's conversion to L (ITU-R 601-2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError
from toolchain.ir import DType, Tensor

UInt8 = NDArray[np.uint8]
Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]

WEIGHT_BITS = 22
"""Fractional bits of a weight of a pixel (`PRECISION_BITS`)."""
GREY = (19595, 38470, 7471)
"""Weights of red, green and blue in grey, with 16 fractional bits."""
_GREY_BITS = 16
_MOST_SIDE = 8192
_LEVELS = 256


class PixelFormat(StrEnum):
    """How a pixel lies in memory: RGB565 as words of 16 bits, in either byte order."""

    RGB888 = "rgb888"
    BGR888 = "bgr888"
    RGB565LE = "rgb565le"
    RGB565BE = "rgb565be"
    GREY8 = "grey8"

    @property
    def pixel_bytes(self) -> int:
        return {"rgb888": 3, "bgr888": 3, "grey8": 1}.get(self.value, 2)


class Resize(StrEnum):
    """How an image is resized, by Pillow's names."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"


@dataclass(frozen=True)
class ImageInput:
    """Parameters of `--preprocess image`.

    width, height  pixels of the camera's frame.
    format     of its pixels.
    crop       cut the largest part from the middle that has the input's proportions; otherwise all
               of the frame is squeezed into the input.
    mean, std  the model was trained on (pixel - mean) / std, with pixels from 0 to 255: one number,
               or one for each of its channels. Empty: on pixels over its input's whole range.
    """

    width: int = 0
    height: int = 0
    format: PixelFormat = PixelFormat.RGB888
    resize: Resize = Resize.BILINEAR
    crop: bool = True
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check the parameters. Raises InputError naming the one beyond its limits."""
        for name in ("width", "height"):
            value = getattr(self, name)
            if not 1 <= value <= _MOST_SIDE:
                raise InputError(
                    f"image: {name}={value} is not within 1 to {_MOST_SIDE}; give the camera's "
                    "frame as width=W,height=H"
                )
        if not all(map(math.isfinite, (*self.mean, *self.std))) or any(s <= 0 for s in self.std):
            raise InputError("image: mean and std are finite numbers, std above 0")
        if bool(self.mean) != bool(self.std):
            raise InputError("image: mean and std go together")

    def bound(self, tensor: Tensor) -> BoundImage:
        """Bind the frame to a model's input. Raises InputError if it is no image."""
        shape = "x".join(map(str, tensor.shape))
        if len(tensor.shape) != 4 or tensor.shape[0] != 1 or tensor.shape[3] not in (1, 3):
            raise InputError(
                f"--preprocess image: input {tensor.name} [{shape}] is no image of 1 or 3 channels"
            )
        if tensor.dtype is not DType.INT8 or tensor.quantisation is None:
            raise InputError(
                f"--preprocess image: input {tensor.name} is {tensor.dtype.value}, not int8"
            )
        _, height, width, channels = tensor.shape
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (0, 1, channels):
                raise InputError(
                    f"--preprocess image: {name} has {len(values)} numbers, input {tensor.name} "
                    f"{channels} channels"
                )
        part_width, part_height = self.width, self.height
        if self.crop:
            part_width = min(self.width, max(1, self.height * width // height))
            part_height = min(self.height, max(1, self.width * height // width))
        return BoundImage(
            self,
            tensor,
            _taps(part_width, width, (self.width - part_width) // 2, self.resize),
            _taps(part_height, height, (self.height - part_height) // 2, self.resize),
            self._values(tensor, channels),
        )

    def _values(self, tensor: Tensor, channels: int) -> Int8:
        levels = np.arange(_LEVELS, dtype=np.float64)
        if not self.mean:
            stored = levels + np.iinfo(np.int8).min
            return np.tile(stored.astype(np.int8), (channels, 1))
        mean, std = (np.resize(np.array(v), channels)[:, None] for v in (self.mean, self.std))
        ratio = ((levels - mean) / std).astype(np.float32) / np.float32(tensor.q.scale)
        rounded = np.trunc(ratio.astype(np.float64) + np.copysign(0.5, ratio))
        stored = np.clip(rounded + tensor.q.zero_point, -128, 127)
        result: Int8 = stored.astype(np.int8)
        return result


@dataclass(frozen=True)
class Taps:
    """The pixels of a line (or column) that make each pixel of the output.

    Output i is the sum of pixels from `starts[i]`, each times its weight of `weights[i]`, rounded.
    Weights that are not needed are 0, and their pixels lie in the frame.
    """

    starts: NDArray[np.uint16]
    weights: Int32

    @property
    def count(self) -> int:
        return int(self.weights.shape[1])


def _taps(source: int, target: int, offset: int, resize: Resize) -> Taps:
    """Taps that resize `source` pixels, from `offset` on, to `target` pixels."""
    ratio = source / target
    if resize is Resize.NEAREST:
        middles = accumulate([ratio] * (target - 1), initial=ratio * 0.5)  # as Pillow rounds them
        nearest = [min(int(middle), source - 1) + offset for middle in middles]
        whole = np.full((target, 1), 1 << WEIGHT_BITS, dtype=np.int32)
        return Taps(np.array(nearest, dtype=np.uint16), whole)
    reach = max(ratio, 1.0)
    count = min(math.ceil(reach) * 2 + 1, source)
    starts = np.zeros(target, dtype=np.uint16)
    weights = np.zeros((target, count), dtype=np.int32)
    for i in range(target):
        centre = (i + 0.5) * ratio
        first = max(int(centre - reach + 0.5), 0)
        end = min(int(centre + reach + 0.5), source)
        real = [
            max(0.0, 1.0 - abs((pixel - centre + 0.5) * (1.0 / reach)))
            for pixel in range(first, end)
        ]
        total = sum(real)
        begin = min(first, source - count)
        for pixel, weight in zip(range(first, end), real, strict=True):
            weights[i, pixel - begin] = int(0.5 + weight / total * (1 << WEIGHT_BITS))
        starts[i] = begin + offset
    return Taps(starts, weights)


@dataclass(frozen=True)
class BoundImage:
    """A frame for the input `tensor`: `columns` and `rows` say which pixels, `values` (channels,
    256) what a pixel's levels become.
    """

    image: ImageInput
    tensor: Tensor
    columns: Taps
    rows: Taps
    values: Int8

    @property
    def line_bytes(self) -> int:
        return self.image.width * self.image.format.pixel_bytes

    @property
    def frame_bytes(self) -> int:
        return self.line_bytes * self.image.height

    def input_of(self, frame: UInt8) -> Int8:
        """The input for a frame, which is the bytes of its lines one after the other."""
        channels = self.tensor.shape[3]
        pixels = levels_of(frame, self.image, channels).astype(np.int64)
        half = 1 << (WEIGHT_BITS - 1)
        taken = pixels[:, self.columns.starts[:, None] + np.arange(self.columns.count)]
        lines = (np.einsum("ywtc,wt->ywc", taken, self.columns.weights) + half) >> WEIGHT_BITS
        lines = np.clip(lines, 0, _LEVELS - 1)
        taken = lines[self.rows.starts[:, None] + np.arange(self.rows.count)]
        levels = (np.einsum("htwc,ht->hwc", taken, self.rows.weights) + half) >> WEIGHT_BITS
        levels = np.clip(levels, 0, _LEVELS - 1)
        stored = [self.values[c][levels[..., c]] for c in range(channels)]
        return np.stack(stored, axis=-1)[None]


def frame_of(pixels: UInt8, image: ImageInput) -> UInt8:
    """The bytes of a camera's frame that shows `pixels`: (height, width, channels), red first, one
    channel for GREY8 and three for the others. Formats of 16 bits drop the lower bits.
    """
    if image.format is PixelFormat.BGR888:
        pixels = pixels[..., ::-1]
    if image.format.pixel_bytes != 2:
        return np.ascontiguousarray(pixels).reshape(-1)
    red, green, blue = (pixels[..., c].astype(np.uint16) for c in range(3))
    order = "<u2" if image.format is PixelFormat.RGB565LE else ">u2"
    words = (red >> 3 << 11 | green >> 2 << 5 | blue >> 3).astype(order)
    return np.frombuffer(words.tobytes(), np.uint8)


def levels_of(frame: UInt8, image: ImageInput, channels: int) -> UInt8:
    """The pixels of a frame from 0 to 255: shape (height, width, channels), red first."""
    shape = (image.height, image.width)
    if image.format is PixelFormat.GREY8:
        return np.repeat(frame.reshape(*shape, 1), channels, axis=2)
    if image.format.pixel_bytes == 3:
        colours = frame.reshape(*shape, 3)
        colours = colours[..., ::-1] if image.format is PixelFormat.BGR888 else colours
    else:
        order = "<u2" if image.format is PixelFormat.RGB565LE else ">u2"
        words = frame.view(order).reshape(shape).astype(np.uint16)
        red, green, blue = words >> 11, words >> 5 & 63, words & 31
        colours = np.stack(
            [red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2], axis=-1
        ).astype(np.uint8)
    if channels == 3:
        whole: UInt8 = colours
        return whole
    grey = (colours.astype(np.int64) @ np.array(GREY) + (1 << (_GREY_BITS - 1))) >> _GREY_BITS
    single: UInt8 = grey[..., None].astype(np.uint8)
    return single
