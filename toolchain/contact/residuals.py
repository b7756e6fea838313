"""A contact file against the formula: residuals by kernel, a fit, and what is kept of it.

The fit multiplies the formula's cycles by a factor of the core, corrected by each kernel, and adds
cycles for a call; it is judged by samples that it has not seen.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from toolchain.contact.document import Contact, Sample
from toolchain.cost.basis import CYCLES, Basis
from toolchain.cost.correction import OF_ALL, Correction, kernel_name
from toolchain.cost.database import Database, Measurement
from toolchain.cost.key import Build, Key

_EVERY = 4
"""One of so many samples is held out."""
_FEWEST = 12
"""Samples, without which nothing is fitted."""
_PRIOR = 1.0
"""How many samples of a kernel the factor of its core weighs as much as."""
_CALL_CYCLES = (0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0)
"""Cycles of a call that are tried."""
_RUNS = 3


@dataclass(frozen=True)
class Residual:
    """Samples of one kernel, or of all where `kernel` is ''. `ratio`: the geometric mean of
    measured / predicted; errors are shares of the measured cycles.
    """

    kernel: str
    samples: int
    ratio: float
    mean_error: float
    worst_error: float


@dataclass(frozen=True)
class Fit:
    """Corrections by kernel, from all samples. `error_before`, `error_after`: the mean error of the
    `held_out` samples by the formula, and by corrections from the others alone.
    """

    corrections: Mapping[str, Correction]
    samples: int
    held_out: int
    error_before: float
    error_after: float

    @property
    def helps(self) -> bool:
        """Whether samples that the fit has not seen are predicted better."""
        return self.error_after < self.error_before


def compared(contact: Contact) -> tuple[Sample, ...]:
    """Samples in cycles that have a prediction and the right bytes, each kernel and shape once."""
    usable = {
        (s.kernel, s.shape): s
        for s in contact.samples
        if s.unit == CYCLES and s.warm > 0 and s.predicted > 0 and not s.differing
    }
    return tuple(usable[key] for key in sorted(usable))


def residuals(samples: Sequence[Sample]) -> tuple[Residual, ...]:
    """All samples together, then each kernel, the worst first."""
    if not samples:
        return ()
    kernels: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        kernels[kernel_name(sample.kernel)].append(sample)
    each = [_residual(name, group) for name, group in kernels.items()]
    return (_residual(OF_ALL, samples), *sorted(each, key=lambda r: (-r.mean_error, r.kernel)))


def _residual(kernel: str, samples: Sequence[Sample]) -> Residual:
    errors = [sample.predicted / sample.warm - 1 for sample in samples]
    return Residual(
        kernel=kernel,
        samples=len(samples),
        ratio=math.exp(fmean(math.log(s.warm / s.predicted) for s in samples)),
        mean_error=fmean(map(abs, errors)),
        worst_error=max(errors, key=abs),
    )


def fit(samples: Sequence[Sample]) -> Fit | None:
    """The fit of some samples; None where they are too few."""
    if len(samples) < _FEWEST:
        return None
    held_out = samples[_EVERY - 1 :: _EVERY]
    seen = [sample for i, sample in enumerate(samples) if i % _EVERY != _EVERY - 1]
    return Fit(
        corrections=_corrections(samples),
        samples=len(samples),
        held_out=len(held_out),
        error_before=_error(held_out, {OF_ALL: Correction(1.0, 0.0)}),
        error_after=_error(held_out, _corrections(seen)),
    )


def _error(samples: Sequence[Sample], corrections: Mapping[str, Correction]) -> float:
    """The mean of absolute errors, as shares of the measured cycles."""

    def corrected(sample: Sample) -> float:
        own = corrections.get(kernel_name(sample.kernel), corrections[OF_ALL])
        return own.of(sample.predicted)

    return fmean(abs(corrected(sample) / sample.warm - 1) for sample in samples)


def _corrections(samples: Sequence[Sample]) -> dict[str, Correction]:
    """The core's factor and the cycles of a call, then a factor of each kernel, drawn towards the
    core's. Medians and logarithms: few operators are off by much, and some by two orders.
    """
    predicted = np.array([sample.predicted for sample in samples], np.float64)
    warm = np.array([sample.warm for sample in samples], np.float64)
    core = min((_core(predicted, warm, call) for call in _CALL_CYCLES), key=lambda c: c[0])[1]
    logarithms: defaultdict[str, list[float]] = defaultdict(list)
    for sample, own in zip(samples, _without_call(warm, core.call_cycles), strict=True):
        ratio = math.log(own / sample.predicted / core.factor)
        logarithms[kernel_name(sample.kernel)].append(ratio)
    found = {OF_ALL: core}
    for kernel, each in logarithms.items():
        factor = core.factor * math.exp(sum(each) / (len(each) + _PRIOR))
        found[kernel] = Correction(factor, core.call_cycles)
    return {kernel: one for kernel, one in found.items() if one.is_sound}


def _core(
    predicted: NDArray[np.float64], warm: NDArray[np.float64], call: float
) -> tuple[float, Correction]:
    """The core's factor where a call takes so many cycles, behind the mean error that is left, of
    logarithms."""
    factor = float(np.exp(np.median(np.log(_without_call(warm, call) / predicted))))
    error = np.abs(np.log((factor * predicted + call) / warm)).mean()
    return float(error), Correction(factor, call)


def _without_call(warm: NDArray[np.float64], call: float) -> NDArray[np.float64]:
    """Cycles without those of the call, which are no more than nine tenths."""
    return np.maximum(warm - call, 0.1 * warm)


def kept(contact: Contact, found: Fit | None, database: Database) -> int:
    """Store the samples of silicon as measurements, and corrections that help, in place of earlier
    ones of this board and build. Returns how many measurements are new; 0 for an emulated board,
    which measures nothing.
    """
    if contact.emulated:
        return 0
    build = Build(contact.compiler, contact.cmsis_nn)
    rows = [
        Measurement(
            board=contact.board,
            key=Key(sample.kernel, sample.shape),
            build=build,
            unit=sample.unit,
            basis=Basis.MEASURED,
            count=sample.warm,
            spread=max(sample.cold - sample.warm, 0),
            runs=_RUNS,
            estimate=sample.predicted,
            measured_at=contact.made_at,
        )
        for sample in compared(contact)
        if sample.basis is Basis.MEASURED
    ]
    stored = database.put(rows, newer_only=True)
    if found is not None and found.helps:
        database.put_corrections(contact.board, build, found.corrections)
    return stored
