"""The loss by int8, tensor by tensor and output by output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class LayerError:
    """The effect of quantisation on one tensor, over all samples compared.

    `noise_db`: power of the float values over power of the error, in dB; higher is better.
    """

    tensor: str
    operator: str
    noise_db: float
    max_error: float


@dataclass(frozen=True)
class OutputError:
    """`agreement`: share of rows (of the last axis) whose largest element is the same one."""

    output: str
    noise_db: float
    max_error: float
    mean_error: float
    agreement: float


class Sums:
    """Running totals of one tensor's values and errors."""

    def __init__(self) -> None:
        self._signal = self._noise = self._absolute = self.max_error = 0.0
        self._elements = self._rows = self._agreeing = 0

    def add(self, want: NDArray[Any], got: NDArray[Any]) -> None:
        """Add one sample: the float values and the int8 model's, as real numbers of one shape."""
        exact, error = want.astype(np.float64), got.astype(np.float64) - want.astype(np.float64)
        self._signal += float((exact**2).sum())
        self._noise += float((error**2).sum())
        self._absolute += float(np.abs(error).sum())
        self._elements += exact.size
        self.max_error = max(self.max_error, float(np.abs(error).max(initial=0.0)))
        if exact.ndim and exact.size:
            same = want.argmax(-1) == got.argmax(-1)
            self._rows += same.size
            self._agreeing += int(same.sum())

    @property
    def noise_db(self) -> float:
        if self._noise == 0:
            return float("inf")
        return 10 * float(np.log10(max(self._signal, 1e-30) / self._noise))

    @property
    def mean_error(self) -> float:
        return self._absolute / max(self._elements, 1)

    @property
    def agreement(self) -> float:
        return self._agreeing / self._rows if self._rows else 1.0

    def layer(self, tensor: str, operator: str) -> LayerError:
        return LayerError(tensor, operator, self.noise_db, self.max_error)

    def output(self, name: str) -> OutputError:
        return OutputError(name, self.noise_db, self.max_error, self.mean_error, self.agreement)
