"""Placement of very many blocks within a capacity, from the first step to the last.

Split networks have thousands of blocks. Nearly all of them live for a few steps, between a few that
live long. The long ones are pinned first. The others are placed in the order of their births, a
batch at a time:

- A batch is placed by list allocation if it fits. Otherwise a constraint program rearranges it,
  together with the blocks that came shortly before.
- A batch that does not fit even so is left out, and tried again at the end together with the blocks
  before and after it.
- A batch that is left even then is tried alone. A stretch that does not fit alone proves that no
  placement fits. Otherwise it becomes a *core*: the next sweep places it, with the pins and the
  blocks of the heaviest steps, before everything else.

Blocks of one operator are alike, so a batch first tries the offsets of the blocks before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from toolchain.arena._separation import Separation
from toolchain.arena._skyline import Verdict
from toolchain.arena._within import Program
from toolchain.ir import ArenaProblem, Block, Serial
from toolchain.search import Work

_BATCH = 60
_BACK = ((60, 0.1, False), (150, 0.1, False), (150, 0.1, True), (300, 0.2, False))
"""Blocks before a batch that are rearranged with it, in turn; with how much effort, in CP-SAT's
deterministic seconds; and whether with many restarts, which find other things."""
_MARGINS = ((60, 0.05, False), (150, 0.1, False), (150, 0.1, True), (300, 0.2, False))
"""The like, of blocks before and after a batch that was left out."""
_HEAVY_BLOCKS, _HEAVY_STEPS = 400, 20
"""About so many of the blocks that live at the heaviest steps go into every core; the steps are
a twentieth of all apart."""
_PINNED_SHARE, _PINNED_STEPS = 5, 50
"""Blocks that live for a fifth of all steps, and for so many, are pinned."""
_PERIODS = (2, 1, 4, 3)
"""How many blocks of the operator ago an offset is looked for; strides of 2 make periods of 2."""
_ALONE, _ALONE_EFFORT = 150, 0.2
"""To find out whether a batch that stays out fits alone, with so many before and after."""
_NS_A_NEIGHBOUR = 650
"""To look where a block lies that lives together with another."""
EFFORT = 0.8
"""Effort of the constraint programs of one sweep, in CP-SAT's deterministic seconds."""


@dataclass(frozen=True)
class Outcome:
    """The result of a sweep. `offsets` if FOUND. If IMPOSSIBLE, `core` cannot be placed, even
    alone.
    """

    verdict: Verdict
    offsets: tuple[int, ...] = ()
    core: tuple[int, ...] = ()


@dataclass
class _Families:
    """Offsets that the blocks of one operator took, by the number of the block."""

    of: Mapping[int, Serial]
    known: dict[tuple[str, ...], dict[int, int]] = field(default_factory=dict)

    def learn(self, placed: Mapping[int, int]) -> None:
        for index, offset in placed.items():
            if index in self.of:
                serial = self.of[index]
                self.known.setdefault(serial.series, {})[serial.number] = offset

    def before(self, index: int) -> Iterator[int]:
        """Offsets of earlier blocks of the family, the likeliest first."""
        if index in self.of:
            serial = self.of[index]
            known = self.known.get(serial.series, {})
            yield from (
                known[serial.number - ago] for ago in _PERIODS if serial.number - ago in known
            )


