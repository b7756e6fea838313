"""A file of samples as the inputs of a model, and as those of the float model that it came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from toolchain.errors import InputError
from toolchain.files.arrays import Array, array_file, read_chosen
from toolchain.ir import DType, End, Tensor
from toolchain.preprocess.audio_input import BoundAudio
from toolchain.preprocess.media import read_sound
from toolchain.preprocess.option import Bound
from toolchain.preprocess.samples import (
    AS_STORED,
    Scaling,
    array_samples,
    heard,
    read_samples,
    real_values,
)

_IN_ARCHIVE = ("images", "data", "x", "x_test", "inputs")
"""Names of the samples in an .npz that has no array of the input's name."""
Inputs = Mapping[str, Array]


@dataclass(frozen=True)
class Frame:
    """The inputs of one inference by name: those of the model, in the types of its file; and of
    the float model, where there is one."""

    own: Inputs
    wide: Inputs | None = None


@dataclass(frozen=True)
class InputReader:
    """How files become inputs. `ends`: the model's inputs; `scaling`: what stored numbers mean;
    `source`: the `--preprocess` of the model; `wide`: the inputs of a float model in the order of
    `ends`, () without one.
    """

    ends: tuple[End, ...]
    scaling: Scaling = AS_STORED
    source: Bound | None = None
    wide: tuple[End, ...] = ()

    def __post_init__(self) -> None:
        """Raises InputError where the float model has another number of inputs."""
        if self.wide and len(self.wide) != len(self.ends):
            raise InputError(
                f"the float model has {len(self.wide)} inputs, and the model {len(self.ends)}"
            )

    def frames(self, file: Path) -> list[Frame]:
        """The inferences in a file. Raises as `read_samples` does."""
        own = self._read(file, self.ends, self.scaling)
        if not self.wide:
            return [Frame(one) for one in own]
        if not self._is_scaled:
            return [Frame(one, self._widened(one)) for one in own]
        real = self._read(file, tuple(map(_in_float, self.ends)), self._float_scaling)
        return [Frame(one, self._fitted(two)) for one, two in zip(own, real, strict=True)]

    def array_frames(self, values: Array) -> list[Frame]:
        """As `frames`, of an array of [samples, ...] in memory, for the only input."""
        where = Path("data")
        own = array_samples(values, where, self.one, self.scaling)
        if not self.wide:
            return [Frame(one) for one in own]
        if not self._is_scaled:
            return [Frame(one, self._widened(one)) for one in own]
        real = array_samples(values, where, _in_float(self.one), self._float_scaling)
        return [Frame(one, self._fitted(two)) for one, two in zip(own, real, strict=True)]

    def recording(self, file: Path) -> tuple[float, Iterator[tuple[float, Frame]]]:
        """The seconds of a long sound, and one by one its windows, each with the second where it
        ends. Raises InputError for what is no sound.
        """
        if isinstance(self.source, BoundAudio):
            count, windows = heard(file, self.one, self.scaling, self.source)
            features = self.source.features
            step = self.source.stride * features.step_ms / 1000
            first = (features.window_ms + (self.source.frames - 1) * features.step_ms) / 1000
            frames = ({self.one.name: window} for window in windows)
            return count / features.rate, self._timed(frames, first, step)
        samples, _, rate = read_sound(file)
        step = self.one.tensor.elements / rate
        own = self.frames(file)
        return len(samples) / rate, (((place + 1) * step, one) for place, one in enumerate(own))

    @property
    def one(self) -> End:
        """The only input. Raises InputError where there are several."""
        if len(self.ends) != 1:
            raise InputError(f"the model has {len(self.ends)} inputs, and this is data for one")
        return self.ends[0]

    def _timed(
        self, windows: Iterator[Inputs], first: float, step: float
    ) -> Iterator[tuple[float, Frame]]:
        for place, own in enumerate(windows):
            wide = self._widened(own) if self.wide else None
            yield first + place * step, Frame(own, wide)

    def _read(self, file: Path, ends: tuple[End, ...], scaling: Scaling) -> list[dict[str, Array]]:
        archive, name = array_file(file)
        if archive.suffix == ".npz" and len(ends) == 1:
            usual = (ends[0].name, *_IN_ARCHIVE)
            return array_samples(read_chosen(file, usual), archive, ends[0], scaling)
        if name:
            raise InputError(f"{file}: the model has {len(ends)} inputs, taken by their names")
        return read_samples([file], ends, scaling, self.source)

    @property
    def _is_scaled(self) -> bool:
        """Whether data are real values before they are quantised: the float model gets these."""
        integers = all(end.model_dtype is not DType.FLOAT32 for end in self.ends)
        return self.source is None and (self.scaling.scales or not integers)

    @property
    def _float_scaling(self) -> Scaling:
        """Channels of an image lie as in the model, whose boundary says so."""
        turned = any(end.boundary is not None and end.boundary.permutation for end in self.ends)
        return replace(self.scaling, channels_first=True) if turned else self.scaling

    def _widened(self, own: Inputs) -> Inputs:
        """The real values that stored inputs stand for."""
        real = {}
        for end in self.ends:
            values = real_values(own[end.name], end)
            real[end.name] = own[end.name] if values is None else values
        return self._fitted(real)

    def _fitted(self, real: Inputs) -> Inputs:
        """Inputs in the shapes and types of the float model, by its names."""
        return {
            wide.name: _laid_out(real[end.name], end, wide).astype(wide.model_dtype.numpy)
            for end, wide in zip(self.ends, self.wide, strict=True)
        }


def _in_float(end: End) -> End:
    return End(Tensor(end.name, end.model_shape, DType.FLOAT32))


def _laid_out(values: Array, end: End, wide: End) -> Array:
    """Values in the shape of the float model's input: as they lie, or with channels first in place
    of last, or the reverse. Raises InputError where neither fits."""
    shape, wanted = end.model_shape, wide.model_shape
    shaped = values.reshape(shape)
    if shape == wanted or _squeezed(shape) == _squeezed(wanted):
        return shaped.reshape(wanted)
    if len(shape) == len(wanted) == 4:
        for order in ((0, 3, 1, 2), (0, 2, 3, 1)):
            if tuple(shape[axis] for axis in order) == wanted:
                return np.transpose(shaped, order)
    raise InputError(
        f"input {wide.name!r} of the float model has shape {list(wanted)}, which input "
        f"{end.name!r} of the model, {list(shape)}, cannot be"
    )


def _squeezed(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
