"""Dynamic programming over zero-indegree sets: SERENITY's Algorithm 1, over units of operators.

A unit is a run of operators that stay together: one operator for SERENITY, a sequence or a group
for HMCOS. Step i holds, for every signature (the set of units that are ready, which determines
which units have run), the order with the least peak. A state whose peak exceeds the budget is
dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolchain.search import Work

_NS_A_UNIT, _NS_AN_OPERATOR = 1000, 300
"""To try a unit at a state, and for each operator of it, or that is ready."""
Run = Callable[[int, int, int], tuple[int, int, tuple[int, ...]]]
"""(unit, done, live bytes) to the unit's peak, live bytes after it, and its operators in order."""


class OutOfWorkError(Exception):
    """The work limit, or the limit of one step, is reached."""


class NoOrderError(Exception):
    """No order stays within the budget; `beyond_bytes` is the least peak that was refused."""

    def __init__(self, beyond_bytes: int) -> None:
        super().__init__(beyond_bytes)
        self.beyond_bytes = beyond_bytes


@dataclass(frozen=True)
class _State:
    done: int
    ready: tuple[int, ...]
    live_bytes: int
    peak_bytes: int
    tail: tuple[object, tuple[int, ...]] | None

    def order(self) -> list[int]:
        parts: list[tuple[int, ...]] = []
        link: object = self.tail
        while isinstance(link, tuple):
            link, ops = link
            parts.append(ops)
        return [op for ops in reversed(parts) for op in ops]


def least_peak_order(
    masks: Sequence[int],
    before: Sequence[int],
    run: Run,
    done: int,
    live_bytes: int,
    budget_bytes: int,
    work: Work,
    step_seconds: float = math.inf,
) -> tuple[list[int], int, int]:
    """Order all units from the state `done`: the operators, their peak, live bytes after them.

    `masks[u]`: the operators of unit u as a bit set. `before[u]`: the operators that must have run.
    `step_seconds`: the most work of one step. Raises NoOrderError and OutOfWorkError.
    """
    followers = _followers(masks, before)
    ready = tuple(unit for unit, needed in enumerate(before) if not needed & ~done)
    layer = {done: _State(done, ready, live_bytes, 0, None)}
    beyond: int | None = None
    for _ in masks:
        begin = work.spent_seconds
        following: dict[int, _State] = {}
        for state in layer.values():
            if work.over or work.spent_seconds - begin > step_seconds:
                raise OutOfWorkError
            for unit in state.ready:
                peak, live, ops = run(unit, state.done, state.live_bytes)
                work.spend(_NS_A_UNIT + _NS_AN_OPERATOR * (len(ops) + len(state.ready)))
                if peak > budget_bytes:
                    beyond = peak if beyond is None else min(beyond, peak)
                    continue
                peak = max(peak, state.peak_bytes)
                key = state.done | masks[unit]
                known = following.get(key)
                if known is None:
                    freed = (f for f in followers[unit] if not before[f] & ~key)
                    ready = tuple(sorted({*state.ready, *freed} - {unit}))
                    following[key] = _State(key, ready, live, peak, (state.tail, ops))
                elif peak < known.peak_bytes:
                    following[key] = _State(key, known.ready, live, peak, (state.tail, ops))
        if not following:
            raise NoOrderError(budget_bytes + 1 if beyond is None else beyond)
        layer = following
    (last,) = layer.values()
    return last.order(), last.peak_bytes, last.live_bytes


def _followers(masks: Sequence[int], before: Sequence[int]) -> list[list[int]]:
    """Units that need an operator of a unit, for each."""
    unit_of = {op: unit for unit, mask in enumerate(masks) for op in bits(mask)}
    table: list[list[int]] = [[] for _ in masks]
    for unit, needed in enumerate(before):
        for other in sorted({unit_of[op] for op in bits(needed) if op in unit_of}):
            table[other].append(unit)
    return table


def bits(mask: int) -> list[int]:
    """The members of a bit set, ascending."""
    members = []
    while mask:
        lowest = mask & -mask
        members.append(lowest.bit_length() - 1)
        mask ^= lowest
    return members
