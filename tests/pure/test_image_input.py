"""A camera's frame as an input: Pillow's resizing, formats, and quantisation."""

from __future__ import annotations

import hashlib
import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.seen import SEEN, frames, seeing
from toolchain.errors import InputError
from toolchain.preprocess.image import ImageInput, PixelFormat, Resize, levels_of
from toolchain.preprocess.option import preprocess

GOLDEN = Path(__file__).parents[1] / "goldens" / "pillow_resized.json"
UNSCALED = sorted(name for name, (_, image) in SEEN.items() if not image.mean)


def of_pillow(frame: NDArray[np.uint8], shape: tuple[int, ...], image: ImageInput) -> bytes:
    """What Pillow makes of a frame: the levels of the input."""
    try:
        pillow = importlib.import_module("PIL.Image")
    except ModuleNotFoundError:
        pytest.skip("Pillow is not installed")
    height, width, channels = shape
    picture = pillow.fromarray(levels_of(frame, image, 3))
    if channels == 1:
        picture = picture.convert("L")
    if image.crop:
        wide = min(image.width, max(1, image.height * width // height))
        high = min(image.height, max(1, image.width * height // width))
        left, top = (image.width - wide) // 2, (image.height - high) // 2
        picture = picture.crop((left, top, left + wide, top + high))
    nearest = image.resize is Resize.NEAREST
    method = pillow.Resampling.NEAREST if nearest else pillow.Resampling.BILINEAR
    return np.array(picture.resize((width, height), method)).tobytes()


def _lines_first() -> bool:
    """Pillow 13 resizes columns before lines where that is less work, which rounds otherwise."""
    version: str = importlib.import_module("PIL").__version__
    return int(version.split(".")[0]) < 13


def ours(name: str, frame: NDArray[np.uint8]) -> bytes:
    shape, image = SEEN[name]
    made = image.bound(seeing(shape).tensors["x"]).input_of(frame)
    return (made.astype(int) + 128).astype(np.uint8).tobytes()


@pytest.mark.parametrize("name", UNSCALED)
def test_pixels_are_those_of_pillow(name: str) -> None:
    shape, image = SEEN[name]
    for frame in frames(image.bound(seeing(shape).tensors["x"])):
        want, got = of_pillow(frame, shape, image), ours(name, frame)
        apart = np.abs(np.array(list(want)) - np.array(list(got))).max()
        assert apart <= (0 if _lines_first() else 1)


@pytest.mark.parametrize("name", UNSCALED)
def test_pixels_are_those_that_pillow_gave(name: str) -> None:
    """Digests of the results of 12.0.0 for noise, compared where it is not installed."""
    shape, image = SEEN[name]
    noise = frames(image.bound(seeing(shape).tensors["x"]))[0]
    golden = json.loads(GOLDEN.read_text())
    assert hashlib.sha256(ours(name, noise)).hexdigest() == golden[name]


def test_the_two_byte_orders_of_rgb565() -> None:
    red, dark_green = 0xF800, 0x0020
    words = np.array([red, dark_green], dtype=np.uint16)
    for form, order in ((PixelFormat.RGB565LE, "<u2"), (PixelFormat.RGB565BE, ">u2")):
        frame = words.astype(order).view(np.uint8)
        levels = levels_of(frame, ImageInput(2, 1, form), 3)
        assert levels.tolist() == [[[255, 0, 0], [0, 4, 0]]]


def test_mean_and_std_are_those_of_training() -> None:
    """Each level of each channel, by the input's own scale."""
    image = ImageInput(1, 1, mean=(120, 100, 0), std=(60, 50, 255))
    tensor = seeing((1, 1, 3)).tensors["x"]
    bound = image.bound(tensor)
    for level in (0, 1, 100, 254, 255):
        got = bound.input_of(np.full(3, level, dtype=np.uint8)).reshape(-1)
        real = (level - np.array([120, 100, 0])) / np.array([60, 50, 255])
        want = np.clip(real / tensor.q.scale + tensor.q.zero_point, -128, 127)
        assert np.abs(got - want).max() <= 0.5 + 1e-4


def test_without_them_the_levels_fill_the_input() -> None:
    bound = ImageInput(1, 1).bound(seeing((1, 1, 1)).tensors["x"])
    np.testing.assert_array_equal(bound.values[0], np.arange(-128, 128))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image", "width=0 is not within 1 to 8192; give the camera's frame"),
        ("image:width=5,height=9000", "height=9000 is not within"),
        ("image:width=5,height=5,format=yuv", "format=yuv is not one of rgb888, bgr888"),
        ("image:width=5,height=5,resize=area", "resize=area is not one of nearest, bilinear"),
        ("image:width=5,height=5,mean=1", "mean and std go together"),
        ("image:width=5,height=5,mean=1,std=0", "std above 0"),
        ("image:width=5,height=5,mean=a,std=1", "mean=a is not one number, or one for each"),
        ("image:depth=3", "'depth' is unknown; there are: crop, format, height"),
    ],
)
def test_what_cannot_be_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        preprocess(text)
    assert message in str(raised.value)


def test_an_input_that_is_no_image_is_refused() -> None:
    with pytest.raises(InputError, match=r"\[1x4x4x2\] is no image of 1 or 3 channels"):
        ImageInput(8, 8).bound(seeing((4, 4, 2)).tensors["x"])
    with pytest.raises(InputError, match="mean has 3 numbers, input x 1 channels"):
        image = ImageInput(8, 8, mean=(1, 2, 3), std=(1, 2, 3))
        image.bound(seeing((4, 4, 1)).tensors["x"])


def test_parameters_are_read() -> None:
    made = preprocess("image:width=320,height=240,format=rgb565be,crop=off,mean=1/2/3,std=4")
    assert made == ImageInput(320, 240, PixelFormat.RGB565BE, crop=False, mean=(1, 2, 3), std=(4,))
