"""Walks over the blocks of a region, for the bytes that they take, whatever their kernels cost.

The steps are those of the region's `BlockProgram`, from which `scheme` builds the finer graph.
Alignment is ignored. All numbers of blocks of a region are computed at once: each array holds one
entry per block, those of the first number of blocks first.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from toolchain.ops.kernel import Kernel
from toolchain.ops.spec import Axis, Part, Reach, Reduction
from toolchain.partition.block_costs import BlockKernels
from toolchain.partition.program import FAR, BlockProgram, Heights, Home, Ints, Mode, Step
from toolchain.partition.region import Region
from toolchain.partition.takeovers import (
    Claim,
    Read,
    Written,
    distances,
    lead_bytes,
    shared_bytes,
)

Run = tuple[tuple[Reach | None, ...], bytes]
"""How an operator reads its operands, and a digest of the indices that its blocks compute."""
Claims = Sequence[Claim]


@dataclass(frozen=True, eq=False)
class Way:
    """How all blocks of an operator may be computed: where the kernel `title` does not apply to a
    block, it is one that calls the same function, else the one that is chosen first.

    `counts`: cost of all blocks, for each number of blocks. `kernels`: of the blocks of each shape
    (`Shapes`), None of those that are never computed; `titles`: theirs, by which ways of one
    operator that take the same bytes are known.
    """

    title: str
    counts: Ints
    kernels: tuple[Kernel | None, ...]

    @cached_property
    def titles(self) -> tuple[str, ...]:
        return tuple(kernel.title if kernel else "" for kernel in self.kernels)


@dataclass(frozen=True, eq=False)
class Shapes:
    """The blocks of one operator, by their shapes.

    `parts`: of each shape the block, and the lengths of operands: place, axis, length; None where
    the scheme is invalid. `computed`: the blocks that compute something; `shape_of`: their shapes.
    `numbers`: how many blocks have each shape, for each number of blocks.
    """

    parts: tuple[tuple[Part, tuple[tuple[int, int, int], ...]] | None, ...]
    computed: Ints
    shape_of: Ints
    numbers: Ints


def _shapes(program: BlockProgram, step: Step) -> Shapes:
    region, rows = program.region, step.end - step.begin
    split, op = region.split_of(step.op), region.op(step.op)
    lengths: dict[str, tuple[int, Ints]] = {}
    if isinstance(split, Axis):
        lengths[step.output] = (split.axis, rows)
    for reads in filter(None, step.reads):
        lengths[reads.name] = (reads.axis, reads.end - reads.begin)
    before, after = step.beyond
    computed = np.flatnonzero(step.computed)
    columns = np.stack([before, after, *(length for _, length in lengths.values())])[:, computed]
    _, which, shape_of = np.unique(_codes(columns), return_index=True, return_inverse=True)
    places = (*op.inputs, *op.outputs)
    along = [(places.index(name), axis) for name, (axis, _) in lengths.items()]
    parts = []
    for first in which.tolist():
        before_it, after_it, *each = columns[:, first].tolist()
        operands = tuple((*at, length) for at, length in zip(along, each, strict=True))
        begin = int(step.begin[computed[first]])
        part = Part(each[0] if each else 0, before_it, after_it, begin)
        parts.append(None if any(length <= 0 for length in each) else (part, operands))
    numbers = np.zeros((len(program.counts), len(parts)), np.int64)
    number_of = np.repeat(np.arange(len(program.counts)), program.counts)
    np.add.at(numbers, (number_of[computed], shape_of), 1)
    return Shapes(tuple(parts), computed, shape_of, numbers)


class Walks:
    """The walks of regions of one graph on one core: each made once, for every cost model.

    `kernels`: of that graph and core. Two walks are one if the regions have the same operators of
    the graph and the same seed, and the numbers of blocks, their heights, the mode, the grains,
    and the dying tensors are equal. The blocks of two operators have the same shapes if these are
    alike (`BlockKernels.outlines`), are split along the same axis, or sum over it, and run alike
    (`Run`).
    """

    def __init__(self, kernels: BlockKernels) -> None:
        self.kernels = kernels
        self._walks: dict[Hashable, Walk] = {}
        self._shapes: dict[Hashable, Shapes] = {}

    def of(
        self,
        region: Region,
        counts: Sequence[int],
        mode: Mode,
        dying: frozenset[str],
        grains: Sequence[int],
        heights: Sequence[Heights],
    ) -> Walk:
        key = region.ops, region.seed, tuple(counts), mode, dying, tuple(grains), tuple(heights)
        if key not in self._walks:
            self._walks[key] = Walk(self, region, counts, mode, dying, grains, heights)
        return self._walks[key]

    def shapes(self, op: int, split: Axis | Reduction, run: Run) -> Shapes:
        """The shapes of an operator's blocks, of which a walk has `noted` the run."""
        return self._shapes[self._shape_key(op, split, run)]

    def note(self, program: BlockProgram, step: Step, run: Run) -> None:
        """Keep the shapes of an operator's blocks."""
        key = self._shape_key(step.op, program.region.split_of(step.op), run)
        if key not in self._shapes:
            self._shapes[key] = _shapes(program, step)

    def _shape_key(self, op: int, split: Axis | Reduction, run: Run) -> Hashable:
        return self.kernels.like[op], split.axis if isinstance(split, Axis) else None, run


