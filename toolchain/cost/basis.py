"""Basis of a figure of time: silicon, a trace of an emulated run, or a formula."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

CYCLES, INSTRUCTIONS = "cycles", "instructions"
"""The units of a count."""


class Basis(StrEnum):
    """MEASURED: counted by the chip itself. TRACE: computed by the core's timing model and its
    memories from what an emulated run executed. PREDICTED: by formula, with nothing run."""

    MEASURED = "measured"
    TRACE = "trace"
    PREDICTED = "predicted"

    @property
    def text(self) -> str:
        """The basis in words."""
        return "modelled from a trace" if self is Basis.TRACE else self.value


def basis_of_sum(parts: Iterable[Basis]) -> Basis:
    """The basis of a sum of figures: that of all its parts if they agree, else PREDICTED."""
    distinct = set(parts)
    return distinct.pop() if len(distinct) == 1 else Basis.PREDICTED


def milliseconds(count: float, unit: str, clock_hz: int) -> float | None:
    """The time that cycles take; None for instructions, which take no certain time, and where the
    clock is unknown (0)."""
    return 1e3 * count / clock_hz if unit == CYCLES and clock_hz else None
