"""Search for a placement within a capacity, bottom up, on a skyline over all sections of time.

A feasible placement can be pushed down until every shape rests on the bottom or on another shape.
The search looks only for such placements ("canonical solutions" in Moffitt, "MiniMalloc: A
Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023; inference on
sections, unallocated floors and decomposition in time are also from there). Unlike MiniMalloc it
asks for *one* section what rests at the bottom of its free room: one of the few shapes that lie
flat there, or none. Sections with little slack leave few answers. Positions found to be impossible
are remembered, under every rule and over restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

from toolchain.arena._shapes import Shape, Shapes
from toolchain.search import Work

_NS_TO_BEGIN, _NS_A_TURN, _NS_TO_SPLIT, _NS_TO_ASK, _NS_TO_RAISE = 1800, 13_000, 370, 600, 1140
"""To begin, for each shape in a section; for each question; to put a shape into a part; to see
whether to ask a section; to raise a floor. Measured, as the following, over 2,275 searches: nine in
ten are predicted within 13% of the processor's time."""
_NS_TO_REST, _NS_RIGID, _NS_A_FLOOR = 100, 800, 40
"""To see whether a shape may rest at a floor, more where it is not flat; and whether it keeps the
floor down."""
Rank = Callable[[int], tuple[float, ...]]
"""Which shape to try first: the smallest rank."""

State = tuple[int, tuple[int, ...]]
"""The shapes not yet placed, as bits, and the lowest offset that each can still have."""


class Choice(Enum):
    """Rules for the section to decide next: the lowest, the one with the least slack, or with the
    fewest answers.
    """

    LOWEST = "lowest"
    SLACK = "slack"
    ANSWERS = "answers"


class Verdict(Enum):
    """The outcome of a search within one capacity; STOPPED: its work is used up."""

    FOUND = "found"
    IMPOSSIBLE = "impossible"
    STOPPED = "stopped"


@dataclass
class _Part:
    """Shapes not yet placed that nothing ties to the others in time; alive in [first, last)."""

    shapes: list[int]
    first: int
    last: int


@dataclass
class _Pending:
    """A part still to solve; where it fails, so does the choice at `barrier` in the stack."""

    part: _Part
    barrier: int
    rest: _Pending | None


@dataclass
class _Choicepoint:
    state: State
    barrier: int
    trail: int
    part: _Part
    rest: _Pending | None
    section: int
    answers: Iterator[int]
    may_skip: bool = True


