"""Energy of runs, from a recording that began at another time than the clock of this computer.

Runs come in bursts with gaps of idling around them. The shift between both clocks is the one at
which power in the bursts exceeds that in the gaps most; then each burst is integrated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.contact.power.recording import Recording
from toolchain.errors import InputError

GAP_SECONDS = 1.0
"""Idling before the first burst, between two, and after the last."""
_MARGIN_SECONDS = 0.05
"""At the ends of a gap: requests on the line, capacitors."""
_COARSE, _FINE = 20_000, 400
"""Shifts that are tried."""
_STANDS_OUT = 3.0
"""Times the spread of the gaps by which the bursts exceed them at least."""
_LEAST_SHARE = 0.005
"""Likewise, of the power of the gaps."""


@dataclass(frozen=True)
class Burst:
    """`runs` of one network from `began` to `ended`, in seconds of this computer's clock;
    `run_seconds`: of one run, by the board's counter.
    """

    network: str
    began: float
    ended: float
    runs: int
    run_seconds: float


@dataclass(frozen=True)
class Energy:
    """Energy of one run: `microjoules`, all that the board drew in it. `idle_watts`: power around
    the burst, `run_watts`: in a run.
    """

    network: str
    microjoules: float
    idle_watts: float
    run_watts: float


class _Integral:
    """Joules of a recording up to any time."""

    def __init__(self, recording: Recording) -> None:
        seconds, watts = recording.seconds, recording.watts
        parts = np.diff(seconds) * (watts[1:] + watts[:-1]) / 2
        self._seconds = seconds
        self._joules = np.concatenate(([0.0], np.cumsum(parts)))

    def between(
        self, begin: NDArray[np.float64] | float, end: NDArray[np.float64] | float
    ) -> NDArray[np.float64]:
        upto, before = (np.interp(at, self._seconds, self._joules) for at in (end, begin))
        return np.asarray(upto - before, np.float64)


def energies(recording: Recording, bursts: Sequence[Burst]) -> tuple[Energy, ...]:
    """The energy of a run of each burst. Bursts are in order.

    Raises InputError where the recording is shorter than they are, and where no shift makes them
    stand out from the gaps.
    """
    integral = _Integral(recording)
    shift = _shift(recording, integral, bursts)
    gaps = [_gaps(integral, burst, shift) for burst in bursts]
    idle = np.array(gaps).ravel()
    loads = [
        float(integral.between(b.began + shift, b.ended + shift)) / (b.ended - b.began)
        for b in bursts
    ]
    above = float(np.mean(loads) - np.mean(idle))
    if above < max(_STANDS_OUT * float(np.std(idle)), _LEAST_SHARE * abs(float(np.mean(idle)))):
        raise InputError(
            "the runs do not stand out in the recording of power: bursts draw "
            f"{np.mean(loads) * 1e3:.3f} mW and gaps {np.mean(idle) * 1e3:.3f} mW. Is it of this "
            "visit and this board, and is nothing else on the supply that is measured?"
        )
    return tuple(
        _energy(burst, load, float(np.mean(gap)))
        for burst, load, gap in zip(bursts, loads, gaps, strict=True)
    )


def _energy(burst: Burst, load_watts: float, idle_watts: float) -> Energy:
    """Between runs of a burst the board idles, while the line carries the next request."""
    length = burst.ended - burst.began
    busy = min(burst.runs * burst.run_seconds, length)
    joules = load_watts * length - idle_watts * (length - busy)
    return Energy(burst.network, 1e6 * joules / burst.runs, idle_watts, joules / busy)


def _gaps(integral: _Integral, burst: Burst, shift: float) -> tuple[float, float]:
    """Power in the gaps before and after a burst."""
    length = GAP_SECONDS - 2 * _MARGIN_SECONDS
    before = burst.began + shift - GAP_SECONDS + _MARGIN_SECONDS
    after = burst.ended + shift + _MARGIN_SECONDS
    return (
        float(integral.between(before, before + length)) / length,
        float(integral.between(after, after + length)) / length,
    )


def _shift(recording: Recording, integral: _Integral, bursts: Sequence[Burst]) -> float:
    """Seconds of the recording's clock less those of this computer's."""
    first, last = bursts[0].began - GAP_SECONDS, bursts[-1].ended + GAP_SECONDS
    least, most = float(recording.seconds[0]) - first, float(recording.seconds[-1]) - last
    if most < least:
        raise InputError(
            f"the recording of power has {recording.seconds[-1] - recording.seconds[0]:.1f} s, and "
            f"the runs with their gaps took {last - first:.1f} s: record all of them"
        )
    step = (most - least) / _COARSE
    best = _best(integral, bursts, np.linspace(least, most, _COARSE + 1))
    near = np.linspace(max(best - step, least), min(best + step, most), _FINE + 1)
    return _best(integral, bursts, near)


def _best(integral: _Integral, bursts: Sequence[Burst], shifts: NDArray[np.float64]) -> float:
    """The shift at which bursts exceed the gaps around them most, each weighed alike."""
    excess = np.zeros_like(shifts)
    for burst in bursts:
        begin, end = burst.began + shifts, burst.ended + shifts
        load = integral.between(begin, end) / (burst.ended - burst.began)
        around = integral.between(begin - GAP_SECONDS, begin)
        around = around + integral.between(end, end + GAP_SECONDS)
        excess += load - around / (2 * GAP_SECONDS)
    return float(shifts[int(np.argmax(excess))])
