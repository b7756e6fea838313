"""The board's counter against this computer's clock."""

from __future__ import annotations

from toolchain.contact.commands import ticks_waited
from toolchain.contact.step import Step
from toolchain.contact.visit import LONGEST_SECONDS, Told, Visit, told
from toolchain.cost.basis import CYCLES

_SECONDS, _SHORT_SECONDS = 5.0, 0.05
_MOST_TICKS = 0xF000_0000
"""A counter has 32 bits."""
_EMULATED_TICKS, _EMULATED_SHORT_TICKS = 200_000, 2_000
_MEASURED, _INTERNAL = 0.001, 0.02
"""Errors of this measurement, and of an oscillator inside a chip over temperature and supply."""
_INTERNAL_SOURCES = ("HSI", "MSI", "CSI")


def _run(visit: Visit) -> Told:
    """Two waits of the firmware: what differs between them has no way through the line in it."""
    session, board = visit.session, visit.board
    assert session is not None
    said_hz = session.hello.clock_hz or board.clock_hz
    long, short = round(said_hz * _SECONDS), round(said_hz * _SHORT_SECONDS)
    if board.emulator is not None:
        long, short = _EMULATED_TICKS, _EMULATED_SHORT_TICKS
    short_ticks, short_seconds = ticks_waited(session, short, LONGEST_SECONDS)
    long_ticks, long_seconds = ticks_waited(session, min(long, _MOST_TICKS), LONGEST_SECONDS)
    seconds = max(long_seconds - short_seconds, 1e-9)
    counted_hz = (long_ticks - short_ticks) / seconds
    values = {
        "counted_hz": round(counted_hz),
        "said_hz": session.hello.clock_hz,
        "file_hz": board.clock_hz,
        "seconds": round(seconds, 4),
    }
    counter = board.counter
    if board.emulator is not None or counter is None or counter.unit != CYCLES:
        fact = (
            f"QEMU's counter made {counted_hz / 1e6:,.1f} million ticks in a second of this "
            "computer: no clock of a chip"
        )
        return told([], [fact], values)
    findings = []
    if session.hello.clock_hz and session.hello.clock_hz < board.clock_hz:
        findings.append(
            f"the core runs at {_mhz(said_hz)}, not at the {_mhz(board.clock_hz)} of "
            f"{board.name}'s file: its revision or an option byte limits it. Milliseconds are "
            "counted at the clock that it has"
        )
    away = counted_hz / said_hz - 1
    tree = board.chip.clock
    internal = tree is not None and tree.source.upper().startswith(_INTERNAL_SOURCES)
    if abs(away) > (_INTERNAL if internal else _MEASURED):
        findings.append(
            f"the counter made {counted_hz / 1e6:.3f} million cycles in a second of this computer, "
            f"and the registers say {_mhz(said_hz)} ({away:+.2%}): another oscillator than that of "
            "the board's file feeds the PLL, or the counter does not count the core's cycles"
        )
    fact = f"{counted_hz / 1e6:.3f} MHz by this computer's clock, {away:+.2%} of {_mhz(said_hz)}"
    return told(findings, [fact], values)


def _mhz(hertz: int) -> str:
    return f"{hertz / 1e6:g} MHz"


STEP = Step("clock", "the board's counter against this computer's clock", _run, asks_contact=True)
