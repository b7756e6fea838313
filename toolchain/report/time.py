"""A count of time for people: cycles, milliseconds, and what they rest on."""

from __future__ import annotations

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


def per_unit(unit: str) -> str:
    """The unit in the singular, as in 'MACs/cycle'."""
    return {CYCLES: "cycle", INSTRUCTIONS: "instruction"}[unit]
