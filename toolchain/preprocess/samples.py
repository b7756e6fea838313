"""A user's samples as a model's inputs: arrays, images, sounds, tables; scaled and quantised.

A stored value (a pixel of 0 to 255) is not the value that a model was trained on (0 to 1, say).
`Scaling` says how one becomes the other, and an input with a scale and zero point is quantised
from that.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError
from toolchain.files.arrays import (
    LARGEST_BYTES,
    MOST_ELEMENTS,
    Array,
    Check,
    array_file,
    read_array,
    read_named_arrays,
)
from toolchain.files.bounded import read_bounded
from toolchain.files.tables import TABLE_SUFFIXES, read_table
from toolchain.ir import DType, End, Quantisation
from toolchain.preprocess.audio_input import BoundAudio
from toolchain.preprocess.image import BoundImage, PixelFormat, frame_of
from toolchain.preprocess.media import IMAGE_SUFFIXES, SOUND_SUFFIXES, read_image, read_sound
from toolchain.preprocess.option import Bound

MOST_INFERENCES = 1_000_000
"""Limit for one input's data. More is a mistake, or a small file that unpacks to endless zeros."""
_CHANNELS = (1, 3, 4)
_PATTERN = frozenset("*?[")


@dataclass(frozen=True)
class Scaling:
    """How stored numbers become real values: first linearly, so that the least and the greatest
    that a pixel or a sound sample can be become the ends of `range`; then minus `mean`, divided by
    `std` (one number each, or one for each channel).

    `real`: numbers of arrays and tables are real values, also where the input is quantised.
    `resize`: images are scaled to the input's size. `channels_first`: an image's place among the
    axes of the input, where the model does not say; None: by the shape.
    """

    range: tuple[float, float] | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    real: bool = False
    resize: bool = False
    channels_first: bool | None = None

    @property
    def scales(self) -> bool:
        return bool(self.real or self.range is not None or self.mean or self.std)

    def check(self) -> None:
        """Raises InputError for a range without extent, and a deviation of 0."""
        if self.range is not None and not self.range[0] < self.range[1]:
            raise InputError(
                f"--range {self.range[0]:g}..{self.range[1]:g} has no extent: the smaller number "
                "is first"
            )
        if any(deviation == 0 for deviation in self.std):
            raise InputError("--std is 0, and divides")


AS_STORED = Scaling()


def read_samples(
    files: Sequence[Path],
    ends: Sequence[End],
    scaling: Scaling = AS_STORED,
    source: Bound | None = None,
) -> list[dict[str, Array]]:
    """Inputs by name, one inference after another, in the model's own shapes and types.

    For a model with one input, the data of all files in turn; otherwise one file for each input in
    the model's order, or one .npz. A folder means its files, a pattern (`*.png`) those that it
    matches, sorted, and `FILE.npz:NAME` one array of the file. `source`: what `--preprocess`
    compiled in for the one input; sounds, or images, become the input as they do on the board.
    Raises InputError, naming file and input, for data of another size, type or order of axes, and
    where inputs have data for different numbers of inferences.
    """
    scaling.check()
    if len(files) == 1 and files[0].suffix == ".npz":
        arrays = read_named_arrays(files[0], {end.name: _check(files[0], end) for end in ends})
        read = {end.name: _array(arrays[end.name], files[0], end, scaling) for end in ends}
    elif len(ends) == 1:
        (end,) = ends
        read = {end.name: _joined(files_of(files), end, scaling, source)}
    elif len(files) != len(ends):
        names = ", ".join(end.name for end in ends)
        raise InputError(f"{len(files)} input files for {len(ends)} inputs ({names})")
    else:
        read = {
            end.name: _joined(expanded(given), end, scaling)
            for given, end in zip(files, ends, strict=True)
        }
    counts = {len(values) for values in read.values()}
    if len(counts) > 1:
        raise InputError("the inputs hold data for different numbers of inferences")
    count = max(counts, default=0)
    if count > MOST_INFERENCES:
        raise InputError(f"{count:,} inferences at once: the most is {MOST_INFERENCES:,}")
    return [{name: values[i] for name, values in read.items()} for i in range(count)]


