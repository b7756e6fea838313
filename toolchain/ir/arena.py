"""Placing buffers at byte offsets: the problem, the answer, and an independent checker."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from types import MappingProxyType

from toolchain.ir.memory import MemoryProblem, applied_overlaps
from toolchain.ir.progress import NOTHING, LiveRun, Takeover
from toolchain.ir.tensor import Serial

_FEW = 2000
"""More blocks than these are not compared each with each."""
_SCRATCH = " (scratch)"
SCRATCH_ALIGNMENT_BYTES = 4
"""CMSIS-NN's scratch holds int16 and int32 values, read by word loads."""


@dataclass(frozen=True)
class Block:
    """A buffer to place: `size_bytes` bytes during the half-open interval of steps [start, end).

    `profile`, where the buffer is not needed as a whole at each step: the run of bytes that is
    needed, from `start` on. At least one run reaches the block's end. Example: a 32-byte block that
    is needed whole at step 3 and only in its upper half from step 4 on has the runs [0, 32), [16,
    32). `serial`: which of several blocks of one operator it is.
    """

    name: str
    start: int
    end: int
    size_bytes: int
    alignment_bytes: int = 1
    profile: tuple[LiveRun, ...] = ()
    serial: Serial | None = None

    @property
    def runs(self) -> tuple[LiveRun, ...]:
        """The run of bytes that is needed, from each of these steps on."""
        return self.profile or (LiveRun(self.start, 0, self.size_bytes),)

    def run_at(self, step: int) -> LiveRun:
        """The run of bytes that is needed at a step."""
        if not self.start <= step < self.end:
            return NOTHING
        return self.runs[bisect_right(self.runs, step, key=attrgetter("step")) - 1]


@dataclass(frozen=True)
class SharedPair:
    """Two blocks that may share bytes at step `step` although both are live then.

    Sharing is allowed only where offset(dying) >= offset(born) + lead_bytes; with `exact`, only
    where the two sides are equal (see `memory.Overlap`). Bytes of the dying block that are needed
    after the step share nothing with the other block, and bytes of the born block that were needed
    before the step share nothing with the dying one. `dying` and `born` are indices into
    `ArenaProblem.blocks`.
    """

    dying: int
    born: int
    step: int
    lead_bytes: int = 0
    exact: bool = False

    def allows(self, dying_offset: int, born_offset: int) -> bool:
        """Whether the two may share bytes at these offsets."""
        distance = dying_offset - born_offset
        return distance == self.lead_bytes if self.exact else distance >= self.lead_bytes


@dataclass(frozen=True)
class ArenaProblem:
    """Blocks to place, and the pairs of them that may share bytes at one step."""

    blocks: tuple[Block, ...]
    shared: tuple[SharedPair, ...] = ()

    def of(self, chosen: Sequence[int]) -> ArenaProblem:
        """The problem of some of the blocks, in the order given."""
        index = {block: position for position, block in enumerate(chosen)}
        return ArenaProblem(
            tuple(self.blocks[i] for i in chosen),
            tuple(
                replace(p, dying=index[p.dying], born=index[p.born])
                for p in self.shared
                if p.dying in index and p.born in index
            ),
        )

    def takeover(self, pair: SharedPair) -> Takeover:
        """The live runs of the two blocks around the step at which they may share bytes."""
        dying, born, step = self.blocks[pair.dying], self.blocks[pair.born], pair.step
        return Takeover(
            (dying.run_at(step), dying.run_at(step + 1)),
            (born.run_at(step - 1), born.run_at(step)),
            pair.lead_bytes,
            pair.exact,
        )

    def successive(self, pair: SharedPair) -> bool:
        """Whether the two blocks are both live at no other step."""
        blocks = self.blocks
        return blocks[pair.born].start == pair.step == blocks[pair.dying].end - 1


