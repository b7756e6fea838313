"""A model's input as frames of features of sound: how many, how they are quantised."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError
from toolchain.ir import DType, Tensor
from toolchain.ops.signal.fourier import Int16
from toolchain.preprocess.audio import AudioFeatures
from toolchain.preprocess.features import Features

Array = NDArray[np.generic]

FEATURE_SCALE = Fraction(10, 256)
"""The input that a feature of 1 gives a model trained on the micro front end (1 / 25.6)."""
_TFLM_RANGE, _TFLM_MARGIN = 26.0, 0.02
_TFLM = Fraction(256, 666)
"""The integers that firmware for these models divides by, instead of the input's own scale."""
_MOST_FEATURE = np.iinfo(np.int16).max
_TYPES = (DType.INT8, DType.INT16, DType.UINT8, DType.FLOAT32)


@dataclass(frozen=True)
class Scaling:
    """A feature to an element of the input: (feature * numerator + denominator / 2) / denominator,
    rounded down, plus `zero_point`, within `least` to `most`.

    A float input has numerator 0 and gets feature * 0.0390625.
    """

    dtype: DType
    numerator: int = 0
    denominator: int = 1
    zero_point: int = 0
    least: int = 0
    most: int = 0

    def apply(self, features: Int16) -> Array:
        """Elements of the same shape. Features are not negative."""
        if self.dtype is DType.FLOAT32:
            return features.astype(np.float32) * np.float32(float(FEATURE_SCALE))
        scaled = features.astype(np.int64) * self.numerator + self.denominator // 2
        stored = np.clip(scaled // self.denominator + self.zero_point, self.least, self.most)
        return stored.astype(self.dtype.numpy)


@dataclass(frozen=True)
class AudioInput:
    """Parameters of `--preprocess audio`: the features, and how many frames the input moves on
    between two runs of the model.

    Without a `stride` a model that keeps state gets new frames only, another one runs for each
    frame.
    """

    features: AudioFeatures = field(default_factory=AudioFeatures)
    stride: int | None = None

    def bound(self, tensor: Tensor, *, stateful: bool) -> BoundAudio:
        """Bind the features to a model's input. Raises InputError if it cannot hold such frames."""
        frames, rest = divmod(tensor.elements, self.features.channels)
        shape = "x".join(map(str, tensor.shape))
        if rest or not frames:
            raise InputError(
                f"--preprocess audio: input {tensor.name} [{shape}] is no whole number of frames "
                f"of {self.features.channels} channels: give it as channels=N"
            )
        if tensor.dtype not in _TYPES:
            raise InputError(
                f"--preprocess audio: input {tensor.name} is {tensor.dtype.value}, not one of "
                f"{', '.join(t.value for t in _TYPES)}"
            )
        stride = self.stride if self.stride is not None else (frames if stateful else 1)
        if not 1 <= stride <= frames:
            raise InputError(
                f"--preprocess audio: stride={stride} is not within 1 to {frames}, the frames of "
                f"input {tensor.name} [{shape}]"
            )
        return BoundAudio(self.features, tensor, frames, stride, _scaling(tensor))


@dataclass(frozen=True)
class BoundAudio:
    """Features for the input `tensor`, which holds `frames` of them and moves on by `stride`."""

    features: AudioFeatures
    tensor: Tensor
    frames: int
    stride: int
    scaling: Scaling

    def windows(self, samples: Int16) -> Iterator[Array]:
        """The input of each run of the model that `samples`, from the first on, lead to."""
        held: list[Array] = []
        for frame in Features(self.features).push(samples):
            held.append(self.scaling.apply(frame))
            if len(held) == self.frames:
                yield np.concatenate(held).reshape(self.tensor.shape)
                held = held[self.stride :]


def _scaling(tensor: Tensor) -> Scaling:
    if tensor.dtype is DType.FLOAT32:
        return Scaling(tensor.dtype)
    if tensor.quantisation is None or tensor.quantisation.per_channel or tensor.q.scale <= 0:
        raise InputError(f"--preprocess audio: input {tensor.name} has no one scale")
    info = np.iinfo(tensor.dtype.value)
    limits = Scaling(
        tensor.dtype, zero_point=tensor.q.zero_point, least=int(info.min), most=int(info.max)
    )
    steps = float(int(info.max) - int(info.min))
    near = abs(tensor.q.scale * steps / _TFLM_RANGE - 1) <= _TFLM_MARGIN
    if near and tensor.dtype is not DType.INT16 and tensor.q.zero_point == info.min:
        return replace(limits, numerator=_TFLM.numerator, denominator=_TFLM.denominator)
    factor = float(FEATURE_SCALE) / tensor.q.scale
    bits = min(24, 30 - (_MOST_FEATURE + 1).bit_length() - math.ceil(math.log2(factor)))
    if bits < 1:
        raise InputError(
            f"--preprocess audio: scale {tensor.q.scale:g} of input {tensor.name} is too small for "
            "features"
        )
    return replace(limits, numerator=round(factor * (1 << bits)), denominator=1 << bits)