def array_samples(
    values: Array, where: Path, end: End, scaling: Scaling = AS_STORED
) -> list[dict[str, Array]]:
    """As `read_samples`, for an array in memory of one input's data. `where` names it in errors."""
    scaling.check()
    _check_size(values.shape, where, end)
    return [{end.name: one} for one in _array(values, where, end, scaling)]


def expanded(given: Path) -> list[Path]:
    """The files that a folder or a pattern stands for, sorted. Raises InputError for none."""
    if given.is_dir():
        found = sorted(p for p in given.iterdir() if p.is_file() and p.name[0] != ".")
        if not found:
            raise InputError(f"{given} is an empty folder")
        return found
    if _PATTERN & set(str(given)) and not given.exists():
        root = Path(given.anchor) if given.is_absolute() else Path()
        pattern = str(given.relative_to(given.anchor)) if given.is_absolute() else str(given)
        found = sorted(p for p in root.glob(pattern) if p.is_file())
        if not found:
            raise InputError(f"no file matches {given}")
        return found
    return [given]


def _check(file: Path, end: End) -> Check:
    """A check of an array's shape, before its data are read."""
    return lambda shape: _check_size(shape, file, end)


def _joined(
    files: Sequence[Path], end: End, scaling: Scaling, source: Bound | None = None
) -> Array:
    """The data of files in turn. Raises InputError where they are too much together."""
    parts: list[Array] = []
    for file in files:
        parts.append(_values(file, end, scaling, source))
        if sum(part.size for part in parts) > MOST_ELEMENTS:
            raise InputError(
                f"with {file} the data for input {end.name!r} have more than {MOST_ELEMENTS:,} "
                "numbers, the most at once"
            )
    return np.concatenate(parts) if parts else np.empty(0)


def _values(file: Path, end: End, scaling: Scaling, source: Bound | None) -> Array:
    """The data of one file, inference by inference."""
    suffix = file.suffix.lower()
    archive, name = array_file(file)
    if name:
        arrays = read_named_arrays(archive, {name: _check(archive, end)})
        return _array(arrays[name], archive, end, scaling)
    if isinstance(source, BoundAudio) and suffix in SOUND_SUFFIXES:
        return _heard(file, end, scaling, source)
    if isinstance(source, BoundImage) and suffix in IMAGE_SUFFIXES:
        return _seen(file, end, scaling, source)
    if suffix in IMAGE_SUFFIXES:
        return _image(file, end, scaling)
    if suffix in SOUND_SUFFIXES:
        return _sound(file, end, scaling)
    if suffix in TABLE_SUFFIXES:
        return _array(read_table(file), file, end, scaling)
    if suffix == ".npz":
        arrays = read_named_arrays(file, {end.name: _check(file, end)})
        return _array(arrays[end.name], file, end, scaling)
    if suffix == ".npy":
        return _array(read_array(file, _check(file, end)), file, end, scaling)
    return _fitted(_raw(file, end), file, end)


def _image(file: Path, end: End, scaling: Scaling) -> Array:
    height, width, channels, first = _image_axes(file, end, scaling)
    pixels = read_image(file, height, width, channels, scaling.resize)
    values = _scaled(pixels, (0.0, 255.0), DType.UINT8, file, end, scaling)
    if first:
        values = np.moveaxis(values, -1, 0)
    return np.ascontiguousarray(values).reshape((1, *end.model_shape))


def _image_axes(file: Path, end: End, scaling: Scaling) -> tuple[int, int, int, bool]:
    """Height, width, channels, and whether the channels come first."""
    shape = end.model_shape[1:] if end.model_shape[:1] == (1,) else end.model_shape
    if len(shape) == 2:
        return *shape, 1, False
    if len(shape) != 3:
        raise InputError(
            f"{file} is an image, and input {end.name!r} of shape {list(end.model_shape)} is none"
        )
    first = scaling.channels_first
    if end.boundary is not None and end.boundary.permutation:
        first = True
    if first is None:
        first = shape[0] in _CHANNELS and shape[2] not in _CHANNELS
    return (shape[1], shape[2], shape[0], True) if first else (*shape, False)


