"""The common form of concat, pack, split and unpack: parts of one tensor along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.ops import kit
from toolchain.ops.movement.copies import StridedCopy, strided_copy


@dataclass(frozen=True)
class Parts:
    """A dense tensor as [outer][middle][inner]. Part i is `lengths[i]` indices of the middle, from
    `offsets[i]` on.
    """

    outer: int
    inner: int
    lengths: tuple[int, ...]

    @property
    def offsets(self) -> tuple[int, ...]:
        return tuple(sum(self.lengths[:i]) for i in range(len(self.lengths)))

    @property
    def contiguous(self) -> bool:
        """Whether each part is one run of the whole tensor, so that it can be a view of it."""
        return self.outer == 1


def parts_along(whole: kit.Tensor, axis: int, lengths: Sequence[int]) -> Parts:
    """The parts of a tensor along an axis, by their lengths."""
    return Parts(math.prod(whole.shape[:axis]), math.prod(whole.shape[axis + 1 :]), tuple(lengths))


def part_aliases(
    parts: Parts, whole: kit.Tensor, tensors: Sequence[kit.Tensor]
) -> tuple[kit.Alias, ...]:
    """The tensors that are parts of `whole`, as views of it where each is one run."""
    if not parts.contiguous:
        return ()
    unit = parts.inner * whole.dtype.size_bytes
    return tuple(
        kit.Alias(tensor.name, whole.name, offset * unit)
        for tensor, offset in zip(tensors, parts.offsets, strict=True)
    )


def gather_copies(parts: Parts, element_bytes: int) -> tuple[StridedCopy, ...]:
    """The copies of each dense input to its part of the output."""
    total = sum(parts.lengths) * parts.inner
    return tuple(
        copy
        for index, (length, offset) in enumerate(zip(parts.lengths, parts.offsets, strict=True))
        for copy in strided_copy(
            (parts.outer, length * parts.inner),
            (length * parts.inner, 1),
            (total, 1),
            element_bytes,
            source=index,
            target_offset=offset * parts.inner,
        )
    )


def scatter_copies(parts: Parts, element_bytes: int) -> tuple[StridedCopy, ...]:
    """The copies of each part of the input to its dense output."""
    total = sum(parts.lengths) * parts.inner
    return tuple(
        copy
        for index, (length, offset) in enumerate(zip(parts.lengths, parts.offsets, strict=True))
        for copy in strided_copy(
            (parts.outer, length * parts.inner),
            (total, 1),
            (length * parts.inner, 1),
            element_bytes,
            target=index,
            source_offset=offset * parts.inner,
        )
    )