class Walk:
    """A walk over the blocks of one region. Its arrays are kept until `forget`.

    `valid`: for each number of blocks, whether the region can be split into so many; `blocks`: how
    many all operators have together. `runs`: of each operator, in the region's order. `copied`:
    tensors and bytes of copies, `copies`: how many there are of each, for each number of blocks.
    """

    def __init__(
        self,
        walks: Walks,
        region: Region,
        counts: Sequence[int],
        mode: Mode,
        dying: frozenset[str],
        grains: Sequence[int],
        heights: Sequence[Heights],
    ) -> None:
        self.region = region
        self._walks = walks
        self._counts, self._mode, self._grains = tuple(counts), mode, tuple(grains)
        self._heights = tuple(heights)
        self._dying = dying
        self._peaks: dict[tuple[int, tuple[str, ...]], list[int]] = {}
        self._apart: dict[tuple[tuple[str, ...], ...], list[int]] = {}
        self._arrays: _Arrays | None = None
        arrays = self._made()
        program, starts = arrays.program, arrays.program.starts
        self.valid: list[bool] = program.valid.tolist()
        of_steps = np.sum([step.computed for step in program.steps], axis=0)
        self.blocks: list[int] = np.add.reduceat(of_steps, starts).tolist()
        self.runs = tuple(_run(program, step) for step in program.steps)
        for step, run in zip(program.steps, self.runs, strict=True):
            walks.note(program, step, run)
        self.copied, self.copies = _counted(arrays)

    def forget(self) -> None:
        """Give back the memory of the arrays."""
        self._arrays = None

    def _made(self) -> _Arrays:
        if self._arrays is None:
            program = BlockProgram(
                self.region, self._counts, self._mode, grains=self._grains, heights=self._heights
            )
            self._arrays = _Arrays(program, self._dying)
        return self._arrays

    def peaks(self, at: int, way: Way) -> list[int]:
        """The most bytes that are live while the operator at a place runs, for each number of
        blocks."""
        key = at, way.titles
        if key not in self._peaks:
            arrays = self._made()
            shapes, scratch = self._shapes(at), np.zeros(len(arrays.program.of), np.int64)
            sizes = [kernel.scratch_bytes if kernel else 0 for kernel in way.kernels]
            if shapes.computed.size:
                scratch[shapes.computed] = np.asarray(sizes)[shapes.shape_of]
            live = arrays.live[at] + scratch - arrays.shared(at, self._claims(at, way))
            peaks = np.maximum.reduceat(live, arrays.program.starts)
            self._peaks[key] = peaks.tolist()
        return self._peaks[key]

    def apart(self, ways: Sequence[Sequence[Way]]) -> list[int]:
        """Bytes of all outputs beside the dying inputs, for each number of blocks. `ways`: of each
        operator, of which the first is taken.
        """
        place = {self.region.op(op).outputs[0]: at for at, op in enumerate(self.region.ops)}
        key = tuple(ways[place[name]][0].titles for name in self.region.joined)
        if key not in self._apart:
            arrays = self._made()
            claims = {
                name: self._claims(place[name], ways[place[name]][0]) for name in arrays.grown
            }
            self._apart[key] = arrays.apart_bytes(self._dying, claims)
        return self._apart[key]

    def _shapes(self, at: int) -> Shapes:
        op = self.region.ops[at]
        return self._walks.shapes(op, self.region.split_of(op), self.runs[at])

    def _claims(self, at: int, way: Way) -> Claims:
        """The overlaps that blocks of each shape allow, spread over the blocks."""
        claims, blocks, shapes = [], len(self._made().program.of), self._shapes(at)
        overlaps = [kernel.overlaps if kernel else () for kernel in way.kernels]
        for number, name in enumerate(self.region.op(self.region.ops[at]).inputs):
            claimed = [next((o for o in of if o.input == number), None) for of in overlaps]
            if any(claimed):
                lead = np.full(blocks, FAR)
                exact = np.zeros(blocks, np.bool_)
                leads = [o.lead_bytes if o else FAR for o in claimed]
                lead[shapes.computed] = np.asarray(leads)[shapes.shape_of]
                exacts = [o is not None and o.exact for o in claimed]
                exact[shapes.computed] = np.asarray(exacts)[shapes.shape_of]
                claims.append(Claim(name, lead, exact))
        return claims


