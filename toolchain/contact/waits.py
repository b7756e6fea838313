"""The waits of a chip's banks, fitted to the accesses of a contact file.

A new line makes the core wait `read_cycles`, and `burst_cycles` for each further part of it, as
`cycles.memory_system` counts. Reads from new lines and calls to them are fitted; reads in sequence
and at random, which bring lines less often, judge the fit and are no part of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Board
from toolchain.contact.document import Access, Contact


@dataclass(frozen=True)
class Waits:
    """Cycles of the core that a bank makes it wait, as `MemoryTiming`, but no whole ones."""

    read_cycles: float
    burst_cycles: float

    def stall(self, access: Access, lines: float) -> float:
        """Cycles that one access waits which brings so many lines on average."""
        return lines * (self.read_cycles + (access.parts - 1) * self.burst_cycles)


@dataclass(frozen=True)
class WaitsFit:
    """`before`: by the chip's file, `after`: fitted to `accesses`. `error_before`, `error_after`:
    mean absolute error, in cycles of an access, on `held_out` kinds of reads.
    """

    bank: str
    before: Waits
    after: Waits
    accesses: int
    held_out: int
    error_before: float
    error_after: float

    @property
    def helps(self) -> bool:
        """Whether reads that the fit has not seen are predicted better."""
        return self.error_after < self.error_before


def fitted_waits(contact: Contact) -> tuple[WaitsFit, ...]:
    """Each bank whose file says how long it waits, in the order of the accesses; none of an
    emulated board, which counts instructions or modelled cycles."""
    banks: defaultdict[str, list[Access]] = defaultdict(list)
    for access in () if contact.emulated else contact.accesses:
        if access.predicted_stall is not None and access.lines is not None:
            banks[access.bank].append(access)
    return tuple(_fitted(bank, accesses) for bank, accesses in banks.items())


def _fitted(bank: str, accesses: Sequence[Access]) -> WaitsFit:
    first = accesses[0]
    assert first.predicted_stall is not None
    burst = float(first.burst_cycles)
    before = Waits(first.predicted_stall - (first.parts - 1) * burst, burst)
    after = _solved(accesses, before)
    held_out = [pair for access in accesses for pair in _held_out(access)]

    def error(waits: Waits) -> float:
        gaps = (abs(waits.stall(access, lines) - stall) for access, lines, stall in held_out)
        return fmean(gaps) if held_out else 0.0

    return WaitsFit(bank, before, after, len(accesses), len(held_out), error(before), error(after))


def _held_out(access: Access) -> list[tuple[Access, float, float]]:
    """Reads in sequence and at random: lines that one brings, and how long it waits."""
    assert access.lines is not None
    given = zip(access.lines[1:], (access.sequential, access.random), strict=True)
    return [(access, lines, one - access.again) for lines, one in given if one is not None]


def _solved(accesses: Sequence[Access], before: Waits) -> Waits:
    """Least squares. Accesses with lines of one length tell one number: it is `read_cycles`, of
    buses and bridges, that is fitted then, and `burst_cycles` where that would fall below 0.
    """
    brought = np.array([access.lines[0] for access in accesses if access.lines], np.float64)
    further = brought * np.array([access.parts - 1 for access in accesses], np.float64)
    stalls = np.array([access.stall for access in accesses], np.float64)
    table = np.stack((brought, further), axis=1)
    if np.linalg.matrix_rank(table) == 2:
        read, burst = map(float, np.linalg.lstsq(table, stalls, rcond=None)[0])
        if min(read, burst) >= 0:
            return Waits(round(read, 2), round(burst, 2))
    read = _scale(brought, stalls - further * before.burst_cycles)
    if read >= 0:
        return Waits(round(read, 2), before.burst_cycles)
    return Waits(0.0, round(max(_scale(further, stalls), 0.0), 2))


def _scale(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The factor of `one` that comes nearest to `other`."""
    norm = float(one @ one)
    return float(one @ other) / norm if norm else 0.0


def lines_for_file(board: Board, fit: WaitsFit) -> tuple[str, ...]:
    """The lines of the chip's or board's file that say the fitted waits; () where they say them
    already, and where the file of the bank is not the chip's.
    """
    bank = next((one for one in board.chip.banks if one.memory.name == fit.bank), None)
    if bank is None or bank.timing is None:
        return ()
    timing, where = bank.timing, board.name
    one_clock = timing.at(board.clock_hz, where)
    clock_cycles = timing.divider * board.clock_hz / (timing.bus_hz or board.clock_hz)
    waits = timing.wait_states(board.clock_hz, where)
    first = round(fit.after.read_cycles / clock_cycles) - waits
    following = round(fit.after.burst_cycles / clock_cycles) - waits * timing.next_waits
    changed = []
    if round(fit.after.read_cycles) != one_clock.read_cycles:
        changed.append(
            f"first_clocks = {first}"
            if first >= 0
            else f"# wait_state_hz: {waits + first} wait states, not {waits}, at this clock"
        )
    if round(fit.after.burst_cycles) != one_clock.burst_cycles:
        changed.append(f"next_clocks = {max(following, 0)}")
    return (f"[timing.{bank.timing_name}]", *changed) if changed else ()