class Sweep:
    """Sweeps over one problem that share a budget of work."""

    def __init__(self, problem: ArenaProblem, separation: Separation, work: Work) -> None:
        self._blocks = problem.blocks
        self._work = work
        self._separation = separation
        live = [i for i, b in enumerate(problem.blocks) if b.start < b.end and b.size_bytes]
        steps = max((problem.blocks[i].end for i in live), default=0)
        long = max(_PINNED_STEPS, steps / _PINNED_SHARE)
        self._live = sorted(
            live, key=lambda i: (self._blocks[i].start, -self._blocks[i].size_bytes)
        )
        self._pins = [i for i in live if self._blocks[i].end - self._blocks[i].start > long]
        self._pins.sort(key=self._area)
        self._serials = {i: serial for i in live if (serial := self._blocks[i].serial) is not None}

    def _area(self, index: int) -> tuple[int, int]:
        block = self._blocks[index]
        return -block.size_bytes * (block.end - block.start), index

    def within(self, capacity_bytes: int) -> Outcome:
        """A placement of all blocks within the capacity, if a sweep of limited effort finds one."""
        program = Program(self._blocks, self._separation, capacity_bytes, EFFORT, self._work)
        pinned = self._pin(capacity_bytes)
        core: set[int] = set()
        around = _BATCH // 4
        failed: Sequence[int] = () if pinned is not None else self._pins
        while True:
            if failed:
                core.update(failed, () if core else self._heavy)
                for kept in self._elsewhere(pinned or {}, failed), {}:
                    chosen = sorted(core.union(self._pins).difference(kept))
                    verdict, placed = program.place(chosen, kept, pinned or {})
                    if verdict is Verdict.FOUND:
                        pinned = {**kept, **placed}
                        break
                else:
                    return Outcome(verdict, core=tuple(chosen))
            assert pinned is not None
            waiting = [i for i in self._live if i not in pinned]
            offsets, gaps = self._roll(capacity_bytes, pinned, waiting, program)
            gaps = _left(waiting, gaps, offsets, program)
            if not gaps:
                everywhere = tuple(offsets.get(i, 0) for i in range(len(self._blocks)))
                return Outcome(Verdict.FOUND, everywhere)
            for at in gaps:
                stretch = _stretch(waiting, at, _ALONE)
                verdict, _ = program.place(stretch, {}, offsets, _ALONE_EFFORT)
                if verdict is not Verdict.FOUND:
                    return Outcome(verdict, core=tuple(stretch))
            failed = [i for at in gaps for i in _stretch(waiting, at, around)]
            around *= 2

    def least_bytes(self, core: Sequence[int], above_bytes: int) -> tuple[int, int]:
        """The bytes that the core needs, as far as proved (or 0), and the bytes that suffice."""
        proved, low, high, step = -1, above_bytes, 0, 1 + above_bytes // 100
        while not high or high - low > 1:
            capacity = (low + high) // 2 if high else low + step
            step *= 2
            program = Program(self._blocks, self._separation, capacity, _ALONE_EFFORT, self._work)
            verdict, placed = program.place(core, {}, {})
            if verdict is Verdict.FOUND:
                high = max(at + self._blocks[i].size_bytes for i, at in placed.items())
            else:
                low = capacity
                if verdict is Verdict.IMPOSSIBLE:
                    proved = capacity
            if self._work.over or (verdict is Verdict.STOPPED and high):
                break
        return proved + 1, high or low

    def _elsewhere(self, pinned: Mapping[int, int], failed: Sequence[int]) -> dict[int, int]:
        """The pins that do not live when what failed does stay where they are."""
        start = min(self._blocks[i].start for i in failed)
        end = max(self._blocks[i].end for i in failed)
        return {
            i: at
            for i, at in pinned.items()
            if self._blocks[i].end <= start or self._blocks[i].start >= end
        }

    @cached_property
    def _heavy(self) -> frozenset[int]:
        """Blocks that live at the steps of the largest load, some way apart."""
        changes: dict[int, int] = {}
        for i in self._live:
            before = 0
            for step, size in (
                *((r.step, r.size_bytes) for r in self._blocks[i].runs),
                self._end(i),
            ):
                changes[step] = changes.get(step, 0) + size - before
                before = size
        steps = sorted(changes)
        loads = dict(zip(steps, accumulate(changes[step] for step in steps), strict=True))
        chosen: set[int] = set()
        taken: list[int] = []
        apart = steps[-1] // _HEAVY_STEPS
        for step in sorted(loads, key=lambda step: (-loads[step], step)):
            if len(chosen) >= _HEAVY_BLOCKS:
                break
            if any(abs(step - other) < apart for other in taken):
                continue
            taken.append(step)
            live = (i for i in self._live if self._blocks[i].start <= step < self._blocks[i].end)
            chosen.update(live)
        return frozenset(chosen)

    def _end(self, index: int) -> tuple[int, int]:
        return self._blocks[index].end, 0

    def _pin(self, capacity_bytes: int) -> dict[int, int] | None:
        """Place the pins: blocks that shrink from below at the top, the others at the bottom."""
        placed: dict[int, int] = {}
        for index in self._pins:
            block = self._blocks[index]
            falls = bool(block.profile) and block.profile[-1].bottom_bytes > 0
            forbidden = self._forbidden(index, placed)
            offset = _highest(block, forbidden, capacity_bytes) if falls else -1
            if offset < 0:
                offset = _lowest(block, forbidden)
            if offset + block.size_bytes > capacity_bytes:
                return None
            placed[index] = offset
        return placed

    def _roll(
        self,
        capacity_bytes: int,
        pinned: Mapping[int, int],
        waiting: Sequence[int],
        program: Program,
    ) -> tuple[dict[int, int], list[int]]:
        """Place all that waits, by birth. Return the offsets, and where the batches begin that are
        left out."""
        placed = dict(pinned)
        families = _Families(self._serials)
        gaps = []
        for begin in range(0, len(waiting), _BATCH):
            batch = waiting[begin : begin + _BATCH]
            moved = self._list(capacity_bytes, batch, placed, families)
            if moved is None:
                moved = _rearranged(waiting, begin, placed, families, program)
            if moved is None:
                gaps.append(begin)
                continue
            placed.update(moved)
            families.learn(moved)
        return placed, gaps

    def _list(
        self,
        capacity_bytes: int,
        batch: Sequence[int],
        placed: Mapping[int, int],
        families: _Families,
    ) -> dict[int, int] | None:
        """Place each block where one of its family was, if that is free, or else as low as it
        goes."""
        orders: tuple[Callable[[int], tuple[int, int]], ...] = (
            self._area,
            lambda i: (self._blocks[i].start, -self._blocks[i].size_bytes),
            lambda i: (-self._blocks[i].size_bytes, i),
        )
        for order in orders:
            chosen: dict[int, int] = {}
            for index in sorted(batch, key=order):
                block = self._blocks[index]
                forbidden = self._forbidden(index, placed, chosen)
                last = capacity_bytes - block.size_bytes
                free = (
                    offset
                    for offset in families.before(index)
                    if offset <= last and not any(low < offset < high for low, high in forbidden)
                )
                offset = next(free, None)
                if offset is None:
                    offset = _lowest(block, forbidden)
                if offset > last:
                    break
                chosen[index] = offset
            else:
                return chosen
        return None

    def _forbidden(self, index: int, *placed: Mapping[int, int]) -> list[tuple[int, int]]:
        """Open ranges that the offset may not fall in."""
        self._work.spend(_NS_A_NEIGHBOUR * len(self._separation.neighbours[index]))
        return [
            (at[other] + low, at[other] + high)
            for other, intervals in self._separation.neighbours[index]
            for at in placed
            if other in at
            for low, high in intervals
        ]


