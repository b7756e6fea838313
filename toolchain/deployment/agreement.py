"""The meaning of differences to whoever uses the outputs: signal to noise, and whether the top
class is the reference's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import DType, End

Array = NDArray[np.generic]


@dataclass(frozen=True)
class Agreement:
    """One output over runs, in real values. `classes`: its elements, if it is a row of them."""

    signal: float = 0.0
    noise: float = 0.0
    runs: int = 0
    agreeing: int = 0
    classes: int = 0

    def with_run(self, end: End, got: Array, want: Array) -> Agreement:
        """The agreement with another run's output."""
        ours, theirs = _real(end, got), _real(end, want.reshape(got.shape))
        finite = np.isfinite(ours) & np.isfinite(theirs)
        apart = float(np.square(ours[finite] - theirs[finite]).sum())
        signal = float(np.square(theirs[finite]).sum())
        is_row = got.ndim > 0 and got.size == got.shape[-1] > 1
        return replace(
            self,
            signal=self.signal + signal,
            noise=self.noise + apart,
            runs=self.runs + 1,
            agreeing=self.agreeing + int(is_row and ours.argmax() == theirs.argmax()),
            classes=got.size if is_row else 0,
        )

    @property
    def snr_db(self) -> float | None:
        """The ratio of the reference's power to that of the difference; None without one."""
        if not self.noise or not self.signal:
            return None
        return round(10 * math.log10(self.signal / self.noise), 1)

    @property
    def top_class(self) -> tuple[int, int] | None:
        """Runs with the reference's top class, and all; None for what is no row of classes."""
        return (self.agreeing, self.runs) if self.classes else None


def _real(end: End, values: Array) -> NDArray[np.float64]:
    """An output of the model as real values, in steps where it is stored as integers."""
    if end.model_dtype is DType.FLOAT32 or end.tensor.quantisation is None:
        return values.astype(np.float64).reshape(-1)
    stored = end.to_graph(values).astype(np.float64).reshape(-1)
    return np.asarray(stored - end.tensor.q.zero_point)