def heard(
    file: Path, end: End, scaling: Scaling, source: BoundAudio
) -> tuple[int, Iterator[Array]]:
    """The samples of a sound, and one by one the inputs that `--preprocess audio` makes of them.

    Raises InputError, naming the file, for a sound of another rate, and for a `scaling`.
    """
    _check_unscaled(file, scaling)
    samples, bits, rate = read_sound(file)
    wanted = source.features.rate
    if rate != wanted:
        raise InputError(
            f"{file} has {rate:,} samples a second, and the model was compiled with --preprocess "
            f"audio for {wanted:,}: convert it, or compile with audio:rate={rate}"
        )
    limits = np.iinfo(np.int16)
    stored = np.clip(np.rint(samples * 2.0 ** (16 - bits)), limits.min, limits.max)
    windows = source.windows(stored.astype(np.int16))
    return len(samples), (end.to_model(window) for window in windows)


def _heard(file: Path, end: End, scaling: Scaling, source: BoundAudio) -> Array:
    count, windows = heard(file, end, scaling, source)
    made = list(windows)
    if not made:
        raise InputError(
            f"{file} has {count:,} samples: too few for the {source.frames} frames of input "
            f"{end.name!r}"
        )
    return np.stack(made)


def _seen(file: Path, end: End, scaling: Scaling, source: BoundImage) -> Array:
    """The input that `--preprocess image` makes of a camera's frame."""
    _check_unscaled(file, scaling)
    image = source.image
    channels = 1 if image.format is PixelFormat.GREY8 else 3
    pixels = read_image(file, image.height, image.width, channels, scaling.resize)
    return end.to_model(source.input_of(frame_of(pixels, image)))[None]


def _check_unscaled(file: Path, scaling: Scaling) -> None:
    if scaling.scales:
        raise InputError(
            f"{file}: the --preprocess that was compiled in says what its numbers mean: leave out "
            "--range, --mean, --std and --real"
        )


def _sound(file: Path, end: End, scaling: Scaling) -> Array:
    if sum(size > 1 for size in end.model_shape) > 1:
        raise InputError(
            f"{file} is a sound, and input {end.name!r} of shape {list(end.model_shape)} is no row "
            "of samples. If it takes features of sound, compile with --preprocess audio, by which "
            "`thimble run` makes them, too; or give them as .npy"
        )
    samples, bits, _ = read_sound(file)
    whole = len(samples) // end.tensor.elements * end.tensor.elements
    if not whole:
        raise InputError(
            f"{file} has {len(samples):,} samples, and input {end.name!r} takes "
            f"{end.tensor.elements:,}: it is too short"
        )
    most = float(1 << bits - 1)
    stored = {16: DType.INT16, 8: DType.INT8}.get(bits)
    values = _scaled(samples[:whole], (-most, most), stored, file, end, scaling)
    return values.reshape((-1, *end.model_shape))


def _array(values: Array, file: Path, end: End, scaling: Scaling) -> Array:
    """Numbers of an array or table: the model's own, or real values that are to be quantised."""
    _check_axes(values, file, end)
    if not scaling.scales:
        return _fitted(values, file, end)
    if scaling.range is not None:
        raise InputError(
            f"{file}: --range is for pixels and sound samples, whose limits are known: an array "
            "has its values as they are; --real, --mean and --std apply"
        )
    shaped = _fitted(values.astype(np.float64), file, _real(end)).astype(np.float64)
    return _quantised(_normalised(shaped, end, scaling), end, file)


def _raw(file: Path, end: End) -> Array:
    """The numbers of a file of raw little-endian bytes in the input's type. Raises InputError if it
    is too large, or holds no whole number of inferences.
    """
    dtype = end.model_dtype.numpy.newbyteorder("<")
    raw = read_bounded(file, min(LARGEST_BYTES, MOST_ELEMENTS * dtype.itemsize))
    if not raw or len(raw) % (end.tensor.elements * dtype.itemsize):
        raise InputError(
            f"{file} holds {len(raw)} bytes; input {end.name!r}, "
            f"{end.model_dtype.value}{list(end.model_shape)}, takes "
            f"{end.tensor.elements * dtype.itemsize}"
        )
    return np.frombuffer(raw, dtype)


