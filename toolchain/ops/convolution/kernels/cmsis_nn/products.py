"""Parts of CMSIS-NN's convolutions without columns: overlaps and loops of `arm_nn_mat_mult_nt_t_s8`
for the whole image or for each of its rows, and the loops of its convolutions for Helium.
"""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit, walks
from toolchain.ops.convolution import overlaps
from toolchain.ops.convolution.kernels import windows
from toolchain.ops.convolution.kernels.cmsis_nn import shared

_WORD = 4


def direct_overlaps(
    op: kit.AnyOperator, core: kit.Core, window: kit.Window, products: int
) -> tuple[kit.SafeOverlap, ...]:
    """On Helium, of so many products; none elsewhere."""
    if not core.mve:
        return ()
    x, y = op.input(kit.INPUT).shape, op.y.shape
    firsts, run = walks.first_seen(op, window), y[0] * y[1] * y[2] // products
    return (kit.SafeOverlap(kit.INPUT, 0, _direct_lead(firsts, run, products, x[3], y[3])),)


def _direct_lead(
    firsts: walks.Int64, run: int, runs: int, input_bytes: int, output_bytes: int
) -> int:
    """The lead of `arm_nn_mat_mult_nt_t_s8` on Helium, which reads the image again for each
    channel.

    It computes four pixels at once: before it reads the last channel, all others are written. The
    remaining pixels of a run come one by one, four channels at a time.
    """
    lead = 0
    ends = walks.run_ends(run, runs, shared.HELIUM_PIXELS)
    starts = np.append(0, ends[:-1])
    full = ends - starts == shared.HELIUM_PIXELS
    if full.any() and output_bytes > 1:
        lowest = np.minimum.reduceat(firsts, starts)[full]
        lead = walks.lead_bytes(ends[full] * output_bytes - 1, lowest * input_bytes)
    rest = np.flatnonzero(
        np.arange(run * runs) % run >= run // shared.HELIUM_PIXELS * shared.HELIUM_PIXELS
    )
    early = (output_bytes - 1) // _WORD * _WORD
    if early:
        lead = max(lead, walks.lead_bytes(rest * output_bytes + early, firsts[rest] * input_bytes))
    steps = np.union1d(ends[full], rest + 1)
    return max(lead, overlaps.gathered_lead(firsts, steps, input_bytes, output_bytes))


def helium_terms(op: kit.AnyOperator, window: kit.Window, products: int) -> windows.Counts:
    """On Helium: vectors of 16 taps. Pixels are multiplied four at a time, in each of so many
    products.
    """
    batches, out_h, out_w, channels = op.y.shape
    pixels, depth = batches * out_h * out_w, op.input(kit.INPUT).shape[3]
    vectors = -(-window.kernel[0] * window.kernel[1] * depth // 16)
    four_pixels = products * (pixels // products // 4)
    rest = products * (pixels // products % 4)
    return {
        "call": 1.0,
        "product": products,
        "channel": products * channels,
        "channel vector": products * channels * vectors,
        "channel of four pixels": four_pixels * channels,
        "vector of four pixels": four_pixels * channels * vectors,
        "channel of last pixel": rest * channels,
        "vector of last pixel": rest * channels * vectors,
    }


def product_terms(products: int, pixels: int, channels: int, depth: int) -> windows.Counts:
    """`arm_nn_mat_mult_nt_t_s8`, called for each product: two channels by two pixels at a time."""
    pairs, twos, odd = channels // 2, pixels // 2, pixels % 2
    blocks, last = products * pairs * twos, products * pairs * odd
    lone = products * (channels % 2)
    sixteens, fours, rest = depth // 16, depth % 16 // 4, depth % 4
    return {
        "call": 1.0,
        "product": products,
        "two channels": products * pairs,
        "two channels' tap": products * pairs * depth,
        "block": blocks,
        "block of sixteen": blocks * sixteens,
        "block of four": blocks * fours,
        "block rest": blocks * rest,
        "last pixel": last,
        "last pixel sixteen": last * sixteens,
        "last pixel four": last * fours,
        "last pixel rest": last * rest,
        "last channel": lone,
        "last channel tap": lone * depth,
        "last channel pixel": lone * pixels,
        "last channel pixel sixteen": lone * pixels * sixteens,
        "last channel pixel four": lone * pixels * fours,
        "last channel pixel rest": lone * pixels * rest,
    }
