"""The transform of real int16 samples, bit for bit as KissFFT computes it, in NumPy.

`thimble_rfft_in_place_s16` and `thimble_irfft_s16` are the same in C. Sums wrap; products of 15
fractional bits are rounded to nearest, halves up; each pass first divides by the count of the
numbers that it adds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int16 = NDArray[np.int16]
Int64 = NDArray[np.int64]

_MOST = np.iinfo(np.int16).max


@dataclass(frozen=True)
class FourierTables:
    """Tables of a transform of `length` real samples: see `thimble_rfft` in `thimble_signal.h`."""

    length: int
    order: Int16
    twiddles: Int16
    halves: Int16


def fourier_tables(length: int) -> FourierTables:
    """The tables of a transform of `length` samples, a power of 2 from 4.

    `order` has shape (length / 2,); `twiddles` (3 length / 4,) or (2,) and `halves` (length / 2,)
    are pairs of real and imaginary parts.
    """
    half = length // 2
    order = np.zeros(half, dtype=np.int64)
    left, rest = half, np.arange(half)
    while left > 1:
        radix = 4 if left % 4 == 0 else 2
        left //= radix
        order += rest % radix * left
        rest = rest // radix
    used = max(half * 3 // 4, 1)
    twiddles = _circle(-2 * np.pi * np.arange(used) / half)
    halves = _circle(-np.pi * ((np.arange(half // 2) + 1) / half + 0.5))
    return FourierTables(length, order.astype(np.int16), twiddles, halves)


def _circle(phases: NDArray[np.float64]) -> Int16:
    """exp(i phase) with 15 fractional bits, as pairs."""
    parts = np.stack([np.cos(phases), np.sin(phases)], axis=-1)
    return np.floor(0.5 + np.iinfo(np.int16).max * parts).astype(np.int16).reshape(-1)


def wrapped(values: Int64) -> Int64:
    """The low 16 bits of each value, as int16 has them."""
    return values.astype(np.int16).astype(np.int64)


def _round(products: Int64) -> Int64:
    return wrapped((products + (1 << 14)) >> 15)


def _divided(values: Int64, by: int) -> Int64:
    return _round(values * (_MOST // by))


def _turned(values: Int64, by: Int64) -> Int64:
    """Complex products; the last axis is real and imaginary."""
    real = values[..., 0] * by[..., 0] - values[..., 1] * by[..., 1]
    imag = values[..., 0] * by[..., 1] + values[..., 1] * by[..., 0]
    return _round(np.stack([real, imag], axis=-1))


def _quarter_turn(values: Int64) -> Int64:
    """Times -i."""
    return np.stack([values[..., 1], -values[..., 0]], axis=-1)


def rfft(samples: Int16, tables: FourierTables) -> Int64:
    """The transform of `samples` (tables.length,): shape (length / 2 + 1, 2)."""
    pairs = samples.reshape(-1, 2).astype(np.int64)
    return _of_real(_passes(pairs, tables), tables)


def irfft(numbers: Int16, tables: FourierTables) -> Int64:
    """The samples of `numbers` (length / 2 + 1, 2): shape (tables.length,).

    With real and imaginary parts in each other's places the transform is its own inverse.
    """
    half = tables.length // 2
    given = numbers.astype(np.int64)
    data = np.zeros((half, 2), dtype=np.int64)
    first, last = given[0, 0], given[half, 0]
    data[0] = _divided(wrapped(np.array([first + last, first - last])), 2)
    k = np.arange(1, half // 2 + 1)
    low = _divided(given[k], 2)
    high = _divided(wrapped(given[half - k] * (1, -1)), 2)
    even = wrapped(low + high)
    back = tables.halves.astype(np.int64).reshape(-1, 2)[k - 1] * (1, -1)
    odd = _turned(wrapped(low - high), back)
    data[k] = wrapped(even + odd)
    data[half - k] = wrapped((even - odd) * (1, -1))
    return _passes(data[:, ::-1], tables)[:, ::-1].reshape(-1)


def _passes(numbers: Int64, tables: FourierTables) -> Int64:
    """Complex to complex: shape (length / 2, 2)."""
    half = tables.length // 2
    data = np.zeros((half, 2), dtype=np.int64)
    data[tables.order] = numbers
    twiddles = tables.twiddles.astype(np.int64).reshape(-1, 2)
    apart = 1
    if half.bit_length() % 2 == 0:
        pairs = _divided(data.reshape(-1, 2, 2), 2)
        second = _turned(pairs[:, 1], twiddles[:1])
        data = wrapped(np.stack([pairs[:, 0] + second, pairs[:, 0] - second], axis=1))
        apart = 2
    while apart < half:
        fours = _divided(data.reshape(-1, 4, apart, 2), 4)
        step = half // (4 * apart)
        a = fours[:, 0]
        b, c, d = (_turned(fours[:, n], twiddles[np.arange(apart) * step * n]) for n in (1, 2, 3))
        even, odd, total, turn = a + c, a - c, b + d, _quarter_turn(b - d)
        data = wrapped(np.stack([even + total, odd + turn, even - total, odd - turn], axis=1))
        apart *= 4
    return data.reshape(half, 2)


def _of_real(data: Int64, tables: FourierTables) -> Int64:
    half = len(data)
    first, second = _divided(data[0], 2)
    spectrum = np.zeros((half + 1, 2), dtype=np.int64)
    spectrum[0, 0], spectrum[half, 0] = first + second, first - second
    k = np.arange(1, half // 2 + 1)
    low = _divided(data[k], 2)
    high = _divided(wrapped(data[half - k] * (1, -1)), 2)
    total = wrapped(low + high)
    turned = _turned(wrapped(low - high), tables.halves.astype(np.int64).reshape(-1, 2)[k - 1])
    spectrum[k] = (total + turned) >> 1
    other = np.stack([total[:, 0] - turned[:, 0], turned[:, 1] - total[:, 1]], axis=-1) >> 1
    spectrum[half - k] = other
    return wrapped(spectrum)