def _check_size(shape: tuple[int, ...], file: Path, end: End) -> None:
    """Raises InputError for an array that is not the data of 1 to MOST_INFERENCES inferences."""
    size = math.prod(shape)
    count = size // end.tensor.elements
    if count > MOST_INFERENCES:
        raise InputError(
            f"{file} holds data for {count:,} inferences of input {end.name!r}; the most at once "
            f"is {MOST_INFERENCES:,}: use several files"
        )
    if not size or size % end.tensor.elements:
        raise InputError(
            f"{file}: input {end.name!r} takes shape {list(end.model_shape)}, not {list(shape)}"
        )


def _fitted(values: Array, file: Path, end: End) -> Array:
    """`values` in the input's shape and type, inference by inference.

    A float array may hold exact integers, but not 0 and 1 alone. Raises InputError, naming file and
    input, for another size, and for values that the type does not hold.
    """
    wanted = end.model_dtype.numpy
    _check_size(values.shape, file, end)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError(f"{file}: input {end.name!r} holds NaN or infinity")
    if wanted.kind != "f" and _looks_real(values) and _quantisation(end) is not None:
        raise InputError(
            f"{file}: its floats are 0 and 1 alone, and input {end.name!r} is {_meaning(end)}: "
            f"--real quantises real values; stored integers are an array of {wanted}"
        )
    with np.errstate(invalid="ignore", over="ignore"):
        fitted: Array = values.astype(wanted, copy=False)
    if wanted.kind == "f" and not np.isfinite(fitted).all():
        raise InputError(f"{file}: input {end.name!r} holds a number beyond {wanted}")
    if wanted.kind != "f" and not np.array_equal(fitted, values):
        raise InputError(
            f"{file}: input {end.name!r} takes {end.model_dtype.value}, and some of the "
            f"{values.dtype} values do not fit it (real values: --real quantises them)"
        )
    return fitted.reshape((-1, *end.model_shape))


def _looks_real(values: Array) -> bool:
    """Whether values are probably those of training, as pixels of black and white."""
    return values.dtype.kind == "f" and bool(values.any()) and bool(np.isin(values, (0, 1)).all())


def _check_axes(values: Array, file: Path, end: End) -> None:
    """Raises InputError for an array with the input's axes in another order, as NHWC for NCHW, or
    with some of those joined: its size is right, and every number in it would be in the wrong
    place. Axes of the input may be joined or divided in their own order.
    """
    most = end.tensor.elements
    if values.size % most:
        return  # of another size: `_fitted` says so
    wanted, found = _strides(end.model_shape, most), _strides(values.shape, most)
    if not (found <= wanted or wanted <= found):
        raise InputError(
            f"{file}: its shape {list(values.shape)} does not have the axes of input "
            f"{end.name!r}, {list(end.model_shape)}, in that order: transpose it (or, if its "
            "numbers are in that order, reshape it)"
        )


def _strides(shape: Sequence[int], most: int) -> frozenset[int]:
    """After how many numbers an axis repeats, within one inference of `most`."""
    products = accumulate(reversed(shape), operator.mul)
    return frozenset(product for product in products if 1 < product <= most)


def _real(end: End) -> End:
    """The input as one of real values."""
    tensor = end.tensor
    shape = end.model_shape
    return End(type(tensor)(tensor.name, shape, DType.FLOAT32))


def _scaled(
    stored: NDArray[Any],
    limits: tuple[float, float],
    dtype: DType | None,
    file: Path,
    end: End,
    scaling: Scaling,
) -> Array:
    """Pixels or sound samples in the input's type; `limits`: the least and greatest there are."""
    if not scaling.scales:
        if dtype is end.model_dtype and np.array_equal(stored, np.rint(stored)):
            return stored.astype(dtype.numpy)
        raise InputError(
            f"{file}: what do its numbers mean to input {end.name!r} ({_meaning(end)})? Say what "
            f"the stored {limits[0]:,.0f} and {limits[1]:,.0f} become: --range 0..1, --range -1..1 "
            f"or --range {limits[0]:.0f}..{limits[1]:.0f}; then --mean and --std, if the model was "
            "trained so"
        )
    low, high = scaling.range or limits
    values = low + (stored.astype(np.float64) - limits[0]) * (high - low) / (limits[1] - limits[0])
    return _quantised(_normalised(values, end, scaling, -1), end, file)


