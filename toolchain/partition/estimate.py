"""Costs of schemes, without building their graphs: bytes live at the peak, and time.

The bytes are those of `walk`; the time that of the kernels that may compute each block.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from toolchain.cost import CostModel
from toolchain.cost.alternatives import Alternative
from toolchain.ops.spec import Axis, Reduction
from toolchain.partition.block_costs import NO_NAMES, BlockCosts, FormNames
from toolchain.partition.program import Heights, Mode
from toolchain.partition.region import Region
from toolchain.partition.walk import Run, Shapes, Walk, Walks, Way

_THIN = 0.98
"""Choices of kernels for a region's operators are kept whose peaks are so far apart."""


class Estimate(NamedTuple):
    """The predicted peak and cost of a region for one number of blocks and one choice of kernels.

    `bytes_inside`: the most bytes that the region's own windows, results and scratch take at a
    step, without tensors from outside. `cost`: instructions or cycles of all its blocks. `blocks`:
    the number of blocks of all operators together. `titles`: of the kernel of each of the region's
    operators, in its order; '' for the one that is chosen first.
    """

    bytes_inside: int
    cost: int
    blocks: int
    titles: tuple[str, ...]


_BY_COST = itemgetter(1, 0)


@dataclass(frozen=True)
class _Found:
    """The estimates of one region, with the results that they rest on: runs by the place of their
    operator, and copies by the number of their tensor.
    """

    estimates: tuple[tuple[Estimate, ...], ...]
    runs: tuple[tuple[int, Run], ...]
    copies: tuple[tuple[int, int], ...]


