"""The meaning of a model's outputs, and how it is counted: classes, numbers, boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolchain.accuracy.metrics.boxes import Detection, FoundBoxes, TrueBoxes, detection
from toolchain.accuracy.metrics.classes import Classification, ClassTally
from toolchain.accuracy.metrics.keywords import KeywordTally
from toolchain.accuracy.metrics.numbers import Regression, regression
from toolchain.errors import InputError
from toolchain.ir import DType, End

Real = NDArray[np.float64]
RealOutputs = Mapping[str, Real]
"""Real values of the outputs of one inference, by name."""
Figures: TypeAlias = Classification | Regression | Detection
Prediction: TypeAlias = int | tuple[Any, ...]


class Windows(StrEnum):
    """Which outputs of a sample with several inferences count: each as a sample of its own, their
    mean, their largest, or the last."""

    EACH = "each"
    MEAN = "mean"
    MAX = "max"
    LAST = "last"


def pooled(values: Sequence[Real], windows: Windows) -> list[Real]:
    """The values that count, of those of all inferences of a sample."""
    if windows is Windows.EACH or len(values) == 1:
        return list(values)
    if windows is Windows.LAST:
        return [values[-1]]
    reduced: Real = (np.mean if windows is Windows.MEAN else np.max)(np.stack(values), axis=0)
    return [reduced]


class Form(StrEnum):
    """How an output tells a class: a score for each, one score of the second of two, its number."""

    SCORES = "scores"
    SCORE = "score"
    NUMBER = "number"


def form_of(end: End) -> Form:
    """The form of an output. Raises InputError for one that is no single row of classes."""
    if end.tensor.elements == 1:
        whole = end.model_dtype in (DType.INT32, DType.INT64) and end.tensor.quantisation is None
        return Form.NUMBER if whole else Form.SCORE
    if end.tensor.elements != max(end.model_shape):
        raise InputError(
            f"output {end.name!r} {list(end.model_shape)} is no row of classes: labels of whole "
            "samples do not fit it"
        )
    return Form.SCORES


class Tally(Protocol):
    """Counts the samples of one runtime."""

    def add(self, truth: Any, outputs: Sequence[RealOutputs]) -> list[Prediction]:
        """Count a sample by the outputs of its inferences; the predictions that they are."""

    def result(self) -> Figures: ...


@dataclass
class ClassesTally:
    """Samples with a class each, told by `output`."""

    output: str
    form: Form
    windows: Windows
    threshold: float
    counted: ClassTally
    keywords: KeywordTally | None = None

    def add(self, truth: int, outputs: Sequence[RealOutputs]) -> list[Prediction]:
        rows = [values[self.output].reshape(-1) for values in outputs]
        return [self._count(truth, row) for row in pooled(rows, self.windows)]

    def _count(self, truth: int, row: Real) -> int:
        if self.keywords is not None:
            self.keywords.say(truth, self.scores(row))
        if self.form is Form.SCORES:
            return self.counted.add(truth, row)
        predicted = int(row[0] >= self.threshold) if self.form is Form.SCORE else int(row[0])
        if not 0 <= predicted < len(self.counted.names):
            raise InputError(
                f"output {self.output!r} says class {predicted}, and there are "
                f"{len(self.counted.names)}"
            )
        self.counted.add_class(truth, predicted)
        return predicted

    def hear(self, at: float, outputs: RealOutputs) -> None:
        """Count a window of sound without keywords that ends `at` so many seconds."""
        assert self.keywords is not None
        self.keywords.hear(at, self.scores(outputs[self.output].reshape(-1)))

    def scores(self, row: Real) -> Real:
        """A score for each class; of the first of two nothing is known but that of the second."""
        return np.array([-np.inf, row[0]]) if self.form is Form.SCORE else row

    def result(self) -> Classification:
        return self.counted.result()


class NumbersTally:
    """Samples with numbers to predict, which `output` holds."""

    def __init__(self, output: str, windows: Windows) -> None:
        self._output, self._windows = output, windows
        self._truths: list[Real] = []
        self._predicted: list[Real] = []

    def add(self, truth: Real, outputs: Sequence[RealOutputs]) -> list[Prediction]:
        rows = pooled([values[self._output].reshape(-1) for values in outputs], self._windows)
        self._truths += [truth] * len(rows)
        self._predicted += rows
        return [tuple(row.tolist()) for row in rows]

    def result(self) -> Regression:
        return regression(np.stack(self._truths), np.stack(self._predicted))


class BoxesTally:
    """Images with boxes, which the outputs `boxes` hold."""

    def __init__(self, boxes: Mapping[str, str], names: tuple[str, ...]) -> None:
        self._boxes, self._names = boxes, names
        self._has_all = not all(name.isdecimal() for name in names)
        self._truths: list[TrueBoxes] = []
        self._found: list[FoundBoxes] = []

    def add(self, truth: TrueBoxes, outputs: Sequence[RealOutputs]) -> list[Prediction]:
        predictions: list[Prediction] = []
        for values in outputs:
            found = self._read(values)
            self._truths.append(truth)
            self._found.append(found)
            predictions.append(tuple(found.classes.tolist()))
        return predictions

    def _read(self, values: RealOutputs) -> FoundBoxes:
        scores = values[self._boxes["scores"]].reshape(-1)
        count = int(np.clip(values[self._boxes["count"]].reshape(-1)[0], 0, len(scores)))
        sides = values[self._boxes["boxes"]].reshape(-1, 4)[:count]
        classes = values[self._boxes["classes"]].reshape(-1)[:count].astype(np.int64)
        if self._has_all and count and classes.max() >= len(self._names):
            raise InputError(
                f"the model finds class {classes.max()}, counted from 0, and there are names of "
                f"{len(self._names)}"
            )
        return FoundBoxes(sides, classes, scores[:count])

    def result(self) -> Detection:
        return detection(self._truths, self._found, self._names)
