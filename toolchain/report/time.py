"""A count of time for people: cycles, milliseconds, and what they rest on."""

from __future__ import annotations

from toolchain.boards import energy_of
from toolchain.cost.basis import CYCLES, INSTRUCTIONS, Basis, milliseconds


def clock(clock_hz: int) -> str:
    """A frequency in MHz."""
    return f"{clock_hz / 1e6:g} MHz"


def duration(time_ms: float) -> str:
    """Milliseconds, to a microsecond below one."""
    return f"{time_ms:,.2f} ms" if time_ms >= 1 else f"{time_ms:.3f} ms"


def time_text(count: int, unit: str, basis: Basis, clock_hz: int) -> str:
    """A count, its time at the clock, and what it rests on.

    As in '61,234 cycles (0.364 ms at 168 MHz), modelled from a trace'. Instructions have no time,
    and are counted unless they are predicted.
    """
    time_ms = milliseconds(count, unit, clock_hz)
    at = f" ({duration(time_ms)} at {clock(clock_hz)})" if time_ms is not None else ""
    counted = unit == INSTRUCTIONS and basis is not Basis.PREDICTED
    return f"{count:,} {unit}{at}, {'counted' if counted else basis.text}"


def energy_text(target: str, count: int, unit: str) -> str:
    """Energy as text: '; about 1,210 uJ, estimated from the datasheet's current'; '' where the
    chip's file has no current.
    """
    energy = microjoules(target, count, unit)
    if energy is None:
        return ""
    digits = 0 if energy >= 100 else 1
    return f"; about {energy:,.{digits}f} uJ, estimated from the datasheet's current"


def microjoules(target: str, count: int, unit: str) -> float | None:
    """An estimate for a board or chip; None for instructions, and where its file has no current."""
    energy = energy_of(target) if unit == CYCLES else None
    return None if energy is None else energy.microjoules(count)


def per_unit(unit: str) -> str:
    """The unit in the singular, as in 'MACs/cycle'."""
    return {CYCLES: "cycle", INSTRUCTIONS: "instruction"}[unit]