class Estimator:
    """Estimates for regions of one graph.

    Regions that consist of operators that are alike (`BlockCosts.like`), joined alike, have the
    same estimates: names of tensors and operators, values of constants and scales change none.
    `runs`: what has been estimated, by operator, as if each had been estimated by itself: by these
    and by `BlockCosts.known` a search counts its work.
    """

    def __init__(
        self,
        walks: Walks,
        costs: CostModel,
        names: FormNames | None = NO_NAMES,
    ) -> None:
        self.costs = BlockCosts(walks.kernels, costs, names)
        self.runs: set[tuple[int, Run]] = set()
        self._walks = walks
        self._ways: dict[tuple[int, int | None, Run], tuple[Way, ...]] = {}
        self._found: dict[Hashable, _Found] = {}

    def estimates(
        self,
        region: Region,
        counts: Sequence[int],
        mode: Mode,
        dying: frozenset[str] = frozenset(),
        grains: Sequence[int] = (),
        heights: Sequence[Heights] = (),
    ) -> tuple[tuple[Estimate, ...], ...]:
        """For each number of blocks, by falling peak and rising cost, what choices of kernels give;
        none if the region cannot be split into so many.

        `dying`: tensors from outside that the region is the last to read. The rows of these that
        blocks have read for the last time are subtracted from `bytes_inside`.
        """
        numbers: dict[str, int] = {}
        pattern = self._pattern(region, dying, numbers)
        key = pattern, tuple(counts), mode, tuple(grains), tuple(heights)
        found = self._found.get(key)
        if pattern is None or found is None:
            walk = self._walks.of(region, counts, mode, dying, grains, heights)
            estimates = self._of(walk)
            walk.forget()
            if pattern is not None:
                copies = tuple((numbers[name], size) for name, size in walk.copied)
                self._found[key] = _Found(estimates, tuple(enumerate(walk.runs)), copies)
            return estimates
        self.runs.update((region.ops[at], run) for at, run in found.runs)
        names = list(numbers)
        for number, size_bytes in found.copies:
            self.costs.copy(names[number], size_bytes)
        return found.estimates

    def _pattern(self, region: Region, dying: frozenset[str], numbers: dict[str, int]) -> Hashable:
        """Equal for regions that differ in names, values and scales alone; None where sums are
        requantised, which a scale may change. `numbers`: of the tensors, which it fills.
        """
        if region.reductions:
            return None

        def number(name: str) -> int:
            return numbers.setdefault(name, len(numbers))

        each = tuple(
            (
                self.costs.like[index],
                region.axes[index].axis,
                region.axes[index].reaches,
                tuple(map(number, region.op(index).inputs)),
                tuple(map(number, region.op(index).outputs)),
            )
            for index in region.ops
        )
        sliced = tuple((number(name), axis) for name, axis in region.sliced.items())
        return each, sliced, tuple(map(number, region.joined)), tuple(map(number, sorted(dying)))

    def _of(self, walk: Walk) -> tuple[tuple[Estimate, ...], ...]:
        each = [
            self._ways_of(walk.region, op, run)
            for op, run in zip(walk.region.ops, walk.runs, strict=True)
        ]
        self.runs.update(zip(walk.region.ops, walk.runs, strict=True))
        copies = [self.costs.copy(name, size_bytes) for name, size_bytes in walk.copied]
        more = np.asarray(copies, np.int64) @ walk.copies + self.costs.endings(walk.region)
        apart = walk.apart(each)
        ranked = [
            [
                list(
                    zip(walk.peaks(at, way), way.counts.tolist(), repeat(way.title if rank else ""))
                )
                for rank, way in enumerate(ways)
            ]
            for at, ways in enumerate(each)
        ]
        result = []
        for number, valid in enumerate(walk.valid):
            choices = [[way[number] for way in ways] for ways in ranked]
            found = _trades(choices, apart[number]) if valid else ()
            result.append(
                tuple(
                    Estimate(peak, count + int(more[number]), walk.blocks[number], titles)
                    for peak, count, titles in found
                )
            )
        return tuple(result)

    def _ways_of(self, region: Region, op: int, run: Run) -> tuple[Way, ...]:
        """The ways to compute the blocks of one operator, known of operators like it."""
        split = region.split_of(op)
        along = split.axis if isinstance(split, Axis) else None
        key = self.costs.like[op], along, run
        if key not in self._ways:
            self._ways[key] = tuple(self._ways_to(op, split, self._walks.shapes(op, split, run)))
        return self._ways[key]

    def _ways_to(self, op: int, split: Axis | Reduction, shapes: Shapes) -> Iterator[Way]:
        made = self.costs.lowered.graph.ops[op]
        names = (*made.inputs, *made.outputs)
        each: list[tuple[Alternative, ...]] = []
        for shape in shapes.parts:
            found: tuple[Alternative, ...] = ()
            if shape is not None:
                part, operands = shape
                lengths = tuple((names[place], axis, length) for place, axis, length in operands)
                found = self.costs.block(op, split, part, lengths)
            each.append(found)
        titles = dict.fromkeys(one.title for found in each for one in found)
        firsts = {found[0].title for found in each if found}
        for title in sorted(titles, key=lambda title: title not in firsts):
            taken = [_taken(found, title) for found in each]
            counts = np.asarray([one.count if one else 0 for one in taken], np.int64)
            kernels = tuple(one.kernel if one else None for one in taken)
            yield Way(title, shapes.numbers @ counts, kernels)
        if not titles:
            yield Way("", np.zeros(len(shapes.numbers), np.int64), (None,) * len(each))


def _taken(found: Sequence[Alternative], title: str) -> Alternative | None:
    """The kernel of that title, else the first that calls the same, else the first of all, as
    `ops.lowering.lower` takes it; None of a block that is never computed.
    """
    function = title.partition(" ")[0]
    alike = (one for one in found if one.kernel.name == function)
    exact = (one for one in found if one.title == title)
    return next(chain(exact, alike, found), None)


def _trades(
    choices: Sequence[Sequence[tuple[int, int, str]]], least_bytes: int
) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """By falling peak, the cheapest choice of kernels below it: peak, cost and titles. `choices`:
    for each step, the peak, cost and title of each kernel.
    """
    ranked = [sorted(each, key=_BY_COST) if len(each) > 1 else each for each in choices]
    ranks = [0] * len(ranked)
    last = math.inf
    before: tuple[int, int, tuple[str, ...]] | None = None
    ended = False
    while not ended:
        chosen = [each[rank] for each, rank in zip(ranked, ranks, strict=True)]
        peaks, counts, titles = zip(*chosen, strict=True)
        peak = max(least_bytes, *peaks)
        if peak <= _THIN * last:
            last, before = peak, None
            yield peak, sum(counts), titles
        else:
            before = peak, sum(counts), titles
        ended = peak <= least_bytes
        for at, each in enumerate(ranked):
            rank = ranks[at]
            while rank < len(each) and each[rank][0] >= peak:
                rank += 1
            ranks[at] = rank
            ended |= rank == len(each)
    if before is not None:
        yield before