def live_bytes(program: BlockProgram, dying: frozenset[str]) -> Ints:
    """The most bytes that are live at a step of each block, without scratch, and as if nothing were
    written over an operand. `dying`: as in `Walks.of`.
    """
    most: Ints = _Arrays(program, dying).live.max(axis=0)
    return most


def _run(program: BlockProgram, step: Step) -> Run:
    runs = hashlib.blake2b(program.counts.tobytes())
    runs.update(step.begin.tobytes() + step.end.tobytes())
    return program.region.split_of(step.op).reaches, runs.digest()


def _counted(arrays: _Arrays) -> tuple[tuple[tuple[str, int], ...], Ints]:
    """The copies of an array, each once: what they are of, and how many, as `Walk` has them."""
    counts = arrays.program.counts
    number_of = np.repeat(np.arange(len(counts)), counts)
    rows: dict[tuple[str, int], Ints] = {}
    for name, size_bytes in arrays.copies:
        sizes, which = np.unique(size_bytes, return_inverse=True)
        made = np.zeros((len(sizes), len(counts)), np.int64)
        np.add.at(made, (which, number_of), 1)
        for size, row in zip(sizes.tolist(), made, strict=True):
            if size > 0:
                rows[name, size] = rows.get((name, size), 0) + row
    return tuple(rows), np.asarray([*rows.values()], np.int64).reshape(-1, len(counts))


class _Arrays:
    """The bytes of each block of one region, as far as no kernel changes them.

    `live`: for each step and block what is live, without scratch and as if nothing were written
    over an operand. `copies`: bytes that each block copies, by the tensor that they are of.
    """

    def __init__(self, program: BlockProgram, dying: frozenset[str]) -> None:
        self.program = program
        self.region: Region = program.region
        self.graph = program.region.graph
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
        self.reads: dict[tuple[str, int], Read] = {}
        """Reads of runs of bytes, by the tensor and the place of its reader."""
        self.written: list[Written | None] = []
        self.copies: list[tuple[str, Ints]] = []
        self.live = self._bytes(dying)

    def _bytes(self, dying: frozenset[str]) -> Ints:
        program, steps = self.program, self.program.steps
        blocks = len(program.of)
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
            self._copy(name, np.where(window.shift, moved, 0) * unit)
            self._copy(name, np.where(window.rest, kept_after, 0))
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
            at_once[at] += self._parts(step)
        live: Ints = base + np.cumsum(change[:-1], axis=0) + at_once
        return live

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

    def _parts(self, step: Step) -> Ints:
        """Bytes of the copies that a block reads instead of tensors from outside: parts of them
        that are not one run of bytes."""
        size_bytes = np.zeros(len(self.program.of), np.int64)
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
                self._copy(reads.name, part)
        return size_bytes

    def apart_bytes(self, dying: frozenset[str], claims: Mapping[str, Claims]) -> list[int]:
        """Bytes of all outputs beside the dying inputs, for each number of blocks. `claims`: of the
        kernels of the operators that make `grown`.

        Each is one run of bytes from its first block on. Only one output can grow over the bytes
        that an input leaves: a second one would have to begin higher up, where the input still
        lives.
        """
        tensors = self.graph.tensors
        saved: list[tuple[str, str, Ints]] = []
        for fading in sorted(dying):
            size_bytes = tensors[fading].size_bytes
            for name in self.grown:
                ahead = self._ahead(fading, name, claims[name])
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

    def _ahead(self, fading: str, name: str, claims: Claims) -> Ints:
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
        for claim in claims:
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

    def shared(self, at: int, claims: Claims) -> Ints:
        """Bytes that an operator saves by writing its block over an operand: a window over another
        one, or an output over an input. A window over a tensor that is there for long would save
        bytes, too, but seldom can it lie there at all steps."""
        best = np.zeros(len(self.program.of), np.int64)
        written, long = self.written[at], self.program.steps[at].output in self.whole
        for claim in claims:
            read = self.reads.get((claim.operand, at))
            if (
                read is not None
                and written is not None
                and long == (claim.operand not in self.program.place)
            ):
                best = np.maximum(best, shared_bytes(claim, read, written))
        return best

    def _copy(self, name: str, size_bytes: Ints) -> None:
        if size_bytes.any():
            self.copies.append((name, size_bytes))


def _codes(columns: Ints) -> Ints:
    """One number for each column; equal where the columns are."""
    codes = np.zeros(columns.shape[1], np.int64)
    for row in columns:
        codes = np.unique(codes * (int(row.max(initial=0)) + 1) + row, return_inverse=True)[1]
    return codes


def _bytes_per_index(region: Region, name: str) -> int:
    tensor, axis = region.graph.tensors[name], region.axis_of(name)
    return math.prod(d for i, d in enumerate(tensor.shape) if i != axis) * tensor.dtype.size_bytes