class Skyline:
    """One search under one rule. `impossible` is shared by searches for the same capacity."""

    def __init__(
        self,
        given: Shapes,
        capacity_bytes: int,
        choice: Choice,
        rank: Rank,
        impossible: set[State],
    ) -> None:
        self._shapes: tuple[Shape, ...] = given.shapes
        self._capacity = capacity_bytes
        self._choice = choice
        self._rank = rank
        self._impossible = impossible
        count = len(given.shapes)
        self._sections: list[list[tuple[int, int]]] = [[] for _ in range(given.sections)]
        self._free = [0] * given.sections  # bytes that are still to be placed in each section
        for index, shape in enumerate(given.shapes):
            for k in range(shape.first, shape.last):
                self._sections[k].append((index, shape.bottoms[k - shape.first]))
                self._free[k] += shape.heights[k - shape.first]
        self._meets = [
            sorted({i for k in range(s.first, s.last) for i, _ in self._sections[k]} - {index})
            for index, s in enumerate(given.shapes)
        ]
        self._least = [min(shape.heights) for shape in given.shapes]
        self._flat = [not any(shape.bottoms) for shape in given.shapes]
        self._twin = [
            (s.first, s.last, s.heights, s.bottoms, s.alignment_bytes) for s in given.shapes
        ]
        self._floor = [0] * given.sections
        self._lowest = [0] * count
        self._placed = [0] * count
        self._trail: list[tuple[list[int], int, int]] = []
        self._section_ends = [0, *accumulate(map(len, self._sections))]
        self._spent = _NS_TO_BEGIN * self._section_ends[-1]
        """Nanoseconds of work that are not yet charged."""
        self.placements = 0
        self.blocked_bytes: int | None = None

    @property
    def offsets(self) -> list[int]:
        """Offsets of the shapes, after FOUND."""
        return self._lowest

    def run(self, placement_limit: int, work: Work) -> Verdict:
        """Search from the start, for about `placement_limit` placements and while work is left."""
        try:
            return self._run(placement_limit, work)
        finally:
            self._charge(work)

    def _charge(self, work: Work) -> None:
        work.spend(self._spent)
        self._spent = 0

    def _run(self, placement_limit: int, work: Work) -> Verdict:
        highest = max(self._free, default=0)
        if highest > self._capacity:
            return self._blocked(highest)
        stack: list[_Choicepoint] = []
        if not self._raise_floors(0, len(self._floor)):
            return Verdict.IMPOSSIBLE
        every = sorted(range(len(self._shapes)), key=lambda i: self._shapes[i].first)
        pending = self._split(every, 0, None)
        while pending is not None:
            self._spent += _NS_A_TURN
            self._charge(work)
            if self.placements >= placement_limit or work.over:
                return Verdict.STOPPED
            self._enter(pending, stack)
            while stack and not self._next(stack[-1]):
                self._impossible.add(stack[-1].state)
                del stack[stack[-1].barrier :]
            if not stack:
                return Verdict.IMPOSSIBLE
            pending = self._split(stack[-1].part.shapes, len(stack), stack[-1].rest)
        return Verdict.FOUND

    def _enter(self, pending: _Pending, stack: list[_Choicepoint]) -> None:
        """Ask the next question of a part; where the part has failed before, go back at once."""
        part = pending.part
        mask = 0
        for shape in part.shapes:
            mask |= 1 << shape
        state = mask, tuple(map(self._lowest.__getitem__, part.shapes))
        if state in self._impossible:
            del stack[pending.barrier :]
            return
        section, answers = self._question(part)
        stack.append(
            _Choicepoint(
                state=state,
                barrier=pending.barrier,
                trail=len(self._trail),
                part=part,
                rest=pending.rest,
                section=section,
                answers=iter(answers),
            )
        )

    def _next(self, at: _Choicepoint) -> bool:
        """Try the answers that are left, until one does not fail at once."""
        self._undo(at.trail)
        for shape in at.answers:
            if self._place(shape):
                return True
            self._undo(at.trail)
        if at.may_skip:
            at.may_skip = False
            if self._skip(at.section):
                return True
            self._undo(at.trail)
        return False

    def _blocked(self, needed_bytes: int) -> Verdict:
        """Remember the least capacity at which a search might have gone on."""
        if self.blocked_bytes is None or needed_bytes < self.blocked_bytes:
            self.blocked_bytes = needed_bytes
        return Verdict.IMPOSSIBLE

    def _question(self, part: _Part) -> tuple[int, list[int]]:
        """A section, and the shapes that may rest at its floor, best first.

        All these shapes lie flat there, so that nothing else can get below one of them. In any
        canonical placement one of them rests there, or none does.
        """
        sections = [k for k in range(part.first, part.last) if self._free[k]]
        self._spent += _NS_TO_ASK * (part.last - part.first)
        resting: list[int] | None = None
        for group in self._groups(sections):
            best: tuple[int, ...] | None = None
            for k in group:
                rests = self._clean_rests(k)
                if not rests:
                    continue
                slack = self._capacity - self._floor[k] - self._free[k]
                claim = (len(rests) + (slack > 0), slack, self._floor[k], k)
                if best is None or claim < best:
                    best, section, resting = claim, k, rests
            if best is not None:
                break
        if resting is None:
            section = min((self._floor[k], k) for k in sections)[1]
            resting = self._resting(section)
        twins = {self._twin[i] + (self._lowest[i],): i for i in reversed(resting)}
        return section, sorted(twins.values(), key=self._rank)

    def _groups(self, sections: list[int]) -> list[list[int]]:
        """Sections that the rule prefers equally, the most preferred first."""
        if self._choice is Choice.ANSWERS:
            return [sections]
        groups: dict[int, list[int]] = {}
        for k in sections:
            value = self._floor[k]
            if self._choice is Choice.SLACK:
                value = self._capacity - value - self._free[k]
            groups.setdefault(value, []).append(k)
        return [groups[value] for value in sorted(groups)]

    def _clean_rests(self, section: int) -> list[int]:
        """Shapes that may rest at a section's floor; none if one of them does not lie flat."""
        floor, resting = self._floor, self._resting(section)
        for index in resting:
            at, shape = self._lowest[index], self._shapes[index]
            under = floor[shape.first : shape.last]
            if self._flat[index]:
                if under.count(at) != len(under):
                    return []
                continue
            self._spent += _NS_RIGID
            if any(at + b != f for b, f in zip(shape.bottoms, under, strict=True)):
                return []
        return resting

    def _resting(self, section: int) -> list[int]:
        """Shapes to come whose lowest offset lets them touch the floor of a section."""
        floor, lowest, placed = self._floor[section], self._lowest, self._placed
        self._spent += _NS_TO_REST * len(self._sections[section])
        return [i for i, up in self._sections[section] if not placed[i] and lowest[i] + up == floor]

    def _set(self, values: list[int], index: int, value: int) -> None:
        self._trail.append((values, index, values[index]))
        values[index] = value

    def _undo(self, length: int) -> None:
        trail = self._trail
        while len(trail) > length:
            values, index, value = trail.pop()
            values[index] = value

    def _place(self, index: int) -> bool:
        """Let a shape rest at its lowest offset. False where a section can no longer hold all."""
        self.placements += 1
        shape, at = self._shapes[index], self._lowest[index]
        floor, free, capacity = self._floor, self._free, self._capacity
        self._set(self._placed, index, 1)
        for k in range(shape.first, shape.last):
            height = shape.heights[k - shape.first]
            top = at + shape.bottoms[k - shape.first] + height
            self._set(floor, k, top)
            self._set(free, k, free[k] - height)
            if top + free[k] > capacity:
                self._blocked(top + free[k])
                return False
        first, last = shape.first, shape.last
        for other in self._meets[index]:
            if self._placed[other]:
                continue
            resting = self._shapes[other]
            under = floor[resting.first : resting.last]
            if not self._flat[other]:
                under = [f - b for f, b in zip(under, resting.bottoms, strict=True)]
            lowest = max(under)
            if lowest > self._lowest[other]:
                unit = resting.alignment_bytes
                self._set(self._lowest, other, -(-lowest // unit) * unit)
                first, last = min(first, resting.first), max(last, resting.last)
        return self._raise_floors(first, last)

    def _skip(self, section: int) -> bool:
        """Decide that no shape rests at this floor: each that may do so rests on one yet to
        come."""
        self.placements += 1
        first = last = section
        resting = self._resting(section)
        for index in resting:
            shape = self._shapes[index]
            flat = self._flat[index]
            rests_on = [
                self._lowest[other] + self._least[other]
                if flat and self._flat[other]
                else self._lowest[other] + self._shapes[other].top_bytes - max(shape.bottoms)
                for other in self._meets[index]
                if not self._placed[other]
            ]
            if not rests_on:
                return False
            lowest = max(min(rests_on), self._lowest[index] + 1)
            unit = shape.alignment_bytes
            self._set(self._lowest, index, -(-lowest // unit) * unit)
            first, last = min(first, shape.first), max(last, shape.last)
        return bool(resting) and self._raise_floors(first, last)

    def _raise_floors(self, first: int, last: int) -> bool:
        """No floor is below the lowest shape that is still to come there."""
        lowest, placed, capacity = self._lowest, self._placed, self._capacity
        shapes = self._section_ends[last] - self._section_ends[first]
        self._spent += _NS_TO_RAISE * (last - first) + _NS_A_FLOOR * shapes
        for k in range(first, last):
            if not self._free[k]:
                continue
            floor = min([lowest[i] + up for i, up in self._sections[k] if not placed[i]])
            if floor > self._floor[k]:
                self._set(self._floor, k, floor)
            if self._floor[k] + self._free[k] > capacity:
                self._blocked(self._floor[k] + self._free[k])
                return False
        return True

    def _split(self, among: list[int], barrier: int, rest: _Pending | None) -> _Pending | None:
        """Split the shapes of `among` that are not placed into parts that share no section,
        tightest first.

        `among` is in order of its first sections.
        """
        parts: list[_Part] = []
        self._spent += _NS_TO_SPLIT * len(among)
        for index in among:
            if self._placed[index]:
                continue
            shape = self._shapes[index]
            if parts and shape.first < parts[-1].last:
                parts[-1].shapes.append(index)
                parts[-1].last = max(parts[-1].last, shape.last)
            else:
                parts.append(_Part([index], shape.first, shape.last))
        if len(parts) > 1:
            slack = [
                min(self._capacity - self._floor[k] - self._free[k] for k in range(p.first, p.last))
                for p in parts
            ]
            parts = [p for _, p in sorted(zip(slack, parts, strict=True), key=lambda x: -x[0])]
        for part in parts:
            rest = _Pending(part, barrier, rest)
        return rest
