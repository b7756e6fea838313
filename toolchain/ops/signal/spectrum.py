"""The stages from a spectrum to features in NumPy: TensorFlow Lite Micro's `signal/src` and
`microfrontend/lib`, bit for bit. `runtime_c/source/signal/` has the same in C.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops.signal.fourier import Int16, Int64, wrapped

SNR_BITS = 12
"""Fractional bits of a signal divided by its noise."""
_MOST_16 = np.iinfo(np.int16).max
_OUTPUT_BITS = 6
_SEGMENT_BITS, _ONE_BITS, _LN_2 = 7, 16, 45426
_SEGMENTS = np.arange((1 << _SEGMENT_BITS) + 1) / (1 << _SEGMENT_BITS)
EXCESS: Int64 = np.rint((np.log2(1 + _SEGMENTS) - _SEGMENTS) * (1 << _ONE_BITS)).astype(np.int64)
"""log2(1 + x) - x at the ends of 128 segments, with 16 fractional bits."""


@dataclass(frozen=True)
class FilterBank:
    """Triangular filters over energies: see `thimble_filter_bank` in `thimble_signal.h`.

    `first`, `end`: the energies that have any weight. `energies`: how many the widths reach.
    """

    first: int
    end: int
    starts: Int16
    weight_starts: Int16
    widths: Int16
    weights: Int16
    unweights: Int16

    @property
    def channels(self) -> int:
        return len(self.starts) - 1

    @property
    def energies(self) -> int:
        return int((self.starts.astype(np.int64) + self.widths).max())


def bank_sums(bank: FilterBank, energy: Int64) -> list[int]:
    """The sum of each channel. The weighted energies are below 2^64."""
    sums, following = [], 0
    for channel, start in enumerate(bank.starts):
        width, at = int(bank.widths[channel]), int(bank.weight_starts[channel])
        part = energy[start : start + width]
        weights, unweights = (
            w[at : at + width][: len(part)].astype(np.int64) for w in (bank.weights, bank.unweights)
        )
        sums.append(following + int(part @ weights))
        following = int(part @ unweights)
    return sums[1:]


def square_root(value: int) -> int:
    """To nearest, but that below 2^32 no root is above 2^16 - 1."""
    most = 0xFFFF if value < 1 << 32 else 0xFFFFFFFF
    root, bit = 0, 1 << 62
    while bit:
        if value >= root + bit and (root or value >= bit):
            value -= root + bit
            root = (root >> 1) + bit
        else:
            root >>= 1
        bit >>= 2
    return root + 1 if value > root and root != most else root


def gain_at(noise: int, table: Int16) -> int:
    """The gain at an estimate of noise, as uint32."""
    if noise <= 2:
        return int(table[noise]) & 0xFFFFFFFF
    bits = noise.bit_length()
    begin, slope, bend = (int(n) for n in table[4 * bits - 6 : 4 * bits - 3])
    fraction = (noise << 11 >> bits if bits < 11 else noise >> (bits - 11)) & 0x3FF
    result = (((bend * fraction >> 5) + slope * 32) * fraction + (1 << 14)) >> 15
    return int(wrapped(np.array(result + begin))) & 0xFFFFFFFF


def shrunk(snr: int) -> int:
    if snr < 2 << SNR_BITS:
        return (snr * snr) >> (2 + 2 * SNR_BITS - _OUTPUT_BITS)
    return (snr >> (SNR_BITS - _OUTPUT_BITS)) - (1 << _OUTPUT_BITS)


def logarithm(value: int, scale: int) -> int:
    """`scale` times ln(value) as int16; 0 below 2."""
    if value < 2:
        return 0
    whole = value.bit_length() - 1
    above = value - (1 << whole)
    fraction = above << (_ONE_BITS - whole) if whole < _ONE_BITS else above >> (whole - _ONE_BITS)
    segment = fraction >> (_ONE_BITS - _SEGMENT_BITS)
    begin = segment << (_ONE_BITS - _SEGMENT_BITS)
    rise = (int(EXCESS[segment + 1] - EXCESS[segment]) * (fraction - begin)) >> _ONE_BITS
    log_2 = (whole << _ONE_BITS) + fraction + int(EXCESS[segment]) + rise
    half = 1 << (_ONE_BITS - 1)
    log_e = (_LN_2 * log_2 + half) >> _ONE_BITS
    return min(((scale * log_e + half) & 0xFFFFFFFF) >> _ONE_BITS, _MOST_16)
