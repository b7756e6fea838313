"""The clock tree of a chip, and the clocks that a board's factors make of it.

Every tree here is an oscillator, divided by M into a PLL whose VCO runs N times as fast, divided by
P for the core; a bus runs at a fraction of the core's clock, of another bus or of the VCO. A chip
without a PLL has M, N and P of 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from toolchain.boards.fields import Line, Name
from toolchain.errors import InputError

CORE = "core"
"""The core's clock."""
SOURCE = "source"
"""The oscillator, as the clock of a UART."""
VCO = "vco"
"""The name of the VCO's clock, which buses can be fractions of; nothing else runs at it."""
_RANGE = re.compile(r"(\d+)(?:\s*\.\.\s*(\d+))?")
_DIVIDERS = "1, 2, 4, 8, 16"


@dataclass(frozen=True)
class Bus:
    """`[clock.bus.NAME]` of a chip: the highest clock of a bus, and what it is a fraction of."""

    most_hz: int
    of: Name = CORE
    dividers: Line = _DIVIDERS


@dataclass(frozen=True)
class ClockTree:
    """`[clock]` of a chip: what its factors may be, as `1..8, 16`, and limits of the clocks that
    they make, in Hz. `input_hz`, `vco_hz`: the least and the most into the PLL, and of its VCO.
    `beside`: other oscillators by name, as clocks of UARTs, in Hz.
    """

    source: Name
    source_hz: int
    m: Line = "1"
    n: Line = "1"
    p: Line = "1"
    input_hz: tuple[int, ...] = ()
    vco_hz: tuple[int, ...] = ()
    beside: Mapping[Name, int] = field(default_factory=dict)
    bus: Mapping[Name, Bus] = field(default_factory=dict)


@dataclass(frozen=True)
class Factors:
    """`[clock]` of a board: the PLL's factors, and each bus's divider."""

    m: int = 1
    n: int = 1
    p: int = 1
    bus: Mapping[Name, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Clocks:
    """Clocks in Hz: of the core, and of each bus and oscillator by name."""

    core_hz: int
    others: Mapping[str, int]


def clocks(tree: ClockTree, chosen: Factors, most_hz: int, where: str) -> Clocks:
    """The clocks that the factors of a board make.

    Raises InputError, beginning with `where` and naming the field and its limit, where a factor is
    not among those there are, a clock is out of its limits (`most_hz`: of the core) or no whole
    number of Hz, and where a bus is not the chip's.
    """
    for name in ("m", "n", "p"):
        _check_factor(getattr(chosen, name), getattr(tree, name), f"{where}: clock.{name}")
    into = Fraction(tree.source_hz, chosen.m)
    vco = into * chosen.n
    core = vco / chosen.p
    _check_range(into, tree.input_hz, f"{where}: clock.m: {tree.source} / m, into the PLL,")
    _check_range(vco, tree.vco_hz, f"{where}: clock.n: the PLL's VCO")
    _check_range(core, (1, most_hz), f"{where}: clock: the core")
    unknown = sorted(set(chosen.bus) - set(tree.bus))
    if unknown:
        known = ", ".join(tree.bus) or "none"
        raise InputError(f"{where}: clock.bus: there is no {unknown[0]!r}; the chip has {known}")
    rates = {VCO: vco, CORE: core, SOURCE: Fraction(tree.source_hz)}
    rates |= {name: Fraction(clock_hz) for name, clock_hz in tree.beside.items()}
    for name, bus in tree.bus.items():
        divider = chosen.bus.get(name, 1)
        _check_factor(divider, bus.dividers, f"{where}: clock.bus.{name}")
        if bus.of not in rates:
            raise InputError(f"{where}: the chip's clock.bus.{name}: of: no {bus.of!r} before it")
        rates[name] = rates[bus.of] / divider
        _check_range(rates[name], (1, bus.most_hz), f"{where}: clock.bus.{name}: {name}")
    del rates[VCO]
    for name, clock in rates.items():
        if clock.denominator != 1:
            raise InputError(f"{where}: clock: {name} runs at {float(clock):,.3f} Hz, not whole Hz")
    whole = {name: int(clock) for name, clock in rates.items()}
    return Clocks(whole.pop(CORE), whole)


def _check_range(clock: Fraction, limits: tuple[int, ...], field: str) -> None:
    if limits and not limits[0] <= clock <= limits[-1]:
        raise InputError(
            f"{field} runs at {float(clock):,.0f} Hz, not at {limits[0]:,} to {limits[-1]:,} Hz"
        )


def _check_factor(value: int, allowed: str, field: str) -> None:
    if not any(value in values for values in _ranges(allowed, field)):
        raise InputError(f"{field} is {value}; the chip has {allowed}")


def _ranges(text: str, field: str) -> list[range]:
    parts = [_RANGE.fullmatch(part.strip()) for part in text.split(",")]
    if not all(parts):
        raise InputError(f"{field}: {text!r} in the chip's file is not as '1..8, 16'")
    return [range(int(m[1]), int(m[2] or m[1]) + 1) for m in parts if m]


def fastest(tree: ClockTree, most_hz: int, where: str) -> Factors:
    """Factors for the highest clock of the core that is no more than `most_hz`; of those the ones
    with the smallest M, then P, and the smallest dividers that the buses allow.

    Raises InputError if no factors keep the limits.
    """
    best: tuple[Fraction, int, int, int] | None = None
    for m in _values(tree.m, where):
        into = Fraction(tree.source_hz, m)
        if not _within(into, tree.input_hz):
            continue
        for p in _values(tree.p, where):
            for n in _values(tree.n, where):
                core = into * n / p
                if core > most_hz or core.denominator != 1 or not _within(into * n, tree.vco_hz):
                    continue
                if best is None or (core, -m, -p) > (best[0], -best[1], -best[3]):
                    best = core, m, n, p
    if best is None:
        raise InputError(f"{where}: no factors of the PLL keep its limits")
    core, m, n, p = best
    rates = {VCO: core * p, CORE: core}
    dividers: dict[str, int] = {}
    for name, bus in tree.bus.items():
        allowed = [d for d in _values(bus.dividers, where) if rates[bus.of] / d <= bus.most_hz]
        if not allowed:
            raise InputError(f"{where}: no divider keeps the limit of {name}")
        dividers[name] = min(allowed)
        rates[name] = rates[bus.of] / dividers[name]
    return Factors(m, n, p, dividers)


def _within(clock: Fraction, limits: tuple[int, ...]) -> bool:
    return not limits or limits[0] <= clock <= limits[-1]


def _values(allowed: str, where: str) -> list[int]:
    return [value for values in _ranges(allowed, where) for value in values]
