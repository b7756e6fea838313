"""Classification: the confusion matrix, and the figures that follow from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

TOP = 5
"""Classes among which the right one counts as found; a model with no more has no such figure."""
_SURE = 1.959963984540054
"""The standard normal deviate of 95%, two-sided."""

Counts = NDArray[np.int64]
Scores = NDArray[np.float64]


@dataclass(frozen=True)
class ClassFigures:
    """One class. `samples`: how many are of it; `predicted`: how many were taken for it.

    Precision, recall and F1 are within 0 to 1; None where they would divide by 0: nothing was taken
    for the class, nothing is of it, neither.
    """

    name: str
    samples: int
    predicted: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class Confusion:
    """`count` samples of the class `truth` were taken for `predicted`."""

    truth: str
    predicted: str
    count: int


@dataclass(frozen=True, eq=False)
class Classification:
    """Predictions of classes. `matrix`: samples, [truth, predicted]; `within_top`: samples whose
    class is among the TOP with the largest scores, None for a model with no more classes than that.
    """

    names: tuple[str, ...]
    matrix: Counts = field(repr=False)
    within_top: int | None = None

    @property
    def samples(self) -> int:
        return int(self.matrix.sum())

    @property
    def correct(self) -> int:
        return int(np.trace(self.matrix))

    @property
    def accuracy(self) -> float:
        """The share of samples whose largest score is that of their class (top-1)."""
        return self.correct / self.samples

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of 95% for the accuracy on other samples of this kind (E. B. Wilson,
        1927, J. Am. Stat. Assoc. 22:209)."""
        count, share, square = self.samples, self.accuracy, _SURE * _SURE
        middle = share + square / (2 * count)
        half = _SURE * math.sqrt(share * (1 - share) / count + square / (4 * count * count))
        whole = 1 + square / count
        return max(0.0, min(share, (middle - half) / whole)), max(share, (middle + half) / whole)

    @property
    def top_5(self) -> float | None:
        return None if self.within_top is None else self.within_top / self.samples

    @property
    def macro_f1(self) -> float:
        """The mean of the F1 of all classes that have one."""
        known = [one.f1 for one in self.classes if one.f1 is not None]
        return sum(known) / len(known)

    @property
    def classes(self) -> tuple[ClassFigures, ...]:
        right = np.diagonal(self.matrix)
        of, taken = self.matrix.sum(axis=1), self.matrix.sum(axis=0)
        return tuple(
            ClassFigures(
                name,
                int(samples),
                int(predicted),
                _share(hits, predicted),
                _share(hits, samples),
                _share(2 * hits, samples + predicted),
            )
            for name, hits, samples, predicted in zip(self.names, right, of, taken, strict=True)
        )

    @property
    def confusions(self) -> tuple[Confusion, ...]:
        """Every pair of classes that was confused, the most frequent first."""
        wrong = self.matrix - np.diag(np.diagonal(self.matrix))
        truths, taken = np.nonzero(wrong)
        counts = wrong[truths, taken]
        return tuple(
            Confusion(self.names[truths[i]], self.names[taken[i]], int(counts[i]))
            for i in np.argsort(-counts, kind="stable")
        )


def _share(part: int, whole: int) -> float | None:
    return float(part / whole) if whole else None


@dataclass
class ClassTally:
    """Counts predictions of classes as they come."""

    names: tuple[str, ...]
    matrix: Counts = field(init=False)
    within_top: int = 0
    is_ranked: bool = True

    def __post_init__(self) -> None:
        self.matrix = np.zeros((len(self.names), len(self.names)), np.int64)

    def add(self, truth: int, scores: Scores) -> int:
        """Count a sample of the class `truth` by its scores, [classes]; the predicted class. The
        first of equal scores is the largest, as in NumPy's argmax; NaN is the smallest."""
        known = np.where(np.isnan(scores), -np.inf, scores)
        predicted = int(np.argmax(known))
        before = np.count_nonzero(known > known[truth])
        before += np.count_nonzero(known[:truth] == known[truth])
        self.within_top += int(before < TOP)
        self.matrix[truth, predicted] += 1
        return predicted

    def add_class(self, truth: int, predicted: int) -> None:
        """Count a sample of which only the predicted class is known, without scores."""
        self.is_ranked = False
        self.matrix[truth, predicted] += 1

    def result(self) -> Classification:
        ranked = self.is_ranked and len(self.names) > TOP
        return Classification(self.names, self.matrix, self.within_top if ranked else None)
