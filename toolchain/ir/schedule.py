"""The result of a scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Schedule:
    """An order of operator indices, the scheduler that found it, and what is proved about its peak.

    `lower_bound_bytes` is a proved lower bound on the peak of *every* order. `proved_optimal` means
    that the peak of this order equals it.
    """

    order: tuple[int, ...]
    method: str
    peak_bytes: int
    lower_bound_bytes: int
    seconds: float = field(default=0.0, compare=False)

    @property
    def proved_optimal(self) -> bool:
        return self.peak_bytes == self.lower_bound_bytes
