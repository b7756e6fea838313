"""The tables of constants that audio features need, as TensorFlow Lite Micro computes them.

It computes them on the device in float32 (`window_util.c`, `filterbank_util.c`,
`pcan_gain_control_util.c`); here the same steps are taken in
NumPy, so that they are constants in flash.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError
from toolchain.ops.arithmetic.libm import log1pf
from toolchain.ops.signal.spectrum import FilterBank
from toolchain.preprocess.audio import WEIGHT_BITS, AudioFeatures

Int16 = NDArray[np.int16]
Float32 = NDArray[np.float32]

GAIN_BITS = 32
"""Bits of the noise that the table of gains covers."""
_BLOCK = 4
_ALIGNMENT = 2
_HALF, _ONE = np.float32(0.5), np.float32(1)
_SCALE = np.float32(1 << WEIGHT_BITS)


def _rounded(values: Float32) -> Int16:
    """Round to the nearest integer, halves up, in float32."""
    whole: Int16 = np.floor(values + _HALF).astype(np.int16)
    return whole


def window_weights(size: int) -> Int16:
    """Hann's window of `size` samples, with 12 fractional bits. Shape (size,)."""
    step = np.float32(np.pi) * np.float32(2) / np.float32(size)
    phases = step * (np.arange(size, dtype=np.float32) + _HALF)
    cosines = np.cos(phases.astype(np.float64)).astype(np.float32)
    return _rounded((_HALF - _HALF * cosines) * _SCALE)


def _mel(hertz: Float32) -> Float32:
    return np.float32(1127) * log1pf(hertz / np.float32(700))


def filter_bank(audio: AudioFeatures) -> FilterBank:
    """The filters of `audio`. Raises InputError where a band ends above half of the rate."""
    count = audio.channels + 1
    spectrum = audio.fft_length // 2 + 1
    low, high = _mel(np.array([audio.low_hz, audio.high_hz], dtype=np.float32))
    spacing = (high - low) / np.float32(count)
    centres = low + spacing * np.arange(1, count + 1, dtype=np.float32)
    hertz = _HALF * np.float32(audio.rate) / (np.float32(spectrum) - _ONE)
    first = int(np.float32(1.5) + np.float32(audio.low_hz) / hertz)
    mels = _mel(np.arange(2 * spectrum, dtype=np.float32) * hertz)
    starts, weight_starts, widths = (np.zeros(count, dtype=np.int16) for _ in range(3))
    pieces: list[tuple[int, int, int]] = []
    begin, used, has_zeros = first, 0, False
    for channel in range(count):
        stop = begin + int(np.argmax(mels[begin:] > centres[channel]))
        if stop == begin:  # no energy of its own: weights of 0, which lie before all others
            widths[channel] = _BLOCK
            if not has_zeros:
                has_zeros = True
                weight_starts[:channel] += _BLOCK
                used += _BLOCK
        else:
            aligned = begin // _ALIGNMENT * _ALIGNMENT
            width = -(-(stop - aligned) // _BLOCK) * _BLOCK
            starts[channel], weight_starts[channel], widths[channel] = aligned, used, width
            used += width
        pieces.append((begin, stop, begin - int(starts[channel])))
        begin = stop
    if begin >= spectrum:
        raise InputError(
            f"audio: the last of {audio.channels} bands ends above half of rate={audio.rate}: "
            "lower high_hz"
        )
    weights, unweights = (np.zeros(used, dtype=np.int16) for _ in range(2))
    for channel, (begin, stop, offset) in enumerate(pieces):
        if stop > begin:
            before = low if channel == 0 else centres[channel - 1]
            values = (centres[channel] - mels[begin:stop]) / (centres[channel] - before)
            at = int(weight_starts[channel]) + offset
            weights[at : at + stop - begin] = _rounded(values * _SCALE)
            unweights[at : at + stop - begin] = _rounded((_ONE - values) * _SCALE)
    end = max(stop for _, stop, _ in pieces)
    return FilterBank(first, end, starts, weight_starts, widths, weights, unweights)


def gain_table(audio: AudioFeatures) -> Int16:
    """Gains over the noise, as parabolas between powers of two. Shape (125,)."""
    bits = audio.smoothing_bits - audio.correction_bits
    most = np.iinfo(np.int16).max

    def gain(noise: int) -> int:
        real = np.float32(noise) / np.float32(1 << bits)
        base = np.float64(real + np.float32(audio.pcan_offset))
        power = np.float32(np.power(base, -np.float64(np.float32(audio.pcan_strength))))
        value = np.float32(1 << audio.pcan_gain_bits) * power
        return most if value > most else int(value + _HALF)

    table = np.zeros(4 * GAIN_BITS - 3, dtype=np.int64)
    table[:2] = gain(0), gain(1)
    for interval in range(2, GAIN_BITS + 1):
        begin = 1 << (interval - 1)
        end = 2 * begin - (interval == GAIN_BITS)
        low = gain(begin)
        middle, high = gain(begin + begin // 2) - low, gain(end) - low
        slope = 4 * middle - high
        table[4 * interval - 6 : 4 * interval - 3] = low, slope, high - slope
    return table.astype(np.int16)
