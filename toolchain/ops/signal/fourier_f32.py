"""The transform of real float32 samples as the C computes it, bit for bit, in NumPy.

`thimble_fourier_passes_f32` and those that call it are the same in C: radix 4, with a pass of
radix 2 first where the length is no power of 4. Numbers are complex: the last axis is real and
imaginary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit

Float32 = NDArray[np.float32]


@dataclass(frozen=True)
class ComplexTables:
    """Tables of a transform of `length` numbers: see `thimble_fourier_f32` in
    `thimble_fourier_f32.h`.
    """

    length: int
    order: NDArray[np.int16]
    twiddles: Float32


def complex_tables(length: int) -> ComplexTables:
    """The tables for a power of 2, at most 2^15: `order` (length,) and pairs of `twiddles`."""
    left, rest = length, np.arange(length)
    order = np.zeros(length, dtype=np.int64)
    while left > 1:
        radix = 4 if left % 4 == 0 else 2
        left //= radix
        order += rest % radix * left
        rest = rest // radix
    used = max(length * 3 // 4, 1)
    return ComplexTables(
        length, order.astype(np.int16), _circle(-2 * np.pi * np.arange(used) / length)
    )


def half_turns(length: int) -> Float32:
    """Factors of the step from `length` pairs of real samples to their transform."""
    return _circle(-np.pi * ((np.arange(length // 2) + 1) / max(length, 1) + 0.5))


def real_plan(width: int) -> tuple[kit.Struct, tuple[kit.Constant, ...]]:
    """The argument for transforms of `width` real samples, and the constants that it names."""
    tables, halves = complex_tables(width // 2), half_turns(width // 2)
    named: dict[str, NDArray[np.generic]] = {
        "order": tables.order,
        "twiddles": tables.twiddles,
        "halves": halves,
    }
    members: dict[str, kit.Argument] = {
        name: kit.Packed(name) if data.size else kit.NULL for name, data in named.items()
    }
    halves_of = members.pop("halves")
    pairs = kit.Struct("thimble_fourier_f32", {"length": tables.length, **members})
    plan = kit.Struct("thimble_rfft_f32_plan", {"pairs": pairs, "halves": halves_of})
    return plan, tuple(kit.constant(name, data) for name, data in named.items() if data.size)


def plan_bytes(width: int) -> dict[str, int]:
    """The bytes of these constants that a transform reads."""
    half = width // 2
    sizes = {"order": 2 * half, "twiddles": 8 * max(half * 3 // 4, 1), "halves": 8 * (half // 2)}
    return {name: size for name, size in sizes.items() if size}


def _circle(phases: NDArray[np.float64]) -> Float32:
    """exp(i phase), as pairs."""
    return np.stack([np.cos(phases), np.sin(phases)], axis=-1).astype(np.float32).reshape(-1)


def _turned(values: Float32, by: Float32) -> Float32:
    real = values[..., 0] * by[..., 0] - values[..., 1] * by[..., 1]
    imag = values[..., 0] * by[..., 1] + values[..., 1] * by[..., 0]
    return np.stack([real, imag], axis=-1)


def transform(numbers: Float32, tables: ComplexTables) -> Float32:
    """Complex to complex: shape (..., length, 2)."""
    length, shape = tables.length, numbers.shape
    data = np.zeros_like(numbers).reshape(-1, length, 2)
    data[:, tables.order] = numbers.reshape(-1, length, 2)
    twiddles = tables.twiddles.reshape(-1, 2)
    apart = 1
    if length.bit_length() % 2 == 0:
        pairs = data.reshape(-1, 2, 2)
        data = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        apart = 2
    while apart < length:
        fours = data.reshape(-1, 4, apart, 2).copy()
        step = length // (4 * apart)
        for n in (1, 2, 3):
            factors = twiddles[np.arange(1, apart) * step * n]
            fours[:, n, 1:] = _turned(fours[:, n, 1:], factors)
        a, b, c, d = np.moveaxis(fours, 1, 0)
        even, odd, total, turn = a + c, a - c, b + d, b - d
        right = np.stack([odd[..., 0] + turn[..., 1], odd[..., 1] - turn[..., 0]], axis=-1)
        left = np.stack([odd[..., 0] - turn[..., 1], odd[..., 1] + turn[..., 0]], axis=-1)
        data = np.stack([even + total, right, even - total, left], axis=1)
        apart *= 4
    return data.reshape(shape)


def real_transform(samples: Float32) -> Float32:
    """Real to complex: shape (..., width) to (..., width / 2 + 1, 2); a power of 2 from 2."""
    half = samples.shape[-1] // 2
    pairs = samples.reshape(*samples.shape[:-1], half, 2)
    data = transform(pairs, complex_tables(half))
    made = np.zeros((*samples.shape[:-1], half + 1, 2), np.float32)
    made[..., 0, 0] = data[..., 0, 0] + data[..., 0, 1]
    made[..., half, 0] = data[..., 0, 0] - data[..., 0, 1]
    k = np.arange(1, half // 2 + 1)
    low, high = data[..., k, :], data[..., half - k, :]
    total = np.stack([low[..., 0] + high[..., 0], low[..., 1] - high[..., 1]], axis=-1)
    apart = np.stack([low[..., 0] - high[..., 0], low[..., 1] + high[..., 1]], axis=-1)
    turned = _turned(apart, half_turns(half).reshape(-1, 2))
    halved = np.float32(0.5)
    made[..., k, :] = (total + turned) * halved
    other = np.stack([total[..., 0] - turned[..., 0], turned[..., 1] - total[..., 1]], axis=-1)
    made[..., half - k, :] = other * halved
    return made


def real_inverse(numbers: Float32) -> Float32:
    """Complex to real: shape (..., width / 2 + 1, 2) to (..., width), in KissFFT's operations.

    With real and imaginary parts in each other's places the transform is its own inverse.
    """
    half = numbers.shape[-2] - 1
    data = np.zeros((*numbers.shape[:-2], half, 2), np.float32)
    first, last = numbers[..., 0, 0], numbers[..., half, 0]
    data[..., 0, :] = np.stack([first + last, first - last], axis=-1)
    k = np.arange(1, half // 2 + 1)
    low, high = numbers[..., k, :], numbers[..., half - k, :]
    even = np.stack([low[..., 0] + high[..., 0], low[..., 1] - high[..., 1]], axis=-1)
    apart = np.stack([low[..., 0] - high[..., 0], low[..., 1] + high[..., 1]], axis=-1)
    odd = _turned(apart, half_turns(half).reshape(-1, 2) * np.array([1, -1], np.float32))
    data[..., k, :] = even + odd
    other = np.stack([even[..., 0] - odd[..., 0], odd[..., 1] - even[..., 1]], axis=-1)
    data[..., half - k, :] = other
    made = transform(data[..., ::-1], complex_tables(half))[..., ::-1]
    return made.reshape(*numbers.shape[:-2], 2 * half) * np.float32(0.5 / half)


def magnitude(numbers: Float32) -> Float32:
    """Absolute values: numbers whose squares overrun or vanish are scaled by a power of 2 first."""
    up, down = np.float32(2.0**64), np.float32(2.0**-64)
    real, imag = numbers[..., 0], numbers[..., 1]
    with np.errstate(all="ignore"):
        squares = real * real + imag * imag
        large = np.sqrt(real * down * (real * down) + imag * down * (imag * down)) * up
        small = np.sqrt(real * up * (real * up) + imag * up * (imag * up)) * down
        plain = np.sqrt(squares)
    big, tiny = squares > np.float32(1e30), squares < np.float32(1e-30)
    return np.where(big, large, np.where(tiny, small, plain))
