"""Parts of the kernels of pools: the call of Thimble's int8 ones, overlaps, terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from toolchain.ops import kit
from toolchain.ops.pooling.common import Pool2D, pool_lead_bytes

Counts = dict[str, float]


def pool_kernel(
    op: kit.Operator[Pool2D],
    function: str,
    by_blocks: Callable[[int, float, int, int], Counts],
    more: Mapping[str, kit.Argument] | None = None,
) -> kit.Kernel:
    """A call of `function`, one of Thimble's int8 pools, with `more` arguments after the first.

    `by_blocks` gives the terms of its channels, from their number, the pixels, and the lines and
    taps of all windows inside the image.
    """
    attributes, x, y = op.attributes, op.x, op.y
    low, high = kit.clamp_range(attributes.activation, y)
    params: dict[str, kit.Argument] = {
        "batches": x.shape[0],
        "input_h": x.shape[1],
        "input_w": x.shape[2],
        "output_h": y.shape[1],
        "output_w": y.shape[2],
        "channels": x.shape[3],
        "kernel_h": attributes.filter_height,
        "kernel_w": attributes.filter_width,
        "stride_h": attributes.stride_height,
        "stride_w": attributes.stride_width,
        "pad_top": attributes.padding.top,
        "pad_left": attributes.padding.left,
        "min": low,
        "max": high,
    }
    arguments: dict[str, kit.Argument] = {
        "params": kit.Struct("thimble_pool_params", params),
        **(more or {}),
        "input": kit.Input(0),
        "output": kit.Output(0),
    }
    call = kit.Call(function, arguments)
    return kit.Kernel(
        (call,),
        _extents,
        find_overlaps=lambda: pool_overlaps(op, reads_first=True),
        find_terms=lambda: _terms(call, by_blocks),
    )


def pool_overlaps(op: kit.Operator[Pool2D], *, reads_first: bool) -> tuple[kit.SafeOverlap, ...]:
    """As `pool_lead_bytes` says."""
    return (kit.SafeOverlap(0, 0, pool_lead_bytes(op, reads_first=reads_first)),)


def _extents(touched: kit.Touched) -> kit.Extents:
    """Windows are clipped to the image."""
    call = touched.call
    pixels = {
        side: math.prod(call[f"params.{side}_{axis}"] for axis in "hw")
        for side in ("input", "output")
    }
    each = call["params.batches"] * call["params.channels"]
    rows, columns = (
        (
            call[f"params.output_{axis}"],
            call[f"params.stride_{axis}"],
            call[f"params.kernel_{axis}"],
            1,
            call[f"params.{pad}"],
        )
        for axis, pad in (("h", "pad_top"), ("w", "pad_left"))
    )
    return kit.Extents(
        {0: kit.whole(each * pixels["input"])},
        {0: kit.whole(each * pixels["output"])},
        largest=kit.window_reach([rows, columns]),
    )


def _terms(call: kit.Call, by_blocks: Callable[[int, float, int, int], Counts]) -> kit.Terms:
    """Pixels, the lines and the taps of their windows inside the image, by blocks of channels."""
    rows, columns = (
        kit.along(
            call[f"params.input_{axis}"],
            call[f"params.output_{axis}"],
            call[f"params.kernel_{axis}"],
            call[f"params.stride_{axis}"],
            1,
            call[f"params.{pad}"],
            0,
        )
        for axis, pad in (("h", "pad_top"), ("w", "pad_left"))
    )
    channels = call["params.channels"]
    terms, lines, taps = step_terms(call["params.batches"], rows, columns)
    pixels, rest = terms["pixel"], channels % 4
    terms |= {"lone": pixels * rest, "lone row": lines * rest, "lone tap": taps * rest}
    return terms | by_blocks(channels, pixels, lines, taps)


def step_terms(batches: int, rows: kit.Along, columns: kit.Along) -> tuple[Counts, int, int]:
    """Terms of all kernels; lines and taps of all windows, the part of them inside the image."""
    pixels = batches * rows.windows * columns.windows
    terms = {"call": 1.0, "row": batches * rows.windows, "pixel": pixels}
    return terms, batches * rows.taps * columns.windows, batches * rows.taps * columns.taps


def block_terms(name: str, blocks: int, pixels: float, lines: int, taps: int) -> Counts:
    """Terms of so many blocks of channels of each pixel."""
    return {name: pixels * blocks, f"{name} row": lines * blocks, f"{name} tap": taps * blocks}
