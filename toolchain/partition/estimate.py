"""What schemes cost, without building their graphs: bytes live at the worst moment, and time.

The steps are those of `scheme.split`, in the same order; alignment is left out. All numbers of
blocks of one region are walked at once: each array holds one entry per block, those of the first
number of blocks first.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.cost import CostModel
from toolchain.ir import Graph
from toolchain.ops.spec import Axis, Part, Reach, Reduction, SafeOverlap
from toolchain.partition.block_costs import BlockCosts
from toolchain.partition.blocks import Mode
from toolchain.partition.many_blocks import ManyBlocks, needed
from toolchain.partition.region import Region
from toolchain.partition.takeovers import (
    FAR,
    Claim,
    Read,
    Written,
    distances,
    lead_bytes,
    shared_bytes,
)

_Ints = NDArray[np.int64]
_Flags = NDArray[np.bool_]
_Need = tuple[int, _Ints, _Ints]
"""The place of a reader, and the first and last index that each of its blocks reads, plus one."""


@dataclass(frozen=True)
class Estimate:
    """`bytes_inside`: the most that the region's own windows, results and scratch take at a step,
    the tensors from outside left out. `count`: instructions or cycles of all its blocks.
    `blocks`: how many there are, of all operators."""

    bytes_inside: int
    count: int
    blocks: int


class Estimator:
    """Estimates for regions of one graph. `scratch_bytes`: of each of its operators, unsplit."""

    def __init__(
        self, graph: Graph, core: Core, costs: CostModel, scratch_bytes: tuple[int, ...]
    ) -> None:
        self.costs = BlockCosts(graph, core, costs)
        self.scratch_bytes = scratch_bytes
        self.known_runs: dict[
            tuple[int, tuple[Reach | None, ...], bytes], tuple[_Ints, _Flags, tuple[Claim, ...]]
        ] = {}

    def estimates(
        self,
        region: Region,
        counts: Sequence[int],
        mode: Mode,
        dying: frozenset[str] = frozenset(),
    ) -> tuple[Estimate | None, ...]:
        """One for each number of blocks; None where the region cannot be split into so many.

        `dying`: tensors from outside that the region is the last to read. What blocks have read of
        them for the last time is taken off `bytes_inside`.
        """
        return _Walk(self, region, counts, mode).estimates(dying)


class _Walk(ManyBlocks):
    """What the blocks of one region take and cost."""

    def __init__(
        self, estimator: Estimator, region: Region, counts: Sequence[int], mode: Mode
    ) -> None:
        super().__init__(region, counts, mode)
        self.estimator = estimator
        summed = [op in region.reductions for op in region.ops]
        self.one_run = [
            sums or math.prod(self.graph.tensors[name].shape[: region.axis_of(name)]) == 1
            for name, sums in zip(self.place, summed, strict=True)
        ]
        self.whole = {name: self.graph.tensors[name].size_bytes for name in region.joined}
        self.whole |= {name: region.sums_bytes(name) for name in region.reduced}
        """Bytes of what is there from its first block on."""
        self.unit = [
            0 if one_run and name in self.whole else _bytes_per_index(region, name)
            for name, one_run in zip(self.place, self.one_run, strict=True)
        ]
        """Bytes of an index in a window; none where the window lies in what is there anyhow."""
        self.grown = {
            name: _bytes_per_index(region, name)
            for name in region.joined
            if self.one_run[self.place[name]]
        }
        """Bytes by which each index lengthens what is there."""
        self.claims: list[tuple[Claim, ...]] = []
        self.reads: dict[tuple[str, int], Read] = {}
        """Of runs of bytes: by the tensor and the place of its reader."""
        self.written: list[Written | None] = []

    def estimates(self, dying: frozenset[str]) -> tuple[Estimate | None, ...]:
        begin, end = self.runs()
        computed = [b < e for b, e in zip(begin, end, strict=True)]
        costs = self._block_costs(begin, end, computed)
        peaks, copied = self._bytes(begin, end, computed, dying)
        endings = self.estimator.costs.endings(self.region)
        apart = self._apart_bytes(begin, end, dying)
        return tuple(
            Estimate(max(int(peak), least), int(cost) + endings, int(blocks)) if valid else None
            for valid, peak, least, cost, blocks in zip(
                self.valid,
                np.maximum.reduceat(peaks, self.starts),
                apart,
                costs + np.add.reduceat(copied, self.starts),
                np.add.reduceat(np.sum(computed, axis=0), self.starts),
                strict=True,
            )
        )

    def _block_costs(self, begin: list[_Ints], end: list[_Ints], computed: list[_Flags]) -> _Ints:
        """Of all blocks, for each number of them."""
        total = np.zeros(len(self.counts), np.int64)
        for at, op in enumerate(self.region.ops):
            runs = hashlib.blake2b(self.counts.tobytes())
            runs.update(begin[at].tobytes() + end[at].tobytes())
            key = (op, self.region.split_of(op).reaches, runs.digest())
            known = self.estimator.known_runs
            if key not in known:
                known[key] = self._costs_of(at, op, begin[at], end[at], computed[at])
            costs, valid, claims = known[key]
            total += costs
            self.claims.append(claims)
            self.valid &= valid
        return total

    def _costs_of(
        self, at: int, op: int, begin: _Ints, end: _Ints, computed: _Flags
    ) -> tuple[_Ints, _Flags, tuple[Claim, ...]]:
        """Of the blocks of one operator, for each number of them, and whether they can be; and over
        what each may lie."""
        split, rows = self.region.split_of(op), end - begin
        lengths: dict[str, tuple[int, _Ints]] = {}
        if isinstance(split, Axis):
            lengths[self.region.op(op).outputs[0]] = (split.axis, rows)
        before = after = np.zeros(len(rows), np.int64)
        empty = np.zeros(len(rows), np.bool_)
        for number, (name, reach) in enumerate(self.reaches(op, inner=False)):
            size = self.graph.tensors[name].shape[reach.axis]
            low, high = needed(reach, begin, end, size)
            empty |= computed & ((low >= high) | reach.splits(begin, end))
            lengths[name] = (reach.axis, high - low)
            if number == 0:
                before = low * reach.divisor - (begin * reach.stride - reach.before)
                after = np.maximum(reach.last(end) - size, 0)
        runs = np.flatnonzero(computed)
        columns = np.stack([before, after, *(length for _, length in lengths.values())])[:, runs]
        _, which, shape_of = np.unique(_codes(columns), return_index=True, return_inverse=True)
        each = [
            self._block_cost(op, split, lengths, columns[:, i].tolist(), int(begin[runs[i]]))
            for i in which.tolist()
        ]
        of_block = np.zeros(len(rows), np.int64)
        of_block[runs] = np.asarray([cost for cost, _ in each], np.int64)[shape_of]
        claims = self._claims(op, [found for _, found in each], shape_of, runs)
        costs, valid = (
            np.add.reduceat(of_block, self.starts),
            np.logical_or.reduceat(empty, self.starts),
        )
        return costs, ~valid, claims

    def _claims(
        self, op: int, each: Sequence[tuple[SafeOverlap, ...]], shape_of: _Ints, runs: _Ints
    ) -> tuple[Claim, ...]:
        """Those that blocks of each shape allow, spread over the blocks."""
        claims = []
        for number, name in enumerate(self.region.op(op).inputs):
            found = [next((o for o in of if o.input == number), None) for of in each]
            if any(found):
                lead = np.full(len(self.of), FAR)
                exact = np.zeros(len(self.of), np.bool_)
                lead[runs] = np.asarray([o.lead_bytes if o else FAR for o in found])[shape_of]
                exact[runs] = np.asarray([o is not None and o.exact for o in found])[shape_of]
                claims.append(Claim(name, lead, exact))
        return tuple(claims)

    def _block_cost(
        self,
        op: int,
        split: Axis | Reduction,
        lengths: dict[str, tuple[int, _Ints]],
        shape: list[int],
        begin: int,
    ) -> tuple[int, tuple[SafeOverlap, ...]]:
        """Of a block of this shape: indices before and after the operand, then all lengths.

        `begin`: of one of them.
        """
        found = tuple(
            (name, along, length)
            for (name, (along, _)), length in zip(lengths.items(), shape[2:], strict=True)
        )
        if any(length <= 0 for _, _, length in found):
            return 0, ()  # of a scheme that is invalid
        part = Part(shape[2] if found else 0, shape[0], shape[1], begin)
        return self.estimator.costs.block(op, split, part, found)

    def _bytes(
        self,
        begin: list[_Ints],
        end: list[_Ints],
        computed: list[_Flags],
        dying: frozenset[str],
    ) -> tuple[_Ints, NDArray[np.float64]]:
        """For each block the most that is live in it, and what copies cost."""
        first = [np.full(len(self.of), FAR) for _ in self.size]
        reader = [np.full(len(self.of), -1) for _ in self.size]
        needs: list[list[_Need]] = [[] for _ in self.size]
        for at, reaches in enumerate(self.inner):
            going = begin[at] < self.size[at]
            for name, reach in reaches:
                other = self.place[name]
                low, high = needed(reach, begin[at], end[at], self.size[other])
                first[other] = np.minimum(first[other], np.where(going, low, FAR))
                reader[other][computed[at]] = at
                needs[other].append((at, low, high))
        copied = np.zeros(len(self.of))
        base = np.zeros(len(self.of), np.int64)
        change = np.zeros((len(self.size) + 1, len(self.of)), np.int64)
        at_once = np.zeros((len(self.size), len(self.of)), np.int64)
        columns = np.arange(len(self.of))
        for name, at in self.place.items():
            joined = name in self.whole
            unit, runs, read = self.unit[at], computed[at], reader[at] >= 0
            done = end[at]
            there = self.previous(done)  # what was computed before this block
            if self.mode is Mode.TILES:
                kept_before = kept_after = np.zeros(len(self.of), np.int64)
                kept_from = done
                halo = np.zeros(len(self.of), np.int64)
                during = np.where(runs, done - begin[at], 0) * (0 if joined else unit)
            else:
                low = np.minimum(first[at], there)
                kept_from = np.minimum(self.next(first[at]), done)
                halo = there - low
                kept_before = halo * unit
                kept_after = (done - kept_from) * unit
                during = np.where(runs, (done - low) * unit, kept_before)
                if joined:
                    during = np.where(runs & (halo == 0), 0, during)
                shift = runs & (halo > 0)
                moved = np.where(shift, done - low if joined else halo, 0) * unit
                copied += self._copies(name, moved)
                rest = read & (kept_from < done) & (kept_from > low)
                copied += self._copies(name, np.where(rest, kept_after, 0))
                if not (joined or self.one_run[at]):  # else the copy is made in place
                    at_once[at] += np.where(shift, kept_before, 0)
            if name in self.grown:  # as much as there is
                base += there * self.grown[name]
                change[at] += (done - there) * self.grown[name]
            elif joined:  # whole from its first block on
                whole = self.whole[name]
                base += np.where(there > 0, whole, 0)
                change[at] += np.where(runs & (there == 0), whole, 0)
            base += kept_before
            change[at] += during - kept_before
            start = begin[at] - halo  # of the window
            left = during
            if not joined:
                lengths = self._runs(name, start, (kept_from, done), needs[at], computed)
                if self.one_run[at]:  # shrinks with each of its readers
                    left = self._shrink(change, during, needs[at], lengths, computed)
            self.written.append(self._writes(at, start, begin[at], there, done))
            freed = np.flatnonzero(read)
            change[reader[at][freed] + 1, columns[freed]] += (kept_after - left)[freed]
        for name in sorted(dying):
            read_from, last = self._sliced(name, begin, end)
            tensor, axis = self.graph.tensors[name], self.region.sliced[name]
            size = tensor.shape[axis]
            unit = tensor.size_bytes // size
            before = np.minimum(read_from, size) * unit
            after = np.minimum(self.next(read_from), size) * unit
            if math.prod(tensor.shape[:axis]) == 1:
                top = np.full(len(self.of), tensor.size_bytes)
                for at, low in self._readers(name, begin):
                    stays = np.where(last == at, after, before)
                    self.reads[name, at] = Read(low * unit, before, top, stays, top)
            base -= before
            change[last + 1, columns] -= after - before
        for at, op in enumerate(self.region.ops):
            part_bytes, cost = self._parts(at, op, begin[at], end[at])
            copied += cost
            at_once[at] += part_bytes
            at_once[at] += self.estimator.scratch_bytes[op]
            at_once[at] -= self._shared(at)
        live = base + np.cumsum(change[:-1], axis=0) + at_once
        return live.max(axis=0), copied

    def _runs(
        self,
        name: str,
        start: _Ints,
        kept: tuple[_Ints, _Ints],
        needs: Sequence[_Need],
        computed: Sequence[_Flags],
    ) -> list[_Ints]:
        """Bytes of a window that begins at index `start` that live on after each reader. Notes what
        each finds and leaves."""
        at = self.place[name]
        unit, keeps = self.unit[at], kept[0] < kept[1]
        low, high = np.where(keeps, kept[0], FAR), np.where(keeps, kept[1], 0)
        found: list[_Ints] = []
        for reader, begin, end in reversed(needs):
            after = low, high
            found.append(np.maximum(high - low, 0) * unit)
            low = np.where(computed[reader], np.minimum(low, begin), low)
            high = np.where(computed[reader], np.maximum(high, end), high)
            if self.one_run[at]:
                ends = (index - start for index in (begin, low, high, *after))
                self.reads[name, reader] = Read(*(index * unit for index in ends))
            else:  # what is cut out of it is a copy
                whole = (kept[1] - start) * unit
                none = np.zeros_like(whole)
                stays = np.where((found[-1] > 0) | (begin > start), whole, 0)
                self.reads[name, reader] = Read(none, none, whole, none, stays)
        return found[::-1]

    def _writes(
        self, at: int, start: _Ints, begin: _Ints, there: _Ints, done: _Ints
    ) -> Written | None:
        """What each block writes of a run of bytes; None where that is there before, or is none."""
        name = self.region.op(self.region.ops[at]).outputs[0]
        if name in self.grown:
            unit = self.grown[name]
            return Written(begin * unit, there * unit, done * unit)
        if name in self.whole:
            return None
        unit = self.unit[at]
        if not self.one_run[at]:
            none = np.zeros_like(begin)
            return Written(none, none, (done - begin) * unit)
        halo = (begin - start) * unit
        return Written(halo, halo, (done - start) * unit)

    def _shrink(
        self,
        change: _Ints,
        during: _Ints,
        needs: Sequence[_Need],
        lengths: Sequence[_Ints],
        computed: Sequence[_Flags],
    ) -> _Ints:
        """Let a window shrink after each reader to what the others and later blocks read of it;
        the bytes that the last reader finds."""
        left = during
        waiting = [computed[at] for at, _, _ in needs]
        for number, (at, _, _) in enumerate(needs):
            others = np.logical_or.reduce(waiting[number + 1 :], axis=0, initial=False)
            rest = np.minimum(lengths[number], left)
            shrunk = np.where(computed[at] & others, rest, left)
            change[at + 1] += shrunk - left
            left = shrunk
        return left

    def _parts(
        self, at: int, op: int, begin: _Ints, end: _Ints
    ) -> tuple[_Ints, NDArray[np.float64]]:
        """Bytes and cost of the copies that a block reads instead of tensors from outside: parts
        of them that are not one run of bytes."""
        size_bytes = np.zeros(len(self.of), np.int64)
        cost = np.zeros(len(self.of))
        for name, reach in dict.fromkeys(self.reaches(op, inner=False)):
            tensor = self.graph.tensors[name]
            outside = name not in self.place and not tensor.is_constant
            if outside and math.prod(tensor.shape[: reach.axis]) > 1:
                length = tensor.shape[reach.axis]
                low, high = needed(reach, begin, end, length)
                part = np.where(begin < end, high - low, 0) * (tensor.size_bytes // length)
                size_bytes += part
                cost += self._copies(name, part)
        return size_bytes, cost

    def _apart_bytes(
        self, begin: list[_Ints], end: list[_Ints], dying: frozenset[str]
    ) -> list[int]:
        """What all outputs take beside the dying inputs, for each number of blocks.

        Each is one run of bytes from its first block on. Only one output can grow over what an
        input leaves: a second one would have to begin higher up, where the input still lives.
        """
        tensors = self.graph.tensors
        saved: list[tuple[str, str, _Ints]] = []
        for fading in sorted(dying):
            size_bytes = tensors[fading].size_bytes
            for name in self.grown:
                ahead = self._ahead(fading, name, begin, end)
                lead = np.maximum(np.maximum.reduceat(ahead, self.starts), 0)
                both = np.maximum(self.whole[name], lead + size_bytes)
                saved.append((fading, name, size_bytes + self.whole[name] - both))
        result = []
        for at in range(len(self.counts)):
            taken: set[str] = set()
            total = sum(self.whole.values())
            for fading, name, savings in sorted(saved, key=lambda s: -int(s[2][at])):
                if not taken & {fading, name}:
                    taken |= {fading, name}
                    total -= int(savings[at])
            result.append(total)
        return result

    def _ahead(self, fading: str, name: str, begin: list[_Ints], end: list[_Ints]) -> _Ints:
        """How far behind an output the dying input must begin for the sake of each block."""
        made, size_bytes = self.place[name], self.graph.tensors[fading].size_bytes
        length = self.graph.tensors[fading].shape[self.region.sliced[fading]]
        read_from, last = self._sliced(fading, begin, end)
        first, rest = (
            np.minimum(index, length) * (size_bytes // length)
            for index in (read_from, self.next(read_from))
        )
        whole, written = np.full_like(first, size_bytes), self.written[made]
        assert written is not None
        apart = distances(Read(first, first, whole, rest, whole), written)
        claimed = late = written.top - first
        for claim in self.claims[made]:
            read = self.reads.get((fading, made))
            if claim.operand == fading and read is not None:
                lead = np.where(claim.exact, late, lead_bytes(claim, read, written))
                claimed = np.minimum(claimed, np.maximum(apart, lead))
        return np.where(last < made, apart, np.where(last == made, claimed, late))

    def _sliced(self, name: str, begin: list[_Ints], end: list[_Ints]) -> tuple[_Ints, _Ints]:
        """Of a tensor from outside: the first index that each block or a later one reads, and the
        place of its last reader in each block (the end, where it has none)."""
        first = np.full(len(self.of), FAR)
        reader = np.full(len(self.of), len(self.size) - 1)
        none = np.ones(len(self.of), np.bool_)
        for at, low in self._readers(name, begin):
            first = np.minimum(first, np.where(begin[at] < self.size[at], low, FAR))
            computed = begin[at] < end[at]
            reader[computed] = at
            none &= ~computed
        reader[none] = len(self.size) - 1
        return first, reader

    def _readers(self, name: str, begin: list[_Ints]) -> Iterator[tuple[int, _Ints]]:
        """Of a tensor from outside: the place of each reader, and where its blocks begin."""
        for at, op in enumerate(self.region.ops):
            for operand, reach in self.reaches(op, inner=False):
                if operand == name:
                    yield at, np.maximum(reach.first(begin[at]), 0)

    def _shared(self, at: int) -> _Ints:
        """Bytes that an operator saves by writing its block over an operand: a window over another
        one, or an output over an input. A window over a tensor that is there for long would save
        bytes, too, but seldom can it lie there at all steps."""
        best = np.zeros(len(self.of), np.int64)
        written, long = self.written[at], list(self.place)[at] in self.whole
        for claim in self.claims[at]:
            read = self.reads.get((claim.operand, at))
            if (
                read is not None
                and written is not None
                and long == (claim.operand not in self.place)
            ):
                best = np.maximum(best, shared_bytes(claim, read, written))
        return best

    def _copies(self, name: str, size_bytes: _Ints) -> NDArray[np.float64]:
        """The cost of a copy in each block; none of 0 bytes."""
        if not size_bytes.any():
            return np.zeros(len(size_bytes))
        sizes, which = np.unique(size_bytes, return_inverse=True)
        each = [self.estimator.costs.copy(name, int(s)) if s > 0 else 0 for s in sizes]
        return np.asarray(each, np.float64)[which]


def _codes(columns: _Ints) -> _Ints:
    """One number for each column; equal where the columns are."""
    codes = np.zeros(columns.shape[1], np.int64)
    for row in columns:
        codes = np.unique(codes * (int(row.max(initial=0)) + 1) + row, return_inverse=True)[1]
    return codes


def _bytes_per_index(region: Region, name: str) -> int:
    tensor, axis = region.graph.tensors[name], region.axis_of(name)
    return math.prod(d for i, d in enumerate(tensor.shape) if i != axis) * tensor.dtype.size_bytes
