"""Cost terms of CMSIS-NN's int8 convolutions: how often their loops run.

Each function follows the loops of the sources for one extension: Helium, DSP, or plain C, whose
loops are those for DSP with one product a turn.
"""

from __future__ import annotations

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.convolution.terms import (
    Counts,
    helium_conv_terms,
    helium_depthwise_terms,
    seen_taps,
    walked,
)
from toolchain.ops.kernel import Terms
from toolchain.ops.window import Window


def conv_terms(
    op: Op, graph: Graph, function: str, window: Window, depth: int, core: Core
) -> Terms:
    """`arm_convolve_s8`, `_1x1_s8`, `_1x1_s8_fast` and `_1_x_n_s8`."""
    if core.mve:
        return helium_conv_terms(op, graph, function, window, depth)
    batches, out_h, out_w, channels = graph.output(op).shape
    if function == "arm_convolve_1x1_s8_fast":
        return _product_terms(1, batches * out_h * out_w, channels, depth)
    if function == "arm_convolve_1x1_s8":
        return _product_terms(batches * out_h, out_w, channels, depth)
    taps = window.kernel[0] * window.kernel[1]
    seen, pixels = seen_taps(op, graph, window), batches * out_h * out_w
    twos, lone = batches * (out_h * out_w // 2), batches * (out_h * out_w % 2)
    fours, rest = divmod(taps * depth, 4)
    blocks = twos * (channels // 2)
    return {
        "call": 1.0,
        "output row": batches * out_h,
        "pixel": pixels,
        "tap seen": seen,
        "tap word seen": seen * (depth // 4),
        "tap byte seen": seen * (depth % 4),
        "tap blank": pixels * taps - seen,
        "column word": pixels * fours,
        "column rest": pixels * rest,
        "block": blocks,
        "block word": blocks * fours,
        "block rest": blocks * rest,
        "last channel": twos * (channels % 2),
        "last channel word": twos * (channels % 2) * fours,
        "last channel rest": twos * (channels % 2) * rest,
        "last pixel output": lone * channels,
        "last pixel word": lone * channels * fours,
        "last pixel rest": lone * channels * rest,
    }


def _product_terms(products: int, pixels: int, channels: int, depth: int) -> Counts:
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


def depthwise_terms(op: Op, graph: Graph, function: str, window: Window, core: Core) -> Terms:
    """`arm_depthwise_conv_3x3_s8`, `_s8_opt` and `_s8`."""
    if core.mve and function == "arm_depthwise_conv_s8_opt":
        return helium_depthwise_terms(op, graph, window)
    x, (batches, out_h, out_w, channels) = graph.input(op, 0), graph.output(op).shape
    rows, columns = walked(op, graph, window)
    pixels, taps = batches * out_h * out_w, window.kernel[0] * window.kernel[1]
    seen_rows, seen = batches * rows.taps * columns.windows, seen_taps(op, graph, window)
    fours, rest = divmod(channels, 4)
    terms: Counts = {"call": 1.0, "output row": batches * out_h, "pixel": pixels}
    if function == "arm_depthwise_conv_s8_opt":
        return terms | {
            "tap": pixels * taps,
            "tap seen": seen,
            "tap word seen": seen * fours,
            "tap byte seen": seen * rest,
            "four channels": pixels * fours,
            "four channels of two taps": pixels * fours * (taps // 2),
            "four channels of the last tap": pixels * fours * (taps % 2),
            "channel": pixels * rest,
            "channel tap": pixels * rest * taps,
        }
    multiplicity = channels // x.shape[3]
    blocks = multiplicity % 4 == 0 and batches == 1 and window.dilation == (1, 1)
    if function == "arm_depthwise_conv_s8" and not blocks:
        dilated = sum(step > 1 for step in window.dilation)
        return terms | {
            "any channel": pixels * channels,
            "any channel dilated": pixels * channels * dilated,
            "any channel row": seen_rows * channels,
            "any channel tap": seen * channels,
        }
    return terms | {
        "four channels": pixels * fours,
        "four channels row": seen_rows * fours,
        "four channels tap": seen * fours,
        "channel": pixels * rest,
        "channel row": seen_rows * rest,
        "channel tap": seen * rest,
    }
