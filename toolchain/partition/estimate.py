"""Costs of schemes, without building their graphs: bytes live at the peak, and time.

The steps are those of the region's `BlockProgram`, from which `scheme` builds the finer graph.
Alignment is ignored. All numbers of blocks of a region are computed at once: each array holds one
entry per block, those of the first number of blocks first.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.cost import CostModel
from toolchain.cost.alternatives import Alternative
from toolchain.ir import Graph
from toolchain.ops.kernel import Kernel
from toolchain.ops.preference import Preference
from toolchain.ops.spec import Axis, Part, Reach, Reduction
from toolchain.partition.block_costs import NO_NAMES, BlockCosts, FormNames
from toolchain.partition.program import FAR, BlockProgram, Home, Ints, Mode, Step
from toolchain.partition.region import Region
from toolchain.partition.takeovers import (
    Claim,
    Read,
    Written,
    distances,
    lead_bytes,
    shared_bytes,
)

_Run = tuple[tuple[Reach | None, ...], bytes]
"""How an operator reads its operands, and a digest of the indices that its blocks compute."""
_THIN = 0.98
"""Choices of kernels for a region's operators are kept whose peaks are so far apart."""


@dataclass(frozen=True)
class Estimate:
    """The predicted peak and cost of a region for one number of blocks and one choice of kernels.

    `bytes_inside`: the most bytes that the region's own windows, results and scratch take at a
    step, without tensors from outside. `count`: instructions or cycles of all its blocks. `blocks`:
    the number of blocks of all operators together. `titles`: of the kernel of each of the region's
    operators, in its order; '' for the one that is chosen first.
    """

    bytes_inside: int
    count: int
    blocks: int
    titles: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Way:
    """How all blocks of an operator may be computed: where the kernel `title` does not apply to a
    block, it is one that calls the same function, else the one that is chosen first.

    `counts`: cost of all blocks, for each number of blocks. `scratch`: bytes of each block.
    """

    title: str
    counts: Ints
    scratch: Ints
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class _Found:
    """The estimates of one region, with the results that they rest on: runs by the place of their
    operator, and copies by the number of their tensor.
    """

    estimates: tuple[tuple[Estimate, ...], ...]
    runs: tuple[tuple[int, _Run], ...]
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
        graph: Graph,
        core: Core,
        costs: CostModel,
        preference: Preference = Preference.AUTO,
        names: FormNames | None = NO_NAMES,
    ) -> None:
        self.costs = BlockCosts(graph, core, costs, preference, names)
        self.runs: set[tuple[int, _Run]] = set()
        self._ways: dict[tuple[int, int | None, _Run], tuple[int, tuple[Way, ...]]] = {}
        self._found: dict[Hashable, _Found] = {}

    def estimates(
        self,
        region: Region,
        counts: Sequence[int],
        mode: Mode,
        dying: frozenset[str] = frozenset(),
        grains: Sequence[int] = (),
    ) -> tuple[tuple[Estimate, ...], ...]:
        """For each number of blocks, by falling peak and rising cost, what choices of kernels give;
        none if the region cannot be split into so many.

        `dying`: tensors from outside that the region is the last to read. The rows of these that
        blocks have read for the last time are subtracted from `bytes_inside`.
        """
        numbers: dict[str, int] = {}
        pattern = self._pattern(region, dying, numbers)
        key = pattern, tuple(counts), mode, tuple(grains)
        found = self._found.get(key)
        if pattern is None or found is None:
            walk = _Walk(self, BlockProgram(region, counts, mode, grains=grains))
            estimates = walk.estimates(dying)
            if pattern is not None:
                copies = tuple((numbers[name], size) for name, size in walk.copied)
                self._found[key] = _Found(estimates, tuple(walk.runs), copies)
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

    def ways(self, step: Step, program: BlockProgram, run: _Run) -> tuple[Way, ...]:
        """The ways to compute the blocks of one operator, known of operators like it."""
        region, op = program.region, step.op
        split = region.split_of(op)
        along = split.axis if isinstance(split, Axis) else None
        key = self.costs.like[op], along, run
        if key not in self._ways:
            self._ways[key] = op, _Blocks(self, program).ways(step)
        first, ways = self._ways[key]
        if first == op:
            return ways
        renamed = dict(zip(region.op(first).inputs, region.op(op).inputs, strict=True))
        return tuple(
            replace(
                way,
                claims=tuple(one._replace(operand=renamed[one.operand]) for one in way.claims),
            )
            for way in ways
        )


