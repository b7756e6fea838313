"""How much a search may still do, in work that it counts itself."""

from __future__ import annotations

import math

_NANOSECONDS = 1e9


class Work:
    """The budget of one search, and what it has spent.

    The search counts its elementary steps (a placement tried, a state examined) and charges for
    each the nanoseconds that it takes on one core of a desktop computer. No clock is read, so the
    search ends after the same step on every machine. A limit of 10 seconds takes about 10 seconds
    on an idle core, longer on a slow one, and gives the same result on both.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self._limit = seconds * _NANOSECONDS
        self._spent = 0

    @property
    def spent(self) -> int:
        """Work spent, in nanoseconds."""
        return self._spent

    @property
    def spent_seconds(self) -> float:
        return self._spent / _NANOSECONDS

    @property
    def left_seconds(self) -> float:
        """Work that is left, in seconds; at least 0."""
        return max(self._limit - self._spent, 0.0) / _NANOSECONDS

    @property
    def over(self) -> bool:
        """Whether the work is used up: the search must then end with what it has found."""
        return self._spent >= self._limit

    def spend(self, nanoseconds: int) -> None:
        self._spent += nanoseconds

    def spend_seconds(self, seconds: float) -> None:
        self._spent += int(seconds * _NANOSECONDS)
