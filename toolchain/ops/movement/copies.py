"""Strided copies, of which every operator that moves bytes is a list.

Dimensions are merged at compile time, so a copy has as few loops as possible. If each copy of an
operator is one run of bytes, the operator declares its tensors as views (aliases): the memory plan
may place them on top of each other, and then no code is emitted. `kernels` makes calls of the other
operators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from toolchain.ops import kit

MAX_LOOPS = kit.defined("include/thimble_data.h", "THIMBLE_COPY_MAX_LOOPS")
"""Loops of `thimble_copy_nd`."""


@dataclass(frozen=True)
class Loop:
    """`count` iterations. Strides are in bytes; the source's may be negative."""

    count: int
    source_stride: int
    target_stride: int


@dataclass(frozen=True)
class StridedCopy:
    """Runs of `run_bytes` from input `source` to output `target`, one per iteration of the loops.

    `loops` are outermost first. Offsets are bytes from the start of each tensor.
    """

    source: int
    target: int
    source_offset: int
    target_offset: int
    loops: tuple[Loop, ...]
    run_bytes: int


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of a dense tensor of this shape."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def strided_copy(
    shape: Sequence[int],
    source_strides: Sequence[int],
    target_strides: Sequence[int],
    element_bytes: int,
    *,
    source: int = 0,
    target: int = 0,
    source_offset: int = 0,
    target_offset: int = 0,
) -> tuple[StridedCopy, ...]:
    """The copy of a block of `shape` between two strided places, with as few loops as possible.

    Strides and offsets are in elements. Writes go forward; if reads cannot, as in a transpose, the
    longest loop is innermost. Returns no copy for an empty block. Raises UnsupportedError if the
    kernel has too few loops.
    """
    if 0 in shape:
        return ()
    dims = [
        (count, read, write)
        for count, read, write in zip(shape, source_strides, target_strides, strict=True)
        if count > 1
    ]
    dims.sort(key=lambda dim: -dim[2])
    merged: list[tuple[int, int, int]] = []
    for count, read, write in dims:
        if merged and merged[-1][1:] == (read * count, write * count):
            merged[-1] = (merged[-1][0] * count, read, write)
        else:
            merged.append((count, read, write))
    run = 1
    if merged and merged[-1][1:] == (1, 1):
        run = merged.pop()[0]
    if any(outer[1] < inner[1] for outer, inner in pairwise(merged)):
        merged.sort(key=lambda dim: dim[0])
    if len(merged) > MAX_LOOPS:
        raise kit.UnsupportedError(
            f"moving data of shape {list(shape)} takes {len(merged)} nested loops, at most "
            f"{MAX_LOOPS} are supported; merge dimensions that stay together"
        )
    loops = (Loop(n, read * element_bytes, write * element_bytes) for n, read, write in merged)
    return (
        StridedCopy(
            source,
            target,
            source_offset * element_bytes,
            target_offset * element_bytes,
            tuple(loops),
            run * element_bytes,
        ),
    )


def image_pitch(image: kit.Tensor, run_bytes: int, loops: Sequence[Loop], *, source: bool) -> int:
    """Bytes from row to row of the wider image that a copy takes an image from (`source`) or puts
    it into.

    0 if it is no copy of that kind.
    """
    if len(image.shape) != 4 or image.shape[0] != 1 or len(loops) != 1:
        return 0
    _, height, width, channels = image.shape
    line = width * channels * image.dtype.size_bytes
    narrow, pitch = loops[0].target_stride, loops[0].source_stride
    if not source:
        narrow, pitch = pitch, narrow
    dense = loops[0].count == height and narrow == run_bytes == line
    return pitch if dense and pitch > line else 0