def _meaning(end: End) -> str:
    q = _quantisation(end)
    if end.model_dtype is DType.FLOAT32:
        return "float"
    if q is None:
        return str(end.model_dtype.value)
    info = np.iinfo(end.model_dtype.value)
    low, high = (q.scale * (limit - q.zero_point) for limit in (info.min, info.max))
    return f"{end.model_dtype.value}, for {low:.4g} to {high:.4g}"


def _normalised(
    values: NDArray[np.float64], end: End, scaling: Scaling, axis: int | None = None
) -> NDArray[np.float64]:
    """Minus the mean, divided by the deviation; several are along the axis of the channels."""
    found = values
    for name, numbers in (("--mean", scaling.mean), ("--std", scaling.std)):
        if not numbers:
            continue
        factor: NDArray[np.float64] = np.array(numbers)
        if len(numbers) > 1:
            at = _channel_axis(values, end, len(numbers), name) if axis is None else axis
            if found.shape[at] != len(numbers):
                raise InputError(
                    f"{name} has {len(numbers)} numbers, and input {end.name!r} {found.shape[at]} "
                    "channels"
                )
            factor = factor.reshape([-1 if i == at % found.ndim else 1 for i in range(found.ndim)])
        found = found - factor if name == "--mean" else found / factor
    return found


def _channel_axis(values: NDArray[Any], end: End, count: int, name: str) -> int:
    axes = [axis for axis, size in enumerate(values.shape) if size == count and axis > 0]
    if len(axes) != 1:
        raise InputError(
            f"{name} has {count} numbers, and input {end.name!r}, {list(end.model_shape)}, "
            f"{'no axis' if not axes else 'several axes'} of {count}"
        )
    return axes[0]


def _quantisation(end: End) -> Quantisation | None:
    if end.boundary is not None and end.boundary.dtype is not DType.FLOAT32:
        return end.boundary.quantisation or end.tensor.quantisation
    return end.tensor.quantisation


def _quantised(values: NDArray[np.float64], end: End, file: Path) -> Array:
    """Real values in the input's own type, as the model's QUANTIZE would store them."""
    if end.model_dtype is DType.FLOAT32:
        return values.astype(np.float32)
    q = _quantisation(end)
    if q is None or q.per_channel:
        raise InputError(
            f"{file}: input {end.name!r} is {end.model_dtype.value} without a scale: its numbers "
            "cannot be real values"
        )
    info = np.iinfo(end.model_dtype.value)
    ratio = (values.astype(np.float32) / np.float32(q.scale)).astype(np.float64)
    halves_to_even = end.boundary is not None and end.boundary.halves_to_even
    rounded = np.rint(ratio) if halves_to_even else np.trunc(ratio + np.copysign(0.5, ratio))
    stored = np.clip(rounded + q.zero_point, info.min, info.max)
    found: Array = stored.astype(end.model_dtype.numpy)
    return found


def quantised_input(values: Array, end: End) -> Array:
    """Real values as a model's input, in its shape and type. Raises InputError for another size."""
    if values.size != end.tensor.elements:
        raise InputError(
            f"input {end.name!r} takes {list(end.model_shape)}, not {list(values.shape)}"
        )
    shaped = values.astype(np.float64).reshape(end.model_shape)
    return _quantised(shaped, end, Path("the sample"))


def real_values(values: Array, end: End) -> NDArray[np.float64] | None:
    """The real values of stored outputs: scale x (stored - zero point); None where they have no
    scale and are no floats.
    """
    if values.dtype.kind == "f":
        return values.astype(np.float64)
    q = _quantisation(end)
    if q is None or q.per_channel:
        return None
    real: NDArray[np.float64] = q.scale * (values.astype(np.float64) - q.zero_point)
    return real


def files_of(given: Iterable[Path]) -> list[Path]:
    """All files that paths, folders and patterns stand for."""
    return [file for path in given for file in expanded(path)]
