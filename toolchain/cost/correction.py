"""Corrections of the formula's cycles, fitted to what a board has measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

OF_ALL = ""
"""In place of a kernel's name: for kernels without a correction of their own."""
_MOST = 100.0


@dataclass(frozen=True)
class Correction:
    """One call takes `factor` times the cycles of the formula, and `call_cycles` more."""

    factor: float
    call_cycles: float

    @property
    def is_sound(self) -> bool:
        """Whether it can be one: finite, and within two orders of magnitude."""
        numbers = (self.factor, self.call_cycles)
        if not all(isinstance(n, float) and math.isfinite(n) for n in numbers):
            return False
        return 1 / _MOST <= self.factor <= _MOST and self.call_cycles >= 0

    def of(self, cycles: float) -> float:
        """The cycles of a call that the formula puts at `cycles`."""
        return self.factor * cycles + self.call_cycles


def kernel_name(kernel: str) -> str:
    """The name by which a kernel is corrected: that of its key without the digest of its code."""
    return kernel.partition("@")[0]
