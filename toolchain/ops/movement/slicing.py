"""TFLite's STRIDED_SLICE arguments, resolved to plain numbers.

Source: LiteRT `strided_slice.cc` (`BuildStridedSliceParams`, `StartForAxis`, `EndForAxis`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Masks:
    """Bit i of each mask applies to entry i of begin, end and strides."""

    begin: int = 0
    end: int = 0
    ellipsis: int = 0
    new_axis: int = 0
    shrink_axis: int = 0


@dataclass(frozen=True)
class Selection:
    """`sizes[i]` elements of input axis `i`, from `begin[i]` in steps of `strides[i]`.

    `shape` is the output's: the sizes without shrunk axes, with new ones of 1.
    """

    begin: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    shape: tuple[int, ...]


def select(
    shape: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
    masks: Masks,
    *,
    end_is_length: bool = False,
) -> Selection:
    """The elements that `begin:end:strides` under `masks` selects from a tensor of `shape`.

    With `end_is_length` (TFLite's option `offset`) end counts from begin. Raises ValueError for
    arguments that contradict the shape.
    """

    def has(mask: int, entry: int) -> bool:
        return bool(mask >> entry & 1)

    entries = range(len(begin))
    if not len(begin) == len(end) == len(strides):
        raise ValueError("begin, end and strides differ in length")
    added = sum(has(masks.new_axis, i) and not has(masks.ellipsis, i) for i in entries)
    starts: list[int] = []
    sizes: list[int] = []
    steps: list[int] = []
    result: list[int] = []

    def take_whole(count: int) -> None:
        for size in shape[len(starts) : len(starts) + count]:
            starts.append(0)
            sizes.append(size)
            steps.append(1)
            result.append(size)

    for i in entries:
        if has(masks.ellipsis, i):
            covered = len(shape) - (len(begin) - 1 - added)
            if covered < 1:
                raise ValueError("an ellipsis that stands for no dimension")
            take_whole(covered)
            continue
        if has(masks.new_axis, i):
            result.append(1)
            continue
        if len(starts) == len(shape):
            raise ValueError(f"more slices than the {len(shape)} dimensions")
        size = shape[len(starts)]
        start, count = _range(
            size,
            None if has(masks.begin, i) else begin[i],
            None if has(masks.end, i) else end[i],
            strides[i],
            end_is_length,
        )
        if has(masks.shrink_axis, i):
            if not 0 <= start < size or strides[i] < 0:
                raise ValueError(f"index {begin[i]} by {strides[i]} into a dimension of {size}")
            count = 1
        else:
            result.append(count)
        starts.append(start)
        sizes.append(count)
        steps.append(strides[i])
    take_whole(len(shape) - len(starts))
    return Selection(tuple(starts), tuple(sizes), tuple(steps), tuple(result))


def selected(options: Any, shape: Sequence[int], limits: Iterable[Sequence[int]]) -> Selection:
    """As `select`, under the masks of STRIDED_SLICE's options. `limits`: begin, end, strides."""
    masks = Masks(
        int(options.beginMask),
        int(options.endMask),
        int(options.ellipsisMask),
        int(options.newAxisMask),
        int(options.shrinkAxisMask),
    )
    begin, end, strides = limits
    return select(shape, begin, end, strides, masks, end_is_length=bool(options.offset))


def _range(
    size: int, begin: int | None, end: int | None, stride: int, end_is_length: bool
) -> tuple[int, int]:
    """First index and number of indices; None stands for a masked end."""
    if stride == 0:
        raise ValueError("a stride of 0")
    low, high = (0, size) if stride > 0 else (-1, size - 1)

    def clamped(index: int) -> int:
        return min(max(index + size if index < 0 else index, low), high)

    first, last = (0, size) if stride > 0 else (size - 1, -1)
    start = first if begin is None else clamped(begin)
    if end_is_length and end is not None and not low <= start + end <= high:
        raise ValueError(f"{end} elements from {start} on, in a dimension of {size}")
    stop = last if end is None else clamped(end + start if end_is_length else end)
    return start, max(-((start - stop) // stride), 0)
