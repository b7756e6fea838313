"""Regression: how far predicted numbers are from the true ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class NumberFigures:
    """One number of an output, over all samples; see `Regression`."""

    mae: float
    rmse: float
    r2: float | None


@dataclass(frozen=True)
class Regression:
    """Predictions of numbers, in the unit of the labels.

    mae   mean of the absolute errors
    rmse  root of the mean of the squared errors
    r2    1 - squared errors / squared distances of the labels from their mean, the mean over the
          numbers of an output; None where the labels of each are all equal
    """

    samples: int
    mae: float
    rmse: float
    r2: float | None
    largest_error: float
    numbers: tuple[NumberFigures, ...]


def regression(truths: Numbers, predicted: Numbers) -> Regression:
    """Figures of predictions, both [samples, numbers]."""
    errors = predicted - truths
    squares = (errors**2).sum(axis=0)
    spread = ((truths - truths.mean(axis=0)) ** 2).sum(axis=0)
    numbers = tuple(
        NumberFigures(
            float(np.abs(errors[:, i]).mean()),
            float(np.sqrt((errors[:, i] ** 2).mean())),
            float(1 - squares[i] / spread[i]) if spread[i] else None,
        )
        for i in range(truths.shape[1])
    )
    known = [one.r2 for one in numbers if one.r2 is not None]
    return Regression(
        samples=len(truths),
        mae=float(np.abs(errors).mean()),
        rmse=float(np.sqrt((errors**2).mean())),
        r2=sum(known) / len(known) if known else None,
        largest_error=float(np.abs(errors).max()),
        numbers=numbers,
    )
