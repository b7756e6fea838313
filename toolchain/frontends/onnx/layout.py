"""How an ONNX tensor lies in memory: a permutation of the factors of its dimensions.

ONNX uses NCHW, kernels use NHWC. Instead of transposing, every value has a layout. Transposes and
most reshapes then only rename dimensions, and data move only where a kernel needs another order. A
reshape may split a dimension into factors or group several, so the unit of a layout is the factor:
each dimension is a sequence of factors, and `order` is their order in memory, outermost first.
Dimensions of 1 have no factors, because their place makes no difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """`dims`: the factors of each dimension; `sizes`: of each factor; `order`: in memory."""

    dims: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    order: tuple[int, ...]

    @staticmethod
    def of(shape: Sequence[int], axes: Sequence[int] | None = None) -> Layout:
        """The layout of `shape` with its dimensions in the order `axes`, row-major by default."""
        sizes = tuple(size for size in shape if size != 1)
        numbers = iter(range(len(sizes)))
        dims = tuple(() if size == 1 else (next(numbers),) for size in shape)
        layout = Layout(dims, sizes, ())
        return Layout(dims, sizes, layout.order_of(range(len(dims)) if axes is None else axes))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(math.prod(self.sizes[f] for f in dim) for dim in self.dims)

    def order_of(self, axes: Sequence[int]) -> tuple[int, ...]:
        """The order in memory that has whole dimensions in the order `axes`."""
        return tuple(factor for axis in axes for factor in self.dims[axis])

    def lies_as(self, axes: Sequence[int]) -> bool:
        return self.order_of(axes) == self.order

    def axes(self) -> tuple[int, ...] | None:
        """The order of the dimensions in memory; None if one of them is split up.

        Dimensions of 1 can be anywhere; channels last or the order of the shape is preferred.
        """
        rank = len(self.dims)
        for axes in (channels_last(rank), tuple(range(rank))):
            if self.lies_as(axes):
                return axes
        owner = {factor: axis for axis, dim in enumerate(self.dims) for factor in dim}
        large = tuple(dict.fromkeys(owner[factor] for factor in self.order))
        if self.order_of(large) != self.order:
            return None
        return (*(axis for axis in range(rank) if axis not in large), *large)

    def transposed(self, permutation: Sequence[int]) -> Layout:
        """This memory with its dimensions renamed: new dimension i is old `permutation[i]`."""
        return Layout(tuple(self.dims[axis] for axis in permutation), self.sizes, self.order)

    def reshaped(self, shape: Sequence[int]) -> Layout | None:
        """This memory seen as `shape`; None if that would move data."""
        sizes, order = list(self.sizes), list(self.order)
        pending = self._merge(sizes, order)
        dims: list[tuple[int, ...]] = []
        for size in shape:
            dim: list[int] = []
            rest = size
            while rest > 1:
                factor = pending.pop(0)
                if rest % sizes[factor] == 0:
                    rest //= sizes[factor]
                elif sizes[factor] % rest == 0:
                    inner = len(sizes)
                    sizes.append(sizes[factor] // rest)
                    sizes[factor] = rest
                    order.insert(order.index(factor) + 1, inner)
                    pending.insert(0, inner)
                    rest = 1
                else:
                    return None
                dim.append(factor)
            dims.append(tuple(dim))
        return Layout(tuple(dims), tuple(sizes), tuple(order))

    def _merge(self, sizes: list[int], order: list[int]) -> list[int]:
        """Join factors that follow one another both in the shape and in memory."""
        merged: list[int] = []
        for factor in (f for dim in self.dims for f in dim):
            if merged and order.index(factor) == order.index(merged[-1]) + 1:
                sizes[merged[-1]] *= sizes[factor]
                order.remove(factor)
            else:
                merged.append(factor)
        return merged


def channels_last(rank: int) -> tuple[int, ...]:
    """The order N, spatial..., C of a tensor that ONNX writes as N, C, spatial..."""
    return (0, *range(2, rank), 1) if rank > 2 else tuple(range(rank))


def move(layout: Layout, target: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The transpose of the smallest rank that brings `layout` into the factor order `target`.

    Returns the shape to read the memory as, and the permutation of that shape.
    """
    place = {factor: i for i, factor in enumerate(target)}
    runs: list[list[int]] = []
    for factor in layout.order:
        if runs and place[factor] == place[runs[-1][-1]] + 1:
            runs[-1].append(factor)
        else:
            runs.append([factor])
    shape = tuple(math.prod(layout.sizes[f] for f in run) for run in runs)
    permutation = tuple(sorted(range(len(runs)), key=lambda i: place[runs[i][0]]))
    return shape, permutation
