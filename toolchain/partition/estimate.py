"""Costs of schemes, without building their graphs: bytes live at the peak, and time.

The steps are those of the region's `BlockProgram`, from which `scheme` builds the finer graph.
Alignment is ignored. All numbers of blocks of a region are computed at once: each array holds one
entry per block, those of the first number of blocks first.
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
from toolchain.ops.kernel import SafeOverlap
from toolchain.ops.lowering import NO_FORMS, Forms
from toolchain.ops.preference import Preference
from toolchain.ops.spec import Axis, Part, Reach, Reduction
from toolchain.partition.block_costs import BlockCosts
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


@dataclass(frozen=True)
class Estimate:
    """The predicted peak and cost of a region for one number of blocks.

    `bytes_inside`: the most bytes that the region's own windows, results and scratch take at a
    step, without tensors from outside. `count`: instructions or cycles of all its blocks. `blocks`:
    the number of blocks of all operators together.
    """

    bytes_inside: int
    count: int
    blocks: int


class Estimator:
    """Estimates for regions of one graph. `scratch_bytes`: those of each operator, unsplit."""

    def __init__(
        self,
        graph: Graph,
        core: Core,
        costs: CostModel,
        scratch_bytes: tuple[int, ...],
        preference: Preference = Preference.AUTO,
        forms: Forms = NO_FORMS,
    ) -> None:
        self.costs = BlockCosts(graph, core, costs, preference, forms)
        self.scratch_bytes = scratch_bytes
        self.known_runs: dict[
            tuple[int, tuple[Reach | None, ...], bytes], tuple[Ints, tuple[Claim, ...]]
        ] = {}

    def estimates(
        self,
        region: Region,
        counts: Sequence[int],
        mode: Mode,
        dying: frozenset[str] = frozenset(),
    ) -> tuple[Estimate | None, ...]:
        """One for each number of blocks; None if the region cannot be split into so many.

        `dying`: tensors from outside that the region is the last to read. The rows of these that
        blocks have read for the last time are subtracted from `bytes_inside`.
        """
        return _Walk(self, BlockProgram(region, counts, mode)).estimates(dying)


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
        self.claims: list[tuple[Claim, ...]] = []
        self.reads: dict[tuple[str, int], Read] = {}
        """Reads of runs of bytes, by the tensor and the place of its reader."""
        self.written: list[Written | None] = []

    def estimates(self, dying: frozenset[str]) -> tuple[Estimate | None, ...]:
        starts = self.program.starts
        computed = [step.computed for step in self.program.steps]
        costs = self._block_costs()
        peaks, copied = self._bytes(dying)
        endings = self.estimator.costs.endings(self.region)
        apart = self._apart_bytes(dying)
        return tuple(
            Estimate(max(int(peak), least), int(cost) + endings, int(blocks)) if valid else None
            for valid, peak, least, cost, blocks in zip(
                self.valid,
                np.maximum.reduceat(peaks, starts),
                apart,
                costs + np.add.reduceat(copied, starts),
                np.add.reduceat(np.sum(computed, axis=0), starts),
                strict=True,
            )
        )

    def _block_costs(self) -> Ints:
        """The cost of all blocks, for each number of them."""
        counts, known = self.program.counts, self.estimator.known_runs
        total = np.zeros(len(counts), np.int64)
        for step in self.program.steps:
            runs = hashlib.blake2b(counts.tobytes())
            runs.update(step.begin.tobytes() + step.end.tobytes())
            key = (step.op, self.region.split_of(step.op).reaches, runs.digest())
            if key not in known:
                known[key] = self._costs_of(step)
            costs, claims = known[key]
            total += costs
            self.claims.append(claims)
        return total

    def _costs_of(self, step: Step) -> tuple[Ints, tuple[Claim, ...]]:
        """The cost of the blocks of one operator, for each number of them; and the operands that
        each may lie over."""
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
            self._block_cost(op, split, lengths, columns[:, i].tolist(), int(step.begin[runs[i]]))
            for i in which.tolist()
        ]
        of_block = np.zeros(len(rows), np.int64)
        of_block[runs] = np.asarray([cost for cost, _ in each], np.int64)[shape_of]
        claims = self._claims(op, [overlaps for _, overlaps in each], shape_of, runs)
        return np.add.reduceat(of_block, self.program.starts), claims

    def _claims(
        self, op: int, each: Sequence[tuple[SafeOverlap, ...]], shape_of: Ints, runs: Ints
    ) -> tuple[Claim, ...]:
        """The overlaps that blocks of each shape allow, spread over the blocks."""
        claims, blocks = [], len(self.program.of)
        for number, name in enumerate(self.region.op(op).inputs):
            claimed = [next((o for o in of if o.input == number), None) for of in each]
            if any(claimed):
                lead = np.full(blocks, FAR)
                exact = np.zeros(blocks, np.bool_)
                lead[runs] = np.asarray([o.lead_bytes if o else FAR for o in claimed])[shape_of]
                exact[runs] = np.asarray([o is not None and o.exact for o in claimed])[shape_of]
                claims.append(Claim(name, lead, exact))
        return tuple(claims)

    def _block_cost(
        self,
        op: int,
        split: Axis | Reduction,
        lengths: dict[str, tuple[int, Ints]],
        shape: list[int],
        begin: int,
    ) -> tuple[int, tuple[SafeOverlap, ...]]:
        """The cost of a block of this shape: indices before and after the operand, then all
        lengths.

        `begin`: the first index of one such block.
        """
        operands = tuple(
            (name, along, length)
            for (name, (along, _)), length in zip(lengths.items(), shape[2:], strict=True)
        )
        if any(length <= 0 for _, _, length in operands):
            return 0, ()  # the scheme is invalid
        part = Part(shape[2] if operands else 0, shape[0], shape[1], begin)
        return self.estimator.costs.block(op, split, part, operands)

    def _bytes(self, dying: frozenset[str]) -> tuple[Ints, NDArray[np.float64]]:
        """The most bytes that are live in each block, and the cost of copies."""
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
            at_once[at] += self.estimator.scratch_bytes[step.op]
            at_once[at] -= self._shared(at)
        live = base + np.cumsum(change[:-1], axis=0) + at_once
        return live.max(axis=0), copied

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
        for claim in self.claims[made]:
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

    def _shared(self, at: int) -> Ints:
        """Bytes that an operator saves by writing its block over an operand: a window over another
        one, or an output over an input. A window over a tensor that is there for long would save
        bytes, too, but seldom can it lie there at all steps."""
        best = np.zeros(len(self.program.of), np.int64)
        written, long = self.written[at], self.program.steps[at].output in self.whole
        for claim in self.claims[at]:
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
        each = [self.estimator.costs.copy(name, int(s)) if s > 0 else 0 for s in sizes]
        return np.asarray(each, np.float64)[which]


def _codes(columns: Ints) -> Ints:
    """One number for each column; equal where the columns are."""
    codes = np.zeros(columns.shape[1], np.int64)
    for row in columns:
        codes = np.unique(codes * (int(row.max(initial=0)) + 1) + row, return_inverse=True)[1]
    return codes


def _bytes_per_index(region: Region, name: str) -> int:
    tensor, axis = region.graph.tensors[name], region.axis_of(name)
    return math.prod(d for i, d in enumerate(tensor.shape) if i != axis) * tensor.dtype.size_bytes
