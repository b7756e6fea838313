"""The blocks of a region as they run: the indices that each one computes, reads, holds and moves.

`BlockProgram` is the only description of a split: `scheme` builds the finer graph from it, and
`estimate` predicts the bytes and cost of that graph. The method is MOTES's, section 4.4, and for
overlapping tiles MCUNetV2's (Lin et al., 2021).

A program describes several numbers of blocks of one region at once, because a search compares them.
Every array holds one entry per block, those of the first number of blocks first. With `counts = (2,
3)`, entry 0 is block 0 of 2 and entry 4 is block 2 of 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from toolchain.ops.spec import Reach
from toolchain.partition.region import CannotSplitError, Region

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

Heights = tuple[int, ...]
"""How much each block takes in proportion to the others, at least 1. Example: (2, 2, 4) of 48 rows
are 12, 12 and 24."""

FAR = np.int64(1) << 40
"""An index or a distance beyond all others."""


class Mode(Enum):
    """How neighbouring blocks get indices that both need.

    SLIDING computes every index once and keeps what later blocks read, all of what the indices that
    are there allow. LINES does, too, but an operator computes multiples of its grain, as late as
    its readers allow: with 4 rows at a time for Winograd's tiles of 4x4 every tile is full, and
    earlier operators are up to 7 rows ahead. Operators that make less than they read, as sums of
    two tensors do, are not late: their operands would wait in more bytes. LEADING is LINES with as
    few rows ahead as there can be: tiles of the first and the last block are not full. TILES keeps
    nothing and computes it again. NARROW slides, but keeps what a wide tensor is made from instead
    of it: an index of it that several blocks read is computed again from the same index of its
    operands, which are narrower. Example: of the 1x1 expansion in front of a depthwise convolution
    nothing is kept.
    """

    SLIDING = "sliding"
    LINES = "lines"
    LEADING = "leading"
    TILES = "tiles"
    NARROW = "narrow"


class Home(Enum):
    """The home of a tensor's window (the indices that are stored at one time).

    RUN: in its own buffer, as one run of bytes, to which blocks append. WHOLE: in the tensor
    itself, which is stored whole in the end. COPY: in a copy made anew for each block, because a
    run of indices is not one run of bytes.
    """

    RUN = "run"
    WHOLE = "whole"
    COPY = "copy"


@dataclass(frozen=True, eq=False)
class Reads:
    """Indices that blocks read of one operand: block k reads [begin[k], end[k]) of axis `axis`.

    `size` is the length of that axis.
    """

    name: str
    reach: Reach
    size: int
    begin: Ints
    end: Ints

    @property
    def axis(self) -> int:
        return self.reach.axis


@dataclass(frozen=True, eq=False)
class Window:
    """The part of a tensor, made by the region, that is stored while each block runs.

    While block k runs, the indices from `begin[k]` on are stored. After the operator at place
    `reader[k]`, the last one of the block that reads them, those from `kept[k]` on stay (none if
    that is the end). `reader` is -1 in a block that reads nothing of the tensor. `shift`: block k
    moves the stored indices to the front of a buffer and appends to them. `rest`: the indices that
    stay move to the front right after their last reader.
    """

    home: Home
    begin: Ints
    kept: Ints
    reader: Ints
    shift: Flags
    rest: Flags


@dataclass(frozen=True, eq=False)
class Step:
    """The blocks of operator `op`: block k computes the indices [begin[k], end[k]) of its output.

    For an operator that sums over the split axis they are indices of what it sums. If the two are
    equal, the block computes nothing. `there[k]`: the end of what blocks before k computed.
    `reads`: one per operand, None for an operand that is absent or that each block reads whole.
    """

    op: int
    output: str
    begin: Ints
    end: Ints
    there: Ints
    reads: tuple[Reads | None, ...]

    @cached_property
    def computed(self) -> Flags:
        """Whether a block computes anything."""
        return self.begin < self.end

    @cached_property
    def beyond(self) -> tuple[Ints, Ints]:
        """How far each block reads beyond its first operand: `Part.before` and `Part.after`."""
        for reads in filter(None, self.reads):
            reach = reads.reach
            before = reads.begin * reach.divisor - (self.begin * reach.stride - reach.before)
            return before, np.maximum(reach.last(self.end) - reads.size, 0)
        return np.zeros_like(self.begin), np.zeros_like(self.begin)


class BlockProgram:
    """The steps of all blocks of `region`, for each of several numbers of blocks `counts`.

    `steps`: one per operator of the region, in its order. `slack`: how many blocks a window of
    Home.RUN advances in its buffer before it moves back to the front. `heights`: for each number of
    blocks, how much each of these takes in proportion to the others; without it all are even.
    `valid`: for each number of blocks, whether the region can be split into so many; `refusal`
    gives the reason.
    """

    def __init__(
        self,
        region: Region,
        counts: Sequence[int],
        mode: Mode,
        slack: int = 1,
        grains: Sequence[int] = (),
        heights: Sequence[Heights] = (),
    ) -> None:
        self.region, self.mode, self.slack = region, mode, slack
        self.grains = tuple(grains) or (1,) * len(region.ops)
        self.place = {region.op(op).outputs[0]: at for at, op in enumerate(region.ops)}
        self.size = [region.length(op) for op in region.ops]
        self._inner = [
            [(name, reach) for name, reach in self._reaches(op) if name in self.place]
            for op in region.ops
        ]
        self.counts = np.asarray(counts, np.int64)
        self.starts = np.cumsum(self.counts) - self.counts
        self.of = np.repeat(self.counts, self.counts)
        """The number of blocks that each block is one of."""
        self.heights = np.concatenate([np.zeros(0, np.int64), *heights]).astype(np.int64)
        if not heights:
            self.heights = np.ones(len(self.of), np.int64)
        reached = np.concatenate([[0], np.cumsum(self.heights)])
        first, last = reached[self.starts], reached[self.starts + self.counts]
        begun = np.repeat(first, self.counts)
        self._share_ends = reached[:-1] - begun, reached[1:] - begun
        self._shares = np.repeat(last - first, self.counts)
        """How many shares there are; each block takes those between its `_share_ends`."""
        self.valid = np.ones(len(self.counts), np.bool_)
        self._checks: list[tuple[Flags, str]] = []
        self.remade = self._wide() if mode is Mode.NARROW else frozenset[int]()
        if mode in (Mode.LINES, Mode.LEADING):
            lines = [
                self._lines(slice(at, at + n)) for at, n in zip(self.starts, counts, strict=True)
            ]
            ends = [np.concatenate([of[at] for of in lines]) for at in range(len(self.size))]
            begins = [self.previous(end) for end in ends]
            few = "no operator has as many indices as there are blocks"
            self._check(self.of > max(self.size), few)
        else:
            begins, ends = self._tiles() if mode is Mode.TILES else self._slides()
        theres = [self.previous(end) for end in ends]
        self.steps = tuple(map(self._step, region.ops, begins, ends, theres))

    def refusal(self, index: int) -> str:
        """Why the region cannot be split into `counts[index]` blocks; '' if it can."""
        begin = int(self.starts[index])
        for failed, why in self._checks:
            failing = np.flatnonzero(failed[begin : begin + int(self.counts[index])])
            if len(failing):
                return why.format(block=int(failing[0]), count=int(self.counts[index]))
        return ""

    def previous(self, values: Ints) -> Ints:
        """The values of the block before; 0 for the first."""
        result = np.empty_like(values)
        result[1:] = values[:-1]
        result[self.starts] = 0
        return result

    def next(self, values: Ints) -> Ints:
        """The values of the block after; FAR for the last."""
        result = np.empty_like(values)
        result[:-1], result[-1] = values[1:], FAR
        result[self.starts[1:] - 1] = FAR
        return result

    @cached_property
    def readers(self) -> Mapping[str, tuple[tuple[int, Reads], ...]]:
        """The operators that read each tensor in part: their places, and their reads."""
        readers_of: dict[str, tuple[tuple[int, Reads], ...]] = {
            step.output: () for step in self.steps
        }
        for at, step in enumerate(self.steps):
            for reads in filter(None, step.reads):
                readers_of[reads.name] = (*readers_of.get(reads.name, ()), (at, reads))
        return readers_of

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """The windows of the operators' outputs, in the order of `steps`."""
        first = [np.full(len(self.of), FAR) for _ in self.steps]
        reader = [np.full(len(self.of), -1) for _ in self.steps]
        for at, step in enumerate(self.steps):
            going = step.begin < self.size[at]
            for reads in step.reads:
                if reads is not None and reads.name in self.place:
                    other = self.place[reads.name]
                    first[other] = np.minimum(first[other], np.where(going, reads.begin, FAR))
                    reader[other][step.computed] = at
        return tuple(map(self._window, self.steps, first, reader))

    def _reaches(self, op: int) -> list[tuple[str, Reach]]:
        pairs = zip(self.region.op(op).inputs, self.region.reaches(op), strict=True)
        return [(name, reach) for name, reach in pairs if name and reach is not None]

    def _check(self, failed: Flags, why: str) -> None:
        """Refuse the numbers of blocks of which a block `failed`."""
        if failed.any():
            self.valid &= ~np.logical_or.reduceat(failed, self.starts)
            self._checks.append((failed, why))

    def _share(self, at: int) -> tuple[Ints, Ints]:
        """The shares of what an operator computes; of even ones the last is the smallest."""
        size, name = self.size[at], self._name(at)
        self._check(self.of > size, f"{name} has fewer than {{count}} indices")
        begin, end = (-(-size * share // self._shares) for share in self._share_ends)
        return begin, end

    def _name(self, at: int) -> str:
        """An operator's name, for a message that `refusal` formats."""
        return _quoted(self.region.op(self.region.ops[at]).name)

    def _slides(self) -> tuple[list[Ints], list[Ints]]:
        """Operators that read only from outside go forward evenly; the others compute in each block
        what the indices that are there by then allow."""
        ends: list[Ints] = []
        for at, (size, reaches) in enumerate(zip(self.size, self._inner, strict=True)):
            end = np.full(len(self.of), size, np.int64) if reaches else self._share(at)[1]
            for name, reach in reaches:
                there = ends[self.place[name]]
                limit = np.where(there < self.size[self.place[name]], reach.possible(there), size)
                end = np.clip(limit, 0, end)
            ends.append(end)
        begins = [self.previous(end) for end in ends]
        for at in sorted(self.remade, reverse=True):
            begins[at], ends[at] = self._read_of(at, begins, ends)
        return begins, ends

    def _lines(self, blocks: slice) -> list[Ints]:
        """Up to where each operator has computed after each of the blocks of one number of them:
        what leaves the region goes forward by their shares, and all else is computed as late as its
        readers allow, about by its shares, too, in multiples of its grain; what narrows, as soon as
        it can be.
        """
        count = blocks.stop - blocks.start
        reached, of = self._share_ends[1][blocks], self._shares[blocks]
        heights = np.diff(reached)
        ends = [np.zeros(count, np.int64) for _ in self.size]
        leaving = {self.place[name] for name in (*self.region.joined, *self.region.reduced)}
        for at in reversed(range(len(self.size))):
            size, grain = self.size[at], self.grains[at]
            needed = ends[at]
            if at in leaving:
                share = -(-size * reached // of)
                needed = np.maximum(needed, share - share % grain)
            most = np.cumsum([0, *np.maximum(-(-size * heights // of[1:]), 1)])
            even = np.maximum.accumulate((needed - most)[::-1])[::-1] + most
            even = np.clip(even, 0, size)
            if grain > 1:
                first = int(even[np.argmax(even > 0)]) if self.mode is Mode.LEADING else 0
                first = first if first > grain else 0
                more = -(-np.maximum(even - first, 0) // grain) * grain
                even = np.where(even > 0, first + more, 0)
            end = np.minimum(even, size)
            end[-1] = size
            ends[at] = end
            for name, reach in self._inner[at]:
                other = self.place[name]
                limit = self.size[other]
                last = np.where(end > 0, np.minimum(reach.last(end), limit), 0)
                last = np.where(end == size, limit, last)
                ends[other] = np.maximum(ends[other], last)
        for at in range(len(self.size)):
            if at not in leaving and self.grains[at] == 1 and self._narrows(at):
                size, soon = self.size[at], np.full(count, self.size[at], np.int64)
                for operand, reach in self._inner[at]:
                    there, all_of = ends[self.place[operand]], self.size[self.place[operand]]
                    soon = np.minimum(soon, np.where(there < all_of, reach.possible(there), size))
                ends[at] = np.maximum(ends[at], soon)
        return ends

    def _narrows(self, at: int) -> bool:
        """Whether an operator makes fewer bytes than what it reads of the region's tensors."""
        tensors, op = self.region.graph.tensors, self.region.op(self.region.ops[at])
        read = {name for name, _ in self._inner[at]}
        return tensors[op.outputs[0]].size_bytes < sum(tensors[n].size_bytes for n in read)

    def _wide(self) -> frozenset[int]:
        """The places of operators that make wide indices out of narrow ones, each from the same
        index of its operands, for readers inside alone.
        """
        return frozenset(at for at, op in enumerate(self.region.ops) if self._widens(op))

    def _widens(self, op: int) -> bool:
        region, tensors = self.region, self.region.graph.tensors
        name = region.op(op).outputs[0]
        if op not in region.axes or name in region.joined:
            return False
        read = {n: reach for n, reach in self._reaches(op) if not tensors[n].is_constant}
        alone = all(
            reach == Reach(reach.axis) and reach.axis == region.axes[op].axis
            for reach in read.values()
        )
        wide = tensors[name].size_bytes > sum(tensors[n].size_bytes for n in read)
        return bool(read) and alone and (wide or region.op(op).kind == "slice")

    def _read_of(self, at: int, begins: Sequence[Ints], ends: Sequence[Ints]) -> tuple[Ints, Ints]:
        """Indices that the readers of an operator's output read in each block; in a block that
        reads nothing, none, at the first index that a later one reads.
        """
        name, size = self.region.op(self.region.ops[at]).outputs[0], self.size[at]
        begin = np.full(len(self.of), FAR)
        end = np.zeros(len(self.of), np.int64)
        for reader, reaches in enumerate(self._inner):
            for operand, reach in reaches:
                if operand == name:
                    low, high = _needed(reach, begins[reader], ends[reader], size)
                    computed = begins[reader] < ends[reader]
                    begin = np.where(computed, np.minimum(begin, low), begin)
                    end = np.where(computed, np.maximum(end, high), end)
        read, later = begin < FAR, np.minimum(begin, size)
        for start, count in zip(self.starts, self.counts, strict=True):
            run = slice(int(start), int(start + count))
            later[run] = np.minimum.accumulate(later[run][::-1])[::-1]
        return later, np.where(read, end, later)

    def _tiles(self) -> tuple[list[Ints], list[Ints]]:
        """Shares for TILES: tensors that leave the region are shared out evenly; the others get the
        indices that these need."""
        leaving = (*self.region.joined, *self.region.reduced)
        begins = [np.full(len(self.of), FAR) for _ in self.size]
        ends = [np.zeros(len(self.of), np.int64) for _ in self.size]
        for name in leaving:
            at = self.place[name]
            begins[at], ends[at] = self._share(at)
        shares = [(name, begins[self.place[name]], ends[self.place[name]]) for name in leaving]
        for at in reversed(range(len(self.size))):
            for name, reach in self._inner[at]:
                other = self.place[name]
                low, high = _needed(reach, begins[at], ends[at], self.size[other])
                self._check(low >= high, f"a block of {_quoted(name)} would be padding alone")
                begins[other] = np.minimum(begins[other], low)
                ends[other] = np.maximum(ends[other], high)
        for at, op in enumerate(self.region.ops):
            if op in self.region.axes and self.region.axes[op].once:
                size, last = self.size[at], self.next(begins[at]) == FAR
                again = (begins[at] != self.previous(ends[at])) | (last & (ends[at] != size))
                self._check(again, f"each index of {self._name(at)} must be computed once")
        for name, first, last in shares:
            at = self.place[name]
            halo = (begins[at] != first) | (ends[at] != last)
            self._check(halo, f"{_quoted(name)} is both joined and read inside with a halo")
        return begins, ends

    def _step(self, op: int, begin: Ints, end: Ints, there: Ints) -> Step:
        of, name = self.region.op(op), _quoted(self.region.op(op).name)
        reads: list[Reads | None] = []
        for operand, reach in zip(of.inputs, self.region.reaches(op), strict=True):
            if not operand or reach is None:
                reads.append(None)
                continue
            size = self.region.graph.tensors[operand].shape[reach.axis]
            low, high = _needed(reach, begin, end, size)
            computed = begin < end
            padding = "block {block} of " + name + " reads nothing but padding"
            self._check(computed & (low >= high), padding)
            if reach.whole:
                within = "block {block} of " + name + " ends within what is made at once"
                self._check(computed & reach.splits(begin, end), within)
            reads.append(Reads(operand, reach, size, low, high))
        return Step(op, of.outputs[0], begin, end, there, tuple(reads))

    def _home(self, name: str, op: int) -> Home:
        if op in self.region.reductions:
            return Home.WHOLE  # int32 sums, which all blocks add to
        shape, axis = self.region.graph.tensors[name].shape, self.region.axis_of(name)
        if math.prod(shape[:axis]) > 1:
            return Home.COPY
        return Home.WHOLE if name in self.region.joined else Home.RUN

    def _window(self, step: Step, first: Ints, reader: Ints) -> Window:
        home, never = self._home(step.output, step.op), np.zeros(len(self.of), np.bool_)
        if self.mode is Mode.TILES or self.place[step.output] in self.remade:
            return Window(home, step.begin, step.end, reader, never, never)
        begin = np.minimum(first, step.there)
        kept = np.minimum(self.next(first), step.end)
        if home is Home.WHOLE:
            return Window(home, begin, kept, reader, never, never)
        shift = step.computed & (begin < step.there)
        rest = (reader >= 0) & (kept < step.end) & (kept > begin)
        if home is Home.COPY or self.slack == 1:
            return Window(home, begin, kept, reader, shift, rest)
        return self._drifting(step, Window(home, begin, kept, reader, shift, rest))

    def _drifting(self, step: Step, tight: Window) -> Window:
        """`tight`, the window of slack 1, where only every `slack`th block moves what is held."""
        begin, shift, rest = tight.begin.copy(), tight.shift.copy(), tight.rest.copy()
        held, start, firsts = 0, 0, set(self.starts.tolist())
        for i in range(len(begin)):
            if i in firsts:
                held, start = 0, 0
            if step.computed[i]:
                fresh = not tight.shift[i]
                shift[i] = not fresh and held >= self.slack
                if fresh or shift[i]:
                    held, start = 0, int(tight.begin[i])
                held += 1
            begin[i] = start
            stays = tight.reader[i] >= 0 and tight.kept[i] < step.end[i]
            rest[i] = stays and held >= self.slack and tight.kept[i] > start
            if rest[i]:
                held, start = self.slack, int(tight.kept[i])
        return Window(tight.home, begin, tight.kept, tight.reader, shift, rest)


def block_program(
    region: Region,
    count: int,
    mode: Mode,
    slack: int = 1,
    grains: Sequence[int] = (),
    heights: Heights = (),
) -> BlockProgram:
    """The program of `count` blocks. Raises CannotSplitError if there cannot be so many, or they
    have other heights than one each, of 1 or more.
    """
    if heights and (len(heights) != count or min(heights) < 1):
        raise CannotSplitError(f"{count} blocks cannot have the heights {heights}")
    program = BlockProgram(region, [count], mode, slack, grains, [heights] if heights else ())
    if not program.valid[0]:
        raise CannotSplitError(program.refusal(0))
    return program


def _needed(reach: Reach, begin: Ints, end: Ints, size: int) -> tuple[Ints, Ints]:
    """`Reach.needs` for many runs."""
    return np.maximum(reach.first(begin), 0), np.minimum(reach.last(end), size)


def _quoted(name: str) -> str:
    """`repr` of a name within a format string."""
    return repr(name).replace("{", "{{").replace("}", "}}")
