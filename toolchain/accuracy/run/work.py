"""The task that labels and outputs make, and its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.accuracy.metrics.classes import ClassTally
from toolchain.accuracy.metrics.keywords import KeywordTally, keyword_classes
from toolchain.accuracy.run.result import Task
from toolchain.accuracy.run.subject import Subject
from toolchain.accuracy.run.tasks import (
    BoxesTally,
    ClassesTally,
    Form,
    NumbersTally,
    Tally,
    Windows,
    form_of,
)
from toolchain.accuracy.samples.boxes import read_boxes
from toolchain.accuracy.samples.inputs import InputReader
from toolchain.accuracy.samples.items import Item, items, spread
from toolchain.accuracy.samples.labels import (
    Label,
    are_numbers,
    classes_of,
    labels_of_array,
    numbers,
    read_labels,
)
from toolchain.errors import InputError, did_you_mean
from toolchain.ir import End

Data = str | Path | Sequence[str | Path] | NDArray[Any]


@dataclass(frozen=True)
class Asked:
    """How a model's outputs are judged; `measure_accuracy` says what each field means."""

    classes: tuple[str, ...] = ()
    output: str = ""
    regression: bool = False
    windows: str = ""
    threshold: float = 0.5
    keywords: tuple[str, ...] = ()
    hold_off: float = 1.0
    limit: int | None = None


@dataclass(frozen=True)
class Work:
    """The samples of a task, and how they are counted: by a new tally for each runtime."""

    task: Task
    items: list[Item[Any]]
    subject: Subject
    windows: Windows
    asked: Asked
    output: str = ""
    form: Form = Form.SCORES
    names: tuple[str, ...] = ()

    def tally(self, negatives: Sequence[str | Path]) -> Tally:
        if self.task is not Task.CLASSES and negatives:
            raise InputError("false accepts are counted of a model of classes, not of this one")
        if self.task is Task.BOXES:
            assert self.subject.boxes is not None
            return BoxesTally(self.subject.boxes, self.names)
        if self.task is Task.NUMBERS:
            return NumbersTally(self.output, self.windows)
        keywords = self._keywords() if negatives else None
        counted, threshold = ClassTally(self.names), self.asked.threshold
        return ClassesTally(self.output, self.form, self.windows, threshold, counted, keywords)

    def _keywords(self) -> KeywordTally:
        if self.form is Form.NUMBER:
            raise InputError(f"output {self.output!r} is the number of a class: it has no scores")
        found = (1,) if self.form is Form.SCORE else keyword_classes(self.names)
        if self.asked.keywords:
            for word in self.asked.keywords:
                if word not in self.names:
                    raise InputError(
                        f"the keyword {word!r} is no class{did_you_mean(word, self.names)}"
                    )
            found = tuple(sorted(map(self.names.index, self.asked.keywords)))
        if not found:
            raise InputError(f"no class is a keyword: {', '.join(self.names)}")
        return KeywordTally(self.names, found, self.asked.threshold, self.asked.hold_off)


def work_of(
    asked: Asked,
    subject: Subject,
    reader: InputReader,
    data: Data,
    labels: str | Path | NDArray[Any],
) -> Work:
    """The task that labels and outputs make, and its samples.

    Raises InputError, naming file and line, for data and labels that cannot be read or do not fit.
    """
    windows = _windows(asked.windows, stateful=subject.stateful)
    paths = data if isinstance(data, np.ndarray) else _paths(data)
    if subject.boxes is not None:
        return _boxes_work(asked, subject, reader, paths, labels)
    end = _judged(subject, asked.output)
    found = (
        labels_of_array(labels, "labels")
        if isinstance(labels, np.ndarray)
        else read_labels(str(labels), [] if isinstance(paths, np.ndarray) else paths)
    )
    elements = end.tensor.elements
    is_number = elements == 1 and form_of(end) is Form.NUMBER
    if asked.regression or (not is_number and are_numbers(found, elements)):
        chosen = items(found, list(numbers(found, elements)), paths, reader)
        work = spread(chosen, asked.limit)
        return Work(Task.NUMBERS, work, subject, windows, asked, end.name)
    form = form_of(end)
    names = asked.classes or subject.labels.get(end.name, ())
    count = {Form.SCORES: elements, Form.SCORE: 2, Form.NUMBER: len(names) or None}[form]
    if count is not None and names and len(names) != count:
        raise InputError(
            f"there are names of {len(names):,} classes, and output {end.name!r} has {count:,}"
        )
    words = [(label.where, label.words[0]) for label in found]
    names, truths = classes_of(words, names, count)
    work = spread(items(found, truths, paths, reader), asked.limit)
    return Work(Task.CLASSES, work, subject, windows, asked, end.name, form, names)


def _boxes_work(
    asked: Asked,
    subject: Subject,
    reader: InputReader,
    data: list[Path] | NDArray[Any],
    labels: str | Path | NDArray[Any],
) -> Work:
    if isinstance(data, np.ndarray) or isinstance(labels, np.ndarray):
        raise InputError("the data of a model with boxes are image files, and its labels a file")
    assert subject.boxes is not None
    names = asked.classes or subject.labels.get(subject.boxes["classes"], ())
    names, images = read_boxes(str(labels), data, names, subject.box_classes)
    found = [Label(image.where, (), image.file) for image in images]
    chosen = items(found, [image.boxes for image in images], data, reader)
    work = spread(chosen, asked.limit)
    return Work(Task.BOXES, work, subject, Windows.EACH, asked, names=names)


def _paths(data: str | Path | Sequence[str | Path] | NDArray[Any]) -> list[Path]:
    if isinstance(data, str | Path):
        return [Path(data)]
    return [Path(one) for one in data]


def _windows(text: str, *, stateful: bool) -> Windows:
    if not text:
        return Windows.LAST if stateful else Windows.EACH
    try:
        return Windows(text)
    except ValueError:
        known = ", ".join(Windows)
        raise InputError(
            f"--windows {text!r} is unknown; there are {known}{did_you_mean(text, Windows)}"
        ) from None


def _judged(subject: Subject, name: str) -> End:
    """The output that is judged. Raises InputError where several could be."""
    known = {end.name: end for end in subject.heads}
    if name:
        if name not in known:
            raise InputError(
                f"the model has no output {name!r}; it has {', '.join(known)}"
                f"{did_you_mean(name, known)}"
            )
        return known[name]
    named = [end for end in subject.heads if end.name in subject.labels]
    chosen = subject.heads if len(subject.heads) == 1 else named
    if len(chosen) != 1:
        raise InputError(
            f"the model has several outputs ({', '.join(known)}): which one do the labels tell?",
            remedies=["--output NAME"],
        )
    return chosen[0]
