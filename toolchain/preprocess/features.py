"""Features of sound in NumPy, bit for bit as the C of `runtime_c/source/signal/` computes them.

The stages are TensorFlow Lite Micro's (`microfrontend/lib`, `signal/src`), the transform is
KissFFT's of int16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ops.signal.fourier import FourierTables, fourier_tables, rfft, wrapped
from toolchain.ops.signal.spectrum import (
    FilterBank,
    bank_sums,
    gain_at,
    logarithm,
    shrunk,
    square_root,
)
from toolchain.preprocess.audio import NOISE_BITS, WEIGHT_BITS, AudioFeatures
from toolchain.preprocess.tables import filter_bank, gain_table, window_weights

Int16 = NDArray[np.int16]


@dataclass(frozen=True)
class Noise:
    """The running mean that is taken for noise: see `thimble_noise` in `thimble_signal.h`."""

    smoothing: tuple[int, int]
    rest: tuple[int, int]
    floor: int
    bits: int
    scale_bits: int


def noise_parameters(audio: AudioFeatures) -> Noise:
    """Fractions with 14 bits, rounded down in float32."""
    one = 1 << NOISE_BITS
    even, odd, floor = (
        int(np.float32(part) * np.float32(one))
        for part in (audio.even_smoothing, audio.odd_smoothing, audio.signal_remaining)
    )
    return Noise((even, odd), (one - even, one - odd), floor, NOISE_BITS, audio.smoothing_bits)


@dataclass(frozen=True)
class _Tables:
    window: Int16
    fourier: FourierTables
    bank: FilterBank
    gain: Int16
    noise: Noise


class Features:
    """The features of a stream of samples, given in pieces of any length."""

    def __init__(self, audio: AudioFeatures) -> None:
        self._audio = audio
        self._tables = _Tables(
            window_weights(audio.window),
            fourier_tables(audio.fft_length),
            filter_bank(audio),
            gain_table(audio),
            noise_parameters(audio),
        )
        self._samples = np.zeros(0, dtype=np.int16)
        self._noise = [0] * audio.channels

    def push(self, samples: Int16) -> Iterator[Int16]:
        """Each frame that `samples` complete: int16 of shape (channels,)."""
        self._samples = np.concatenate([self._samples, samples])
        while len(self._samples) >= self._audio.window:
            yield self._frame(self._samples[: self._audio.window])
            self._samples = self._samples[self._audio.step :]

    def _frame(self, samples: Int16) -> Int16:
        audio, tables = self._audio, self._tables
        products = samples.astype(np.int64) * tables.window
        windowed = wrapped(products >> WEIGHT_BITS)
        shift = 15 - int(wrapped(np.abs(windowed)).max(initial=0)).bit_length()
        padded = np.zeros(audio.fft_length, dtype=np.int16)
        padded[: audio.window] = wrapped(windowed << shift)
        spectrum = rfft(padded, tables.fourier)
        energy = np.zeros(max(tables.bank.energies, len(spectrum)), dtype=np.int64)
        band = slice(tables.bank.first, tables.bank.end)
        energy[band] = (spectrum[band] ** 2).sum(axis=1)
        roots = [square_root(value) >> shift for value in bank_sums(tables.bank, energy)]
        return np.array([self._feature(i, root) for i, root in enumerate(roots)], dtype=np.int16)

    def _feature(self, channel: int, signal: int) -> int:
        audio, params = self._audio, self._tables.noise
        scaled = (signal << params.scale_bits) & 0xFFFFFFFF
        parts = (
            scaled * params.smoothing[channel % 2],
            self._noise[channel] * params.rest[channel % 2],
        )
        mean = self._noise[channel] = sum(parts) >> params.bits
        floor = signal * params.floor >> params.bits
        signal = max((scaled - min(mean, scaled)) >> params.scale_bits, floor)
        if audio.pcan:
            gain = gain_at(mean, self._tables.gain)
            signal = shrunk((signal * gain >> audio.snr_shift) & 0xFFFFFFFF)
        value = (signal << audio.correction_bits) & 0xFFFFFFFF
        return logarithm(value, 1 << audio.scale_shift)


def features_of(audio: AudioFeatures, samples: Int16) -> Int16:
    """All frames of a clip: shape (frames, channels). A part of a window at its end is left out."""
    frames = list(Features(audio).push(samples))
    return np.stack(frames) if frames else np.zeros((0, audio.channels), dtype=np.int16)
