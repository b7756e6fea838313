"""Images and sounds from a user's files, as arrays."""

from __future__ import annotations

import io
import wave
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError
from toolchain.files.bounded import MOST_SAMPLE_BYTES, read_bounded
from toolchain.packages import IMAGES, lazy

if TYPE_CHECKING:
    import PIL
    from PIL import Image
else:
    PIL = lazy("PIL", IMAGES)
    Image = lazy("PIL.Image", IMAGES)

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp")
SOUND_SUFFIXES = (".wav",)
MOST_PIXELS = 1 << 26
_FORMATS = ("PNG", "JPEG", "BMP")
_EXTENSIBLE = b"\xfe\xff"
_PCM = bytes.fromhex("0100000000001000800000aa00389b71")
"""The sub-format of PCM within WAVE_FORMAT_EXTENSIBLE, which files of 24 and 32 bits mostly are."""


def read_image(
    file: Path, height: int, width: int, channels: int, resize: bool
) -> NDArray[np.uint8]:
    """An image as [height, width, channels], 0 to 255; of 1 channel: its luma (ITU-R 601); of 3:
    red, green, blue; of 4: with alpha. The upper eight of 16 bits count.

    Raises InputError, naming the file, if it is no image, is larger than MOST_PIXELS, or has
    another size (with `resize` it is scaled, bilinearly); MissingToolError without Pillow.
    """
    modes = {1: "L", 3: "RGB", 4: "RGBA"}
    if channels not in modes:
        raise InputError(
            f"{file} is an image, and the input has {channels} channels, not 1, 3 or 4"
        )
    data = io.BytesIO(read_bounded(file, MOST_SAMPLE_BYTES))
    try:
        with Image.open(data, formats=_FORMATS) as opened:
            if opened.width * opened.height > MOST_PIXELS:
                raise InputError(
                    f"{file} has {opened.width} x {opened.height} pixels, more than {MOST_PIXELS:,}"
                )
            if (opened.height, opened.width) != (height, width) and not resize:
                raise InputError(
                    f"{file} is {opened.height} pixels high and {opened.width} wide, and the input "
                    f"{height} x {width}: crop or scale it, or let --resize scale it"
                )
            image = _of_8_bits(opened).convert(modes[channels])
            if image.size != (width, height):
                image = image.resize((width, height), Image.Resampling.BILINEAR)
            return np.asarray(image, np.uint8).reshape(height, width, channels)
    except (InputError, MemoryError):
        raise
    except PIL.UnidentifiedImageError as error:
        raise InputError(
            f"{file} is no image that can be read: what is in it is none of {', '.join(_FORMATS)}"
        ) from error
    except Exception as error:  # Pillow's decoders raise a dozen kinds
        said = str(error).splitlines() or [type(error).__name__]
        raise InputError(f"{file} is no image that can be read: {said[0][:200]}") from error


def _of_8_bits(image: Image.Image) -> Image.Image:
    """Grey of 16 bits, which Pillow would clip at 255, by the upper eight, as it reads colours."""
    if not image.mode.startswith("I"):
        return image
    return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))


def read_sound(file: Path) -> tuple[NDArray[np.float64], int, int]:
    """The samples of a PCM .wav, the mean of its channels; the bits of a sample; samples a second.

    Samples are signed whole numbers (8-bit files, which are not, are moved by 128), with halves
    where two channels are averaged. Raises InputError, naming the file, for anything but PCM of 8,
    16, 24 or 32 bits.
    """
    try:
        with wave.open(io.BytesIO(_plain(read_bounded(file, MOST_SAMPLE_BYTES)))) as source:
            width, channels = source.getsampwidth(), source.getnchannels()
            rate, data = source.getframerate(), source.readframes(source.getnframes())
    except (wave.Error, EOFError, RuntimeError, ValueError) as error:
        said = str(error) or "it ends early"
        raise InputError(f"{file} is no .wav of PCM samples: {said}") from error
    if not 1 <= width <= 4 or not data or len(data) % (width * channels):
        raise InputError(f"{file} is no .wav of PCM samples of 8, 16, 24 or 32 bits")
    raw = np.frombuffer(data, np.uint8).reshape(-1, width).astype(np.int64)
    if width == 1:
        samples = raw[:, 0] - 128
    else:
        samples = (raw << (8 * np.arange(width))).sum(axis=1)
        samples -= (samples >> (8 * width - 1)) << 8 * width
    return samples.reshape(-1, channels).mean(axis=1), 8 * width, rate


def _plain(content: bytes) -> bytes:
    """A .wav with the tag of PCM in place of WAVE_FORMAT_EXTENSIBLE, where that holds PCM: before
    Python 3.12 `wave` does not look into it.
    """
    at = 12
    while at + 8 <= len(content):
        size = int.from_bytes(content[at + 4 : at + 8], "little")
        if content[at : at + 4] == b"fmt ":
            tag, inner = content[at + 8 : at + 10], content[at + 32 : at + 48]
            if tag == _EXTENSIBLE and inner == _PCM:
                return content[: at + 8] + _PCM[:2] + content[at + 10 :]
            break
        at += 8 + size + size % 2
    return content