def _rearranged(
    waiting: Sequence[int],
    begin: int,
    placed: dict[int, int],
    families: _Families,
    program: Program,
) -> dict[int, int] | None:
    """Place the batch anew, together with ever more of the blocks before it."""
    for back, effort, quick in _BACK:
        chosen = waiting[max(0, begin - back) : begin + _BATCH]
        moved = set(chosen)
        fixed = {i: at for i, at in placed.items() if i not in moved}
        hint = {i: placed[i] if i in placed else next(families.before(i), 0) for i in chosen}
        verdict, answer = program.place(chosen, fixed, hint, effort, restart_often=quick)
        if verdict is Verdict.FOUND:
            return answer
        if (back > begin and verdict is Verdict.IMPOSSIBLE) or program.exhausted:
            break
    return None


def _left(
    waiting: Sequence[int], gaps: Sequence[int], placed: dict[int, int], program: Program
) -> list[int]:
    """Place the batches that were left out, with ever more blocks before and after; return those
    that still do not fit."""
    left = []
    for begin in gaps:
        for margin, effort, quick in _MARGINS:
            chosen = _stretch(waiting, begin, margin)
            moved = set(chosen)
            fixed = {i: at for i, at in placed.items() if i not in moved}
            verdict, answer = program.place(chosen, fixed, placed, effort, restart_often=quick)
            if verdict is Verdict.FOUND:
                placed.update(answer)
                break
        else:
            left.append(begin)
    return left


def _stretch(waiting: Sequence[int], begin: int, margin: int) -> Sequence[int]:
    """A batch, and so many blocks before and after it."""
    return waiting[max(0, begin - margin) : begin + _BATCH + margin]


def _lowest(block: Block, forbidden: list[tuple[int, int]]) -> int:
    unit, offset = block.alignment_bytes, 0
    for low, high in sorted(forbidden):
        if low < offset < high:
            offset = -(-high // unit) * unit
    return offset


def _highest(block: Block, forbidden: list[tuple[int, int]], capacity_bytes: int) -> int:
    """The highest end; negative where there is none."""
    unit = block.alignment_bytes
    offset = (capacity_bytes - block.size_bytes) // unit * unit
    for low, high in sorted(forbidden, key=lambda r: -r[1]):
        if low < offset < high:
            offset = low // unit * unit
    return offset
