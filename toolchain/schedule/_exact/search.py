"""Decides whether an order within a limit exists, depth first over sets of operators.

The stack holds states of strictly rising live bytes. Whenever the search arrives at a state to
which a state of the stack could have moved without loss (theorem 2 of docs/schedulers.md), it cuts
the stack back to that state and drops the rest of its choices. A state that cannot reach the end is
remembered as dead. If the bottom of the stack itself moves, the move also holds for every other
limit that is not below the footprints on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from toolchain.schedule._exact.compiled import Compiled
from toolchain.schedule._exact.machine import Machine

_MEMORY_FOR_DEAD_STATES_BYTES = 600_000_000
_NS_A_MOVE, _NS_AN_OPERATOR, _NS_A_LOOK = 2600, 0.09, 86
"""To run an operator and take it back; for each operator that the sets of them may hold; and to
look at one that is ready or has run. Measured over 1,885 turns of 400 states: nine in ten are
predicted within 26% of the processor's time."""


class Verdict(Enum):
    """The state of a decision: whether an order within the limit exists."""

    OPEN = "the search has not ended"
    FOUND = "an order within the limit exists"
    DEAD = "no order within the limit exists"


@dataclass
class _Frame:
    """A state of the stack. `keys`: the states that stand or fall with it."""

    keys: list[int]
    live_bytes: int
    length: int
    choices: list[tuple[int, int, list[int]]] | None = field(default=None)
    next: int = 0

    def move(self, machine: Machine) -> None:
        self.keys.append(machine.key)
        self.live_bytes = machine.live_bytes
        self.length = len(machine.trail)
        self.choices = None
        self.next = 0


class Search:
    """One decision at a time; `limit_bytes` may rise between decisions."""

    def __init__(self, problem: Compiled) -> None:
        self._machine = Machine(problem)
        everything = self._machine.full
        self._forced = {
            key
            for op in range(problem.count)
            if problem.ancestors[op] | problem.descendants[op] | 1 << op == everything
            for key in (problem.ancestors[op], problem.ancestors[op] | 1 << op)
        }
        self._room_for_dead = _MEMORY_FOR_DEAD_STATES_BYTES // (problem.count // 8 + 120)
        self._frames: list[_Frame] = []
        self._bottoms: list[tuple[int, int]] = []
        self.states = 0
        self.limit_bytes = -1
        self.begin(-1)

    @property
    def spent(self) -> int:
        """The work of all decisions, in nanoseconds."""
        machine = self._machine
        move = int(_NS_A_MOVE + machine.problem.count * _NS_AN_OPERATOR)
        return machine.moves * move + machine.looks * _NS_A_LOOK

    def begin(self, limit_bytes: int) -> None:
        """Start a decision, at the last bottom of the stack that was reached within the limit."""
        while self._bottoms and self._bottoms[-1][1] > limit_bytes:
            self._bottoms.pop()
        self._machine.back_to(self._bottoms[-1][0] if self._bottoms else 0)
        self.limit_bytes = limit_bytes
        self.blocked_bytes: int | None = None
        self._dead: set[int] = set()
        self._frames = []

    @property
    def order(self) -> list[int]:
        """The operators that have run: the order itself once the verdict is FOUND."""
        return list(self._machine.trail)

    def run(self, states: int) -> Verdict:
        """Examine at most about `states` more states.

        After DEAD, `blocked_bytes` is the least footprint of any refused step: a bound on the peak
        of every order (None if no step was refused).
        """
        machine, frames = self._machine, self._frames
        if not frames:
            machine.settle(self.limit_bytes)
            frames.append(_Frame([machine.key], machine.live_bytes, len(machine.trail)))
            self._mark_bottom()
        stop = self.states + states
        while frames:
            if machine.key == machine.full:
                return Verdict.FOUND
            if self.states >= stop:
                return Verdict.OPEN
            frame = frames[-1]
            if frame.choices is None:
                if self._expand(frame):
                    continue
                assert frame.choices is not None
            choice = self._next_choice(frame)
            if choice is None:
                self._bury(frame)
                continue
            for op in choice:
                machine.run(op)
            self._arrive()
        return Verdict.DEAD

    def _expand(self, frame: _Frame) -> bool:
        """List the frame's choices, lowest state first; True where one of them needs no others."""
        machine, limit, base = self._machine, self.limit_bytes, frame.length
        choices = []
        machine.looks += len(machine.ready)
        for op in sorted(machine.ready):
            step_bytes = machine.live_bytes + machine.rise[op]
            if step_bytes > limit:
                if self.blocked_bytes is None or step_bytes < self.blocked_bytes:
                    self.blocked_bytes = step_bytes
                continue
            self.states += 1
            machine.run(op)
            machine.settle(limit)
            if machine.key not in self._dead:
                live = machine.live_bytes
                if machine.key == machine.full:
                    return True
                if machine.key in self._forced or (
                    live <= frame.live_bytes and machine.no_loss(base)
                ):
                    self._arrive()
                    return True
                choices.append((live, machine.key, machine.trail[base:]))
            machine.back_to(base)
        choices.sort(key=lambda choice: choice[0])
        frame.choices = choices
        return False

    def _next_choice(self, frame: _Frame) -> list[int] | None:
        assert frame.choices is not None
        while frame.next < len(frame.choices):
            _, key, ops = frame.choices[frame.next]
            frame.next += 1
            if key not in self._dead:
                return ops
        return None

    def _bury(self, frame: _Frame) -> None:
        """The frame on top has no choice left: it is dead, and with it what moved to it."""
        if len(self._dead) < self._room_for_dead:
            self._dead.update(frame.keys)
        self._frames.pop()
        if self._frames:
            self._machine.back_to(self._frames[-1].length)

    def _arrive(self) -> None:
        """Put the present state on the stack, or let the lowest frame that may move to it."""
        machine, frames = self._machine, self._frames
        live = machine.live_bytes
        if machine.key in self._forced:
            lowest = 0
        else:
            lowest = len(frames)
            while lowest and frames[lowest - 1].live_bytes >= live:
                if not machine.no_loss(frames[lowest - 1].length):
                    break
                lowest -= 1
        if lowest == len(frames):
            frames.append(_Frame([machine.key], live, len(machine.trail)))
        else:
            del frames[lowest + 1 :]
            frames[lowest].move(machine)
            if not lowest:
                self._mark_bottom()

    def _mark_bottom(self) -> None:
        """Remember how far the bottom has come, and the highest footprint on the way."""
        length, highest = self._bottoms[-1] if self._bottoms else (0, 0)
        steps = self._machine.steps[length:]
        if steps:
            self._bottoms.append((len(self._machine.trail), max(highest, *steps)))
