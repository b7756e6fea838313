"""What schemes cost, without building their graphs: bytes live at the worst moment, and time.

The steps are those of `scheme.split`, in the same order; alignment is left out. All numbers of
blocks of one region are walked at once: each array holds one entry per block, those of the first
number of blocks first.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.cost import CostModel
from toolchain.ir import Graph
from toolchain.ops.spec import Axis, Reach, Reduction
from toolchain.partition.block_costs import BlockCosts
from toolchain.partition.blocks import Mode
from toolchain.partition.region import Region

_Ints = NDArray[np.int64]
_Flags = NDArray[np.bool_]
_FAR = np.int64(1) << 40
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
            tuple[int, tuple[Reach | None, ...], bytes], tuple[_Ints, _Flags]
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


class _Walk:
    """The blocks of one region as they will run, for several numbers of blocks."""

    def __init__(
        self, estimator: Estimator, region: Region, counts: Sequence[int], mode: Mode
    ) -> None:
        self.estimator, self.region, self.mode = estimator, region, mode
        self.graph = region.graph
        self.counts = np.asarray(counts, np.int64)
        self.starts = np.cumsum(self.counts) - self.counts
        self.of = np.repeat(self.counts, self.counts)  # number of blocks
        self.k = np.arange(len(self.of)) - np.repeat(self.starts, self.counts)
        self.valid = np.ones(len(self.counts), np.bool_)
        self.place = {region.op(op).outputs[0]: at for at, op in enumerate(region.ops)}
        self.inner = [self._reaches(op, inner=True) for op in region.ops]
        self.size = [region.length(op) for op in region.ops]
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

    def estimates(self, dying: frozenset[str]) -> tuple[Estimate | None, ...]:
        tiles = self.mode is Mode.TILES
        begin, end = self._tiles() if tiles else self._slides()
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

    def _reaches(self, op: int, *, inner: bool) -> list[tuple[str, Reach]]:
        found = zip(self.region.op(op).inputs, self.region.reaches(op), strict=True)
        return [(n, r) for n, r in found if n and r is not None and (n in self.place or not inner)]

    def _invalid(self, where: _Flags) -> None:
        self.valid &= ~np.logical_or.reduceat(where, self.starts)

    def _bound(self, size: int) -> tuple[_Ints, _Ints]:
        """The even share of each block."""
        return -(-size * self.k // self.of), -(-size * (self.k + 1) // self.of)

    def _previous(self, values: _Ints) -> _Ints:
        """Of the block before; 0 where there is none."""
        result = np.empty_like(values)
        result[1:] = values[:-1]
        result[self.starts] = 0
        return result

    def _next(self, values: _Ints) -> _Ints:
        """Of the block after; _FAR where there is none."""
        result = np.empty_like(values)
        result[:-1], result[-1] = values[1:], _FAR
        result[self.starts[1:] - 1] = _FAR
        return result

    def _slides(self) -> tuple[list[_Ints], list[_Ints]]:
        """See `blocks._slides`."""
        begins: list[_Ints] = []
        ends: list[_Ints] = []
        for size, reaches in zip(self.size, self.inner, strict=True):
            if reaches:
                end = np.full(len(self.of), size, np.int64)
            else:
                end = self._bound(size)[1]
                self._invalid(self.of > size)
            for name, reach in reaches:
                there = ends[self.place[name]]
                possible = (there - reach.extent + reach.before) // reach.stride + 1
                limit = np.where(there < self.size[self.place[name]], possible, size)
                end = np.clip(limit, 0, end)
            begins.append(self._previous(end))
            ends.append(end)
        return begins, ends

    def _tiles(self) -> tuple[list[_Ints], list[_Ints]]:
        """See `blocks._tiles`."""
        begins = [np.full(len(self.of), _FAR) for _ in self.size]
        ends = [np.zeros(len(self.of), np.int64) for _ in self.size]
        for name in self.whole:
            at = self.place[name]
            self._invalid(self.of > self.size[at])
            begins[at], ends[at] = self._bound(self.size[at])
        shares = {name: (begins[self.place[name]], ends[self.place[name]]) for name in self.whole}
        for at in reversed(range(len(self.size))):
            for name, reach in self.inner[at]:
                other = self.place[name]
                low, high = _needs(reach, begins[at], ends[at], self.size[other])
                self._invalid(low >= high)
                begins[other] = np.minimum(begins[other], low)
                ends[other] = np.maximum(ends[other], high)
        for name, (first, last) in shares.items():
            at = self.place[name]
            self._invalid((begins[at] != first) | (ends[at] != last))
        return begins, ends

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
            costs, valid = known[key]
            total += costs
            self.valid &= valid
        return total

    def _costs_of(
        self, at: int, op: int, begin: _Ints, end: _Ints, computed: _Flags
    ) -> tuple[_Ints, _Flags]:
        """Of the blocks of one operator, for each number of them, and whether they can be."""
        split, rows = self.region.split_of(op), end - begin
        lengths: dict[str, tuple[int, _Ints]] = {}
        if isinstance(split, Axis):
            lengths[self.region.op(op).outputs[0]] = (split.axis, rows)
        before = after = np.zeros(len(rows), np.int64)
        empty = np.zeros(len(rows), np.bool_)
        for number, (name, reach) in enumerate(self._reaches(op, inner=False)):
            size = self.graph.tensors[name].shape[reach.axis]
            low, high = _needs(reach, begin, end, size)
            empty |= computed & (low >= high)
            lengths[name] = (reach.axis, high - low)
            if number == 0:
                first = begin * reach.stride - reach.before
                last = (end - 1) * reach.stride - reach.before + reach.extent
                before, after = np.maximum(-first, 0), np.maximum(last - size, 0)
        runs = np.flatnonzero(computed)
        columns = np.stack([before, after, *(length for _, length in lengths.values())])[:, runs]
        _, which, shape_of = np.unique(_codes(columns), return_index=True, return_inverse=True)
        each = [
            self._block_cost(op, split, lengths, columns[:, i].tolist()) for i in which.tolist()
        ]
        of_block = np.zeros(len(rows), np.int64)
        of_block[runs] = np.asarray(each, np.int64)[shape_of]
        return np.add.reduceat(of_block, self.starts), ~np.logical_or.reduceat(empty, self.starts)

    def _block_cost(
        self,
        op: int,
        split: Axis | Reduction,
        lengths: dict[str, tuple[int, _Ints]],
        shape: list[int],
    ) -> int:
        """Of a block of this shape: indices before and after the operand, then all lengths."""
        found = tuple(
            (name, along, length)
            for (name, (along, _)), length in zip(lengths.items(), shape[2:], strict=True)
        )
        if any(length <= 0 for _, _, length in found):
            return 0  # of a scheme that is invalid
        return self.estimator.costs.block(op, split, shape[0], shape[1], found)

    def _bytes(
        self,
        begin: list[_Ints],
        end: list[_Ints],
        computed: list[_Flags],
        dying: frozenset[str],
    ) -> tuple[_Ints, NDArray[np.float64]]:
        """For each block the most that is live in it, and what copies cost."""
        first = [np.full(len(self.of), _FAR) for _ in self.size]
        reader = [np.full(len(self.of), -1) for _ in self.size]
        needs: list[list[_Need]] = [[] for _ in self.size]
        for at, reaches in enumerate(self.inner):
            going = begin[at] < self.size[at]
            for name, reach in reaches:
                other = self.place[name]
                low, high = _needs(reach, begin[at], end[at], self.size[other])
                first[other] = np.minimum(first[other], np.where(going, low, _FAR))
                reader[other][computed[at]] = at
                needs[other].append((at, low, high))
        copied = np.zeros(len(self.of))
        base = np.zeros(len(self.of), np.int64)
        change = np.zeros((len(self.size) + 1, len(self.of)), np.int64)
        at_once = np.zeros((len(self.size), len(self.of)), np.int64)
        columns = np.arange(len(self.of))
        made = list(self.place)
        window: list[_Ints] = []
        dies: list[_Flags] = []
        born: list[_Flags] = []  # with its block, not with what is kept before it
        for at, name in enumerate(made):
            joined = name in self.whole
            unit, runs, read = self.unit[at], computed[at], reader[at] >= 0
            done = end[at]
            there = self._previous(done)  # what was computed before this block
            if self.mode is Mode.TILES:
                kept_before = kept_after = np.zeros(len(self.of), np.int64)
                kept_from = done
                halo = np.zeros(len(self.of), np.int64)
                during = np.where(runs, done - begin[at], 0) * (0 if joined else unit)
            else:
                low = np.minimum(first[at], there)
                kept_from = np.minimum(self._next(first[at]), done)
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
            left = during
            if self.one_run[at] and not joined:  # shrinks with each of its readers
                kept = kept_from, done
                left = self._shrink(change, unit, during, needs[at], computed, kept)
            freed = np.flatnonzero(read)
            change[reader[at][freed] + 1, columns[freed]] += (kept_after - left)[freed]
            window.append(left)
            dies.append(read & (kept_from >= done))
            born.append(halo == 0)
        for name in sorted(dying):
            read_from, last = self._sliced(name, begin, end)
            tensor, axis = self.graph.tensors[name], self.region.sliced[name]
            size = tensor.shape[axis]
            unit = tensor.size_bytes // size
            before = np.minimum(read_from, size) * unit
            after = np.minimum(self._next(read_from), size) * unit
            base -= before
            change[last + 1, columns] -= after - before
        for at, op in enumerate(self.region.ops):
            part_bytes, cost = self._parts(at, op, begin[at], end[at])
            copied += cost
            at_once[at] += part_bytes
            at_once[at] += self.estimator.scratch_bytes[op]
            at_once[at] -= self._shared(at, op, window, dies, reader, made) * born[at]
        live = base + np.cumsum(change[:-1], axis=0) + at_once
        return live.max(axis=0), copied

    def _shrink(
        self,
        change: _Ints,
        unit: int,
        during: _Ints,
        needs: Sequence[_Need],
        computed: Sequence[_Flags],
        kept: tuple[_Ints, _Ints],
    ) -> _Ints:
        """Let a window shrink after each reader to what the others and later blocks read of it;
        the bytes that the last reader finds."""
        if len(needs) < 2:
            return during
        keeps = kept[0] < kept[1]
        low, high = np.where(keeps, kept[0], _FAR), np.where(keeps, kept[1], 0)
        after: list[_Ints] = []  # each reader, the last one first
        for at, begin, end in reversed(needs):
            after.append(np.maximum(high - low, 0) * unit)
            low = np.where(computed[at], np.minimum(low, begin), low)
            high = np.where(computed[at], np.maximum(high, end), high)
        left = during
        waiting = [computed[at] for at, _, _ in needs]
        for number, (at, _, _) in enumerate(needs):
            others = np.logical_or.reduce(waiting[number + 1 :], axis=0, initial=False)
            rest = np.minimum(after[-1 - number], left)
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
        for name, reach in dict.fromkeys(self._reaches(op, inner=False)):
            tensor = self.graph.tensors[name]
            outside = name not in self.place and not tensor.is_constant
            if outside and math.prod(tensor.shape[: reach.axis]) > 1:
                length = tensor.shape[reach.axis]
                low, high = _needs(reach, begin, end, length)
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
            length = tensors[fading].shape[self.region.sliced[fading]]
            read_from = np.minimum(self._sliced(fading, begin, end)[0], length)
            for name, unit in self.grown.items():
                made = end[self.place[name]] * unit
                ahead = made - read_from * (size_bytes // length)
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

    def _sliced(self, name: str, begin: list[_Ints], end: list[_Ints]) -> tuple[_Ints, _Ints]:
        """Of a tensor from outside: the first index that each block or a later one reads, and the
        place of its last reader in each block (the end, where it has none)."""
        first = np.full(len(self.of), _FAR)
        reader = np.full(len(self.of), len(self.size) - 1)
        none = np.ones(len(self.of), np.bool_)
        for at, op in enumerate(self.region.ops):
            for operand, reach in self._reaches(op, inner=False):
                if operand == name:
                    low = np.maximum(begin[at] * reach.stride - reach.before, 0)
                    first = np.minimum(first, np.where(begin[at] < self.size[at], low, _FAR))
                    computed = begin[at] < end[at]
                    reader[computed] = at
                    none &= ~computed
        reader[none] = len(self.size) - 1
        return first, reader

    def _shared(
        self,
        at: int,
        op: int,
        window: list[_Ints],
        dies: list[_Flags],
        reader: list[_Ints],
        made: list[str],
    ) -> _Ints:
        """Bytes that an operator saves by writing its block over an operand that dies."""
        best = np.zeros(len(self.of), np.int64)
        if made[at] in self.whole:
            return best
        for overlap in self.estimator.costs.in_place(op):
            other = self.place.get(self.region.op(op).inputs[overlap.input])
            if other is not None and made[other] not in self.whole:
                ends_here = dies[other] & (reader[other] == at)
                dying = window[other] + max(overlap.lead_bytes, 0)
                shared = window[other] + window[at] - np.maximum(window[at], dying)
                best = np.maximum(best, np.where(ends_here, shared, 0))
        return best

    def _copies(self, name: str, size_bytes: _Ints) -> NDArray[np.float64]:
        """The cost of a copy in each block; none of 0 bytes."""
        if not size_bytes.any():
            return np.zeros(len(size_bytes))
        sizes, which = np.unique(size_bytes, return_inverse=True)
        each = [self.estimator.costs.copy(name, int(s)) if s > 0 else 0 for s in sizes]
        return np.asarray(each, np.float64)[which]


def _needs(reach: Reach, begin: _Ints, end: _Ints, size: int) -> tuple[_Ints, _Ints]:
    """`Reach.needs` for many runs."""
    first = begin * reach.stride - reach.before
    last = (end - 1) * reach.stride - reach.before + reach.extent
    return np.maximum(first, 0), np.minimum(last, size)


def _codes(columns: _Ints) -> _Ints:
    """One number for each column; equal where the columns are."""
    codes = np.zeros(columns.shape[1], np.int64)
    for row in columns:
        codes = np.unique(codes * (int(row.max(initial=0)) + 1) + row, return_inverse=True)[1]
    return codes


def _bytes_per_index(region: Region, name: str) -> int:
    tensor, axis = region.graph.tensors[name], region.axis_of(name)
    return math.prod(d for i, d in enumerate(tensor.shape) if i != axis) * tensor.dtype.size_bytes