class _Walk:
    """A walk over the blocks of one region, for their bytes and costs."""

    def __init__(self, estimator: Estimator, program: BlockProgram) -> None:
        self.estimator = estimator
        self.program = program
        self.region: Region = program.region
        self.graph = program.region.graph
        self.valid = program.valid.copy()
        region = self.region
        self.whole = {name: self.graph.tensors[name].size_bytes for name in region.joined}
        self.whole |= {name: region.sums_bytes(name) for name in region.reduced}
        """Bytes of what is there from its first block on."""
        self.unit = [
            0 if window.home is Home.WHOLE else _bytes_per_index(region, name)
            for name, window in zip(program.place, program.windows, strict=True)
        ]
        """Bytes of an index in a window; none where the window lies in what is there anyhow."""
        self.grown = {
            name: _bytes_per_index(region, name)
            for name in region.joined
            if program.windows[program.place[name]].home is Home.WHOLE
        }
        """Bytes by which each index lengthens what is there."""
        self.ways: list[tuple[Way, ...]] = []
        self.reads: dict[tuple[str, int], Read] = {}
        """Reads of runs of bytes, by the tensor and the place of its reader."""
        self.written: list[Written | None] = []
        self.runs: list[tuple[int, _Run]] = []
        self.copied: list[tuple[str, int]] = []
        """Results under the estimates: runs by the place of their operator, and copies."""

    def estimates(self, dying: frozenset[str]) -> tuple[tuple[Estimate, ...], ...]:
        starts, steps = self.program.starts, self.program.steps
        blocks = np.add.reduceat(np.sum([step.computed for step in steps], axis=0), starts)
        self.ways = [self._ways_of(at, step) for at, step in enumerate(steps)]
        live, copied = self._bytes(dying)
        more = np.add.reduceat(copied, starts).astype(np.int64)
        more += self.estimator.costs.endings(self.region)
        apart = self._apart_bytes(dying)
        peaks = [
            [np.maximum.reduceat(live[at] + self._beside(at, way), starts) for way in ways]
            for at, ways in enumerate(self.ways)
        ]
        result = []
        for number, valid in enumerate(self.valid.tolist()):
            choices = [
                [
                    (int(peak[number]), int(way.counts[number]), way.title if rank else "")
                    for rank, (peak, way) in enumerate(zip(each, ways, strict=True))
                ]
                for each, ways in zip(peaks, self.ways, strict=True)
            ]
            found = _trades(choices, apart[number]) if valid else ()
            result.append(
                tuple(
                    Estimate(peak, count + int(more[number]), int(blocks[number]), titles)
                    for peak, count, titles in found
                )
            )
        return tuple(result)

    def _ways_of(self, at: int, step: Step) -> tuple[Way, ...]:
        runs = hashlib.blake2b(self.program.counts.tobytes())
        runs.update(step.begin.tobytes() + step.end.tobytes())
        run = self.region.split_of(step.op).reaches, runs.digest()
        self.runs.append((at, run))
        self.estimator.runs.add((step.op, run))
        return self.estimator.ways(step, self.program, run)

    def _beside(self, at: int, way: Way) -> Ints:
        """Scratch of each block, without what it saves by writing over an operand."""
        return way.scratch - self._shared(at, way)

    def _bytes(self, dying: frozenset[str]) -> tuple[Ints, NDArray[np.float64]]:
        """For each step and block what is live, without scratch and as if nothing were written over
        an operand; and what copies cost in each block.
        """
        program, steps = self.program, self.program.steps
        blocks = len(program.of)
        copied = np.zeros(blocks)
        base = np.zeros(blocks, np.int64)
        change = np.zeros((len(steps) + 1, blocks), np.int64)
        at_once = np.zeros((len(steps), blocks), np.int64)
        columns = np.arange(blocks)
        for at, (step, window) in enumerate(zip(steps, program.windows, strict=True)):
            name, unit, joined = step.output, self.unit[at], step.output in self.whole
            halo = step.begin - window.begin
            kept_before, kept_after = halo * unit, (step.end - window.kept) * unit
            during = np.where(step.computed, (step.end - window.begin) * unit, kept_before)
            if joined:
                during = np.where(step.computed & (halo == 0), 0, during)
            moved = step.end - window.begin if joined else halo
            copied += self._copies(name, np.where(window.shift, moved, 0) * unit)
            copied += self._copies(name, np.where(window.rest, kept_after, 0))
            if window.home is Home.COPY and not joined:  # else the copy is made in place
                at_once[at] += np.where(window.shift, kept_before, 0)
            if name in self.grown:  # as much as there is
                base += step.there * self.grown[name]
                change[at] += (step.end - step.there) * self.grown[name]
            elif joined:  # whole from its first block on
                whole = self.whole[name]
                base += np.where(step.there > 0, whole, 0)
                change[at] += np.where(step.computed & (step.there == 0), whole, 0)
            base += kept_before
            change[at] += during - kept_before
            left = during
            if not joined:
                lengths = self._runs(at)
                if window.home is Home.RUN:  # shrinks with each of its readers
                    left = self._shrink(change, during, name, lengths)
            self.written.append(self._writes(at))
            freed = np.flatnonzero(window.reader >= 0)
            change[window.reader[freed] + 1, columns[freed]] += (kept_after - left)[freed]
        for name in sorted(dying):
            read_from, last = self._sliced(name)
            tensor, axis = self.graph.tensors[name], self.region.sliced[name]
            size = tensor.shape[axis]
            unit = tensor.size_bytes // size
            before = np.minimum(read_from, size) * unit
            after = np.minimum(program.next(read_from), size) * unit
            if math.prod(tensor.shape[:axis]) == 1:
                top = np.full(blocks, tensor.size_bytes)
                for at, reads in program.readers[name]:
                    stays = np.where(last == at, after, before)
                    self.reads[name, at] = Read(reads.begin * unit, before, top, stays, top)
            base -= before
            change[last + 1, columns] -= after - before
        for at, step in enumerate(steps):
            part_bytes, cost = self._parts(step)
            copied += cost
            at_once[at] += part_bytes
        return base + np.cumsum(change[:-1], axis=0) + at_once, copied

    def _runs(self, at: int) -> list[Ints]:
        """Bytes of the window at this place that live on after each reader. Notes the bytes that
        each finds and leaves."""
        step, window, unit = self.program.steps[at], self.program.windows[at], self.unit[at]
        start, keeps = window.begin, window.kept < step.end
        low, high = np.where(keeps, window.kept, FAR), np.where(keeps, step.end, 0)
        ending: list[Ints] = []
        for reader, reads in reversed(self.program.readers[step.output]):
            after, computed = (low, high), self.program.steps[reader].computed
            ending.append(np.maximum(high - low, 0) * unit)
            low = np.where(computed, np.minimum(low, reads.begin), low)
            high = np.where(computed, np.maximum(high, reads.end), high)
            if window.home is Home.RUN:
                ends = (index - start for index in (reads.begin, low, high, *after))
                self.reads[step.output, reader] = Read(*(index * unit for index in ends))
            else:  # a part cut out of it is a copy
                whole = (step.end - start) * unit
                none = np.zeros_like(whole)
                stays = np.where((ending[-1] > 0) | (reads.begin > start), whole, 0)
                self.reads[step.output, reader] = Read(none, none, whole, none, stays)
        return ending[::-1]

    def _writes(self, at: int) -> Written | None:
        """The bytes that each block writes of a run; None where they are there before, or are no
        run."""
        step, window = self.program.steps[at], self.program.windows[at]
        if step.output in self.grown:
            unit = self.grown[step.output]
            return Written(step.begin * unit, step.there * unit, step.end * unit)
        if step.output in self.whole:
            return None
        unit = self.unit[at]
        if window.home is Home.COPY:
            none = np.zeros_like(step.begin)
            return Written(none, none, (step.end - step.begin) * unit)
        halo = (step.begin - window.begin) * unit
        return Written(halo, halo, (step.end - window.begin) * unit)

    def _shrink(self, change: Ints, during: Ints, name: str, lengths: Sequence[Ints]) -> Ints:
        """Let a window shrink after each reader to the indices that others and later blocks read.
        Returns the bytes that the last reader finds."""
        left = during
        readers = [at for at, _ in self.program.readers[name]]
        waiting = [self.program.steps[at].computed for at in readers]
        for number, at in enumerate(readers):
            others = np.logical_or.reduce(waiting[number + 1 :], axis=0, initial=False)
            rest = np.minimum(lengths[number], left)
            shrunk = np.where(waiting[number] & others, rest, left)
            change[at + 1] += shrunk - left
            left = shrunk
        return left

    def _parts(self, step: Step) -> tuple[Ints, NDArray[np.float64]]:
        """Bytes and cost of the copies that a block reads instead of tensors from outside: parts
        of them that are not one run of bytes."""
        size_bytes = np.zeros(len(self.program.of), np.int64)
        cost = np.zeros(len(self.program.of))
        counted = set()
        for reads in filter(None, step.reads):
            tensor = self.graph.tensors[reads.name]
            outside = reads.name not in self.program.place and not tensor.is_constant
            if (reads.name, reads.reach) in counted or not outside:
                continue
            counted.add((reads.name, reads.reach))
            if math.prod(tensor.shape[: reads.axis]) > 1:
                each = tensor.size_bytes // reads.size
                part = np.where(step.computed, reads.end - reads.begin, 0) * each
                size_bytes += part
                cost += self._copies(reads.name, part)
        return size_bytes, cost

    def _apart_bytes(self, dying: frozenset[str]) -> list[int]:
        """Bytes of all outputs beside the dying inputs, for each number of blocks.

        Each is one run of bytes from its first block on. Only one output can grow over the bytes
        that an input leaves: a second one would have to begin higher up, where the input still
        lives.
        """
        tensors = self.graph.tensors
        saved: list[tuple[str, str, Ints]] = []
        for fading in sorted(dying):
            size_bytes = tensors[fading].size_bytes
            for name in self.grown:
                ahead = self._ahead(fading, name)
                lead = np.maximum(np.maximum.reduceat(ahead, self.program.starts), 0)
                both = np.maximum(self.whole[name], lead + size_bytes)
                saved.append((fading, name, size_bytes + self.whole[name] - both))
        result = []
        for at in range(len(self.program.counts)):
            taken: set[str] = set()
            total = sum(self.whole.values())
            for fading, name, savings in sorted(saved, key=lambda s: -int(s[2][at])):
                if not taken & {fading, name}:
                    taken |= {fading, name}
                    total -= int(savings[at])
            result.append(total)
        return result

    def _ahead(self, fading: str, name: str) -> Ints:
        """How far behind an output the dying input must begin for the sake of each block."""
        made, size_bytes = self.program.place[name], self.graph.tensors[fading].size_bytes
        length = self.graph.tensors[fading].shape[self.region.sliced[fading]]
        read_from, last = self._sliced(fading)
        first, rest = (
            np.minimum(index, length) * (size_bytes // length)
            for index in (read_from, self.program.next(read_from))
        )
        whole, written = np.full_like(first, size_bytes), self.written[made]
        assert written is not None
        apart = distances(Read(first, first, whole, rest, whole), written)
        claimed = late = written.top - first
        for claim in self.ways[made][0].claims:
            read = self.reads.get((fading, made))
            if claim.operand == fading and read is not None:
                lead = np.where(claim.exact, late, lead_bytes(claim, read, written))
                claimed = np.minimum(claimed, np.maximum(apart, lead))
        return np.where(last < made, apart, np.where(last == made, claimed, late))

    def _sliced(self, name: str) -> tuple[Ints, Ints]:
        """For a tensor from outside, the first index that each block or a later one reads, and the
        place of its last reader in each block (the end, where it has none)."""
        program, end = self.program, len(self.program.steps) - 1
        first = np.full(len(program.of), FAR)
        reader = np.full(len(program.of), end)
        none = np.ones(len(program.of), np.bool_)
        for at, reads in program.readers[name]:
            step = program.steps[at]
            first = np.minimum(first, np.where(step.begin < program.size[at], reads.begin, FAR))
            reader[step.computed] = at
            none &= ~step.computed
        reader[none] = end
        return first, reader

    def _shared(self, at: int, way: Way) -> Ints:
        """Bytes that an operator saves by writing its block over an operand: a window over another
        one, or an output over an input. A window over a tensor that is there for long would save
        bytes, too, but seldom can it lie there at all steps."""
        best = np.zeros(len(self.program.of), np.int64)
        written, long = self.written[at], self.program.steps[at].output in self.whole
        for claim in way.claims:
            read = self.reads.get((claim.operand, at))
            if (
                read is not None
                and written is not None
                and long == (claim.operand not in self.program.place)
            ):
                best = np.maximum(best, shared_bytes(claim, read, written))
        return best

    def _copies(self, name: str, size_bytes: Ints) -> NDArray[np.float64]:
        """The cost of a copy in each block; none of 0 bytes."""
        if not size_bytes.any():
            return np.zeros(len(size_bytes))
        sizes, which = np.unique(size_bytes, return_inverse=True)
        self.copied += [(name, int(size)) for size in sizes if size > 0]
        each = [self.estimator.costs.copy(name, int(s)) if s > 0 else 0 for s in sizes]
        return np.asarray(each, np.float64)[which]


class _Blocks:
    """The kernels of the blocks of one operator, in each number of them."""

    def __init__(self, estimator: Estimator, program: BlockProgram) -> None:
        self.costs = estimator.costs
        self.program = program
        self.region: Region = program.region

    def ways(self, step: Step) -> tuple[Way, ...]:
        """The ways to compute the blocks of one operator."""
        split, rows, op = self.region.split_of(step.op), step.end - step.begin, step.op
        lengths: dict[str, tuple[int, Ints]] = {}
        if isinstance(split, Axis):
            lengths[step.output] = (split.axis, rows)
        for reads in filter(None, step.reads):
            lengths[reads.name] = (reads.axis, reads.end - reads.begin)
        before, after = step.beyond
        runs = np.flatnonzero(step.computed)
        columns = np.stack([before, after, *(length for _, length in lengths.values())])[:, runs]
        _, which, shape_of = np.unique(_codes(columns), return_index=True, return_inverse=True)
        each = [
            self._alternatives(op, split, lengths, columns[:, i].tolist(), int(step.begin[runs[i]]))
            for i in which.tolist()
        ]
        titles = dict.fromkeys(one.title for found in each for one in found)
        firsts = {found[0].title for found in each if found}
        ways = []
        for title in sorted(titles, key=lambda title: title not in firsts):
            taken = [_taken(found, title) for found in each]
            of_block, scratch = np.zeros((2, len(rows)), np.int64)
            if runs.size:
                of_block[runs] = np.asarray([one.count if one else 0 for one in taken])[shape_of]
                scratch[runs] = np.asarray(
                    [one.kernel.scratch_bytes if one else 0 for one in taken]
                )[shape_of]
            counts = np.add.reduceat(of_block, self.program.starts)
            claims = self._claims(
                op, [one.kernel if one else None for one in taken], shape_of, runs
            )
            ways.append(Way(title, counts, scratch, claims))
        none = np.zeros(len(rows), np.int64)
        return tuple(ways) or (Way("", none[: len(self.program.counts)], none, ()),)

    def _claims(
        self, op: int, each: Sequence[Kernel | None], shape_of: Ints, runs: Ints
    ) -> tuple[Claim, ...]:
        """The overlaps that blocks of each shape allow, spread over the blocks."""
        claims, blocks = [], len(self.program.of)
        overlaps = [kernel.overlaps if kernel else () for kernel in each]
        for number, name in enumerate(self.region.op(op).inputs):
            claimed = [next((o for o in of if o.input == number), None) for of in overlaps]
            if any(claimed):
                lead = np.full(blocks, FAR)
                exact = np.zeros(blocks, np.bool_)
                lead[runs] = np.asarray([o.lead_bytes if o else FAR for o in claimed])[shape_of]
                exact[runs] = np.asarray([o is not None and o.exact for o in claimed])[shape_of]
                claims.append(Claim(name, lead, exact))
        return tuple(claims)

    def _alternatives(
        self,
        op: int,
        split: Axis | Reduction,
        lengths: dict[str, tuple[int, Ints]],
        shape: list[int],
        begin: int,
    ) -> tuple[Alternative, ...]:
        """The kernels that may compute a block of this shape: indices before and after the operand,
        then all lengths.

        `begin`: the first index of one such block.
        """
        operands = tuple(
            (name, along, length)
            for (name, (along, _)), length in zip(lengths.items(), shape[2:], strict=True)
        )
        if any(length <= 0 for _, _, length in operands):
            return ()  # of a scheme that is invalid
        part = Part(shape[2] if operands else 0, shape[0], shape[1], begin)
        return self.costs.block(op, split, part, operands)


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
    ranked = [sorted(each, key=lambda one: (one[1], one[0])) for each in choices]
    ranks = [0] * len(ranked)
    last = math.inf
    before: tuple[int, int, tuple[str, ...]] | None = None
    while True:
        chosen = [each[rank] for each, rank in zip(ranked, ranks, strict=True)]
        peak = max((least_bytes, *(one[0] for one in chosen)))
        made = (peak, sum(one[1] for one in chosen), tuple(one[2] for one in chosen))
        if peak <= _THIN * last:
            last, before = peak, None
            yield made
        else:
            before = made
        for at, each in enumerate(ranked):
            while ranks[at] < len(each) and each[ranks[at]][0] >= peak:
                ranks[at] += 1
        if peak <= least_bytes or any(
            rank == len(each) for each, rank in zip(ranked, ranks, strict=True)
        ):
            break
    if before is not None:
        yield before


def _codes(columns: Ints) -> Ints:
    """One number for each column; equal where the columns are."""
    codes = np.zeros(columns.shape[1], np.int64)
    for row in columns:
        codes = np.unique(codes * (int(row.max(initial=0)) + 1) + row, return_inverse=True)[1]
    return codes


def _bytes_per_index(region: Region, name: str) -> int:
    tensor, axis = region.graph.tensors[name], region.axis_of(name)
    return math.prod(d for i, d in enumerate(tensor.shape) if i != axis) * tensor.dtype.size_bytes