@dataclass(frozen=True)
class Placement:
    """Offsets in bytes, parallel to the problem's blocks, and a lower bound for every placement.

    `seconds` is time by the clock. `work_seconds` is work that the allocator counted; it is the
    same in every run.
    """

    allocator: str
    offsets: tuple[int, ...]
    size_bytes: int
    lower_bound_bytes: int
    seconds: float = field(default=0.0, compare=False)
    work_seconds: float = field(default=0.0, compare=False)

    @property
    def proved_optimal(self) -> bool:
        return self.size_bytes == self.lower_bound_bytes


@dataclass(frozen=True)
class ArenaPart:
    """The part of an arena that lies in one memory bank.

    Its offsets begin at `start_bytes`. Offsets between two parts belong to no memory.
    """

    bank: str
    start_bytes: int
    size_bytes: int

    @property
    def member(self) -> str:
        """The name of its member in the generated C struct."""
        return self.bank.lower()


@dataclass(frozen=True)
class ArenaPlan:
    """Places of all tensors: offsets in bytes from the arena's start, half-open lifetimes.

    `parts` is for an arena spread over memory banks, lowest offsets first; `size_bytes` is then the
    sum of their sizes. An arena in one piece has none. `pitches` gives, for tensors that are
    strided views of an image, the bytes from one line to the next. `work_seconds`: as the
    placement's.

    Where constants are fetched before the operator that reads them: `fetch_offsets` and
    `fetch_bytes` of them by the operator's name, and half-open `fetch_steps` in which they lie
    there.
    """

    size_bytes: int
    lower_bound_bytes: int
    alignment_bytes: int
    allocator: str
    offsets: Mapping[str, int]
    lifetimes: Mapping[str, tuple[int, int]]
    scratch_offsets: Mapping[str, int]
    parts: tuple[ArenaPart, ...] = ()
    pitches: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    work_seconds: float = field(default=0.0, compare=False)
    fetch_offsets: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    fetch_bytes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    fetch_steps: Mapping[str, tuple[int, int]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def proved_optimal(self) -> bool:
        return self.size_bytes == self.lower_bound_bytes

    def part_of(self, offset: int) -> ArenaPart:
        """The part in which an offset lies."""
        return next(part for part in reversed(self.parts) if part.start_bytes <= offset)


def arena_problem(problem: MemoryProblem, order: Sequence[int]) -> ArenaProblem:
    """One block per live buffer (same index order), then one per operator that needs scratch."""
    blocks = [
        Block(
            buffer.name,
            runs[0].step if runs else 0,
            runs[-1].step if runs else 0,
            buffer.size_bytes,
            buffer.alignment_bytes,
            _profile(runs[:-1], buffer.size_bytes),
            buffer.serial,
        )
        for buffer, runs in zip(problem.buffers, problem.live_runs(order), strict=True)
    ]
    for step, op in enumerate(order):
        if problem.scratch_bytes[op]:
            serial = problem.serials[op] if problem.serials else None
            blocks.append(
                Block(
                    scratch_name(problem.ops[op]),
                    step,
                    step + 1,
                    problem.scratch_bytes[op],
                    SCRATCH_ALIGNMENT_BYTES,
                    serial=None if serial is None else serial.part(_SCRATCH),
                )
            )
    position = {op: step for step, op in enumerate(order)}
    shared = tuple(
        SharedPair(o.input, o.output, position[o.op], o.lead_bytes, o.exact)
        for o in applied_overlaps(problem, order)
    )
    return ArenaProblem(tuple(blocks), shared)


def _profile(runs: Sequence[LiveRun], size_bytes: int) -> tuple[LiveRun, ...]:
    """The live runs of a buffer; () where all of it is live throughout. The highest run also has
    the bytes above it that nothing touches."""
    highest = max((run.top_bytes for run in runs), default=0)
    if all(run.size_bytes == size_bytes for run in runs):
        return ()
    return tuple(
        run._replace(top_bytes=size_bytes) if run.top_bytes == highest else run for run in runs
    )


def scratch_name(op: str) -> str:
    """The name of an operator's scratch."""
    return f"{op}{_SCRATCH}"


def arena_plan(
    problem: MemoryProblem, order: Sequence[int], placement: Placement, arena: ArenaProblem
) -> ArenaPlan:
    """The plan of a placement: the offset of every tensor."""
    offsets: dict[str, int] = {}
    lifetimes: dict[str, tuple[int, int]] = {}
    for index, buffer in enumerate(problem.buffers):
        block = arena.blocks[index]
        for member in buffer.members:
            offsets[member.tensor] = placement.offsets[index] + member.offset_bytes
            lifetimes[member.tensor] = (block.start, block.end)
    with_scratch = (problem.ops[op] for op in order if problem.scratch_bytes[op])
    scratch = dict(zip(with_scratch, placement.offsets[len(problem.buffers) :], strict=True))
    alignment = max((b.alignment_bytes for b in arena.blocks), default=1)
    return ArenaPlan(
        size_bytes=placement.size_bytes,
        lower_bound_bytes=placement.lower_bound_bytes,
        alignment_bytes=alignment,
        allocator=placement.allocator,
        offsets=MappingProxyType(offsets),
        lifetimes=MappingProxyType(lifetimes),
        scratch_offsets=MappingProxyType(scratch),
        pitches=MappingProxyType(
            {
                member.tensor: member.pitch_bytes
                for buffer in problem.buffers
                for member in buffer.members
                if member.pitch_bytes
            }
        ),
        work_seconds=placement.work_seconds,
    )


def check_placement(problem: ArenaProblem, placement: Placement) -> None:
    """Raise ValueError, with the name of the reason, unless the placement is valid.

    The code is simple on purpose and shares nothing with any allocator. It compares each block with
    all blocks that are live when it becomes live. Where one of the two has a profile, it compares
    them at every step at which the profile changes, and at those where the two may share bytes.
    With very many plain blocks it compares only neighbours.
    """
    if len(placement.offsets) != len(problem.blocks):
        raise ValueError(
            f"wrong count: {len(placement.offsets)} offsets for {len(problem.blocks)} blocks"
        )
    if len(problem.blocks) > _FEW and not (
        problem.shared or any(block.profile for block in problem.blocks)
    ):
        _check_many(problem, placement)
        return
    allowed: dict[tuple[int, int], list[SharedPair]] = {}
    for pair in problem.shared:
        allowed.setdefault((pair.dying, pair.born), []).append(pair)
    alive: list[int] = []
    for index in sorted(range(len(problem.blocks)), key=lambda i: problem.blocks[i].start):
        block, offset = problem.blocks[index], placement.offsets[index]
        if block.start >= block.end:
            continue
        _check_place(block, offset, placement.size_bytes)
        alive = [i for i in alive if problem.blocks[i].end > block.start]
        for other_index in alive:
            other = problem.blocks[other_index]
            other_offset = placement.offsets[other_index]
            if (
                offset + block.size_bytes <= other_offset
                or other_offset + other.size_bytes <= offset
            ):
                continue
            pairs = (
                *allowed.get((index, other_index), ()),
                *allowed.get((other_index, index), ()),
            )
            if not _may_lie_so(problem, placement, index, other_index, pairs):
                raise _overlap(other, other_offset, block, offset)
        alive.append(index)


def _check_place(block: Block, offset: int, size_bytes: int) -> None:
    if offset < 0:
        raise ValueError(f"negative offset: {block.name!r} at {offset}")
    if offset % block.alignment_bytes:
        raise ValueError(f"misaligned: {block.name!r} at {offset}, needs {block.alignment_bytes}")
    if offset + block.size_bytes > size_bytes:
        raise ValueError(
            f"out of bounds: {block.name!r} ends at {offset + block.size_bytes}, "
            f"arena has {size_bytes}"
        )


def _overlap(one: Block, one_at: int, two: Block, two_at: int) -> ValueError:
    return ValueError(
        f"overlap: {one.name!r} [{one_at}, {one_at + one.size_bytes}) and {two.name!r} "
        f"[{two_at}, {two_at + two.size_bytes}) are both live"
    )


def _check_many(problem: ArenaProblem, placement: Placement) -> None:
    """Check plain blocks: if none overlaps its neighbours while it lives, none overlaps any."""
    blocks, offsets = problem.blocks, placement.offsets
    starts, ends = [block.start for block in blocks], [block.end for block in blocks]
    live = [i for i, block in enumerate(blocks) if block.start < block.end]
    for index in live:
        _check_place(blocks[index], offsets[index], placement.size_bytes)
    live = [i for i in live if blocks[i].size_bytes]
    tops = [at + block.size_bytes for at, block in zip(offsets, blocks, strict=True)]
    dying = sorted(live, key=ends.__getitem__)
    dead, rows = 0, _Rows()
    for index in sorted(live, key=starts.__getitem__):
        while ends[dying[dead]] <= starts[index]:
            rows.remove(offsets[dying[dead]], dying[dead])
            dead += 1
        offset, top = offsets[index], tops[index]
        for other in rows.beside(offset, index):
            if offset < tops[other] and offsets[other] < top:
                raise _overlap(blocks[other], offsets[other], blocks[index], offset)
        rows.add(offset, index)


class _Rows:
    """Live blocks sorted by offset, in rows, so that an insertion moves few."""

    _LONGEST = 1000

    def __init__(self) -> None:
        self._rows: list[list[tuple[int, int]]] = [[]]
        self._firsts: list[tuple[int, int]] = [(-1, -1)]

    def _row(self, key: tuple[int, int]) -> int:
        return bisect_right(self._firsts, key) - 1

    def beside(self, offset: int, index: int) -> list[int]:
        """The last block below, and the first one above."""
        at = self._row((offset, index))
        row = self._rows[at]
        place = bisect_right(row, (offset, index))
        neighbours = []
        below, above = at, at
        while below > 0 and place == 0:
            below -= 1
            place = len(self._rows[below])
        if place:
            neighbours.append(self._rows[below][place - 1][1])
        place = bisect_right(row, (offset, index))
        while place == len(self._rows[above]) and above + 1 < len(self._rows):
            above, place = above + 1, 0
        if place < len(self._rows[above]):
            neighbours.append(self._rows[above][place][1])
        return neighbours

    def add(self, offset: int, index: int) -> None:
        at = self._row((offset, index))
        row = self._rows[at]
        insort(row, (offset, index))
        if len(row) > self._LONGEST:
            half = len(row) // 2
            self._rows[at : at + 1] = [row[:half], row[half:]]
            self._firsts.insert(at + 1, row[half])

    def remove(self, offset: int, index: int) -> None:
        at = self._row((offset, index))
        row = self._rows[at]
        del row[bisect_left(row, (offset, index))]
        if not row and at:
            del self._rows[at], self._firsts[at]


def _may_lie_so(
    problem: ArenaProblem, placement: Placement, one: int, two: int, pairs: Sequence[SharedPair]
) -> bool:
    """Whether two blocks share a byte at those steps only where, and as, a pair allows it."""
    blocks, offsets = problem.blocks, placement.offsets

    def meet(first: int, at_first: int, second: int, at_second: int) -> bool:
        """Whether the live run of one block at one step overlaps that of the other at another
        step."""
        mine, theirs = blocks[first].run_at(at_first), blocks[second].run_at(at_second)
        low = max(offsets[first] + mine.bottom_bytes, offsets[second] + theirs.bottom_bytes)
        return low < min(offsets[first] + mine.top_bytes, offsets[second] + theirs.top_bytes)

    begin, end = max(blocks[one].start, blocks[two].start), min(blocks[one].end, blocks[two].end)
    sharing = {pair.step: pair for pair in pairs}
    changes = {run.step for run in (*blocks[one].profile, *blocks[two].profile)}
    changes |= {begin, *sharing, *(step + 1 for step in sharing)}
    for step in sorted(changes):
        if not begin <= step < end or not meet(one, step, two, step):
            continue
        if step not in sharing:
            return False
        pair = sharing[step]
        dying, born = pair.dying, pair.born
        if (
            not pair.allows(offsets[dying], offsets[born])
            or meet(dying, step + 1, born, step)
            or meet(dying, step, born, step - 1)
        ):
            return False
    return True
