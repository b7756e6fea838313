"""Options that say what a user's samples mean, and the classes that a model found in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from toolchain.cli._groups import option
from toolchain.errors import InputError
from toolchain.files.labels import read_labels
from toolchain.ir import End
from toolchain.preprocess.samples import Scaling, real_values

FORMATS = (
    ".npy, .npz (arrays by input name; FILE.npz:NAME is one of them), .png, .jpg, .bmp, .wav, "
    ".csv, or raw bytes; a folder or a '*' pattern means its files"
)
LabelsOption = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="Names of the classes, one a line. Default: those in the model, if it has some.",
    ),
]
_RANGE = re.compile(r"\s*(?P<low>\S+?)\s*\.\.\s*(?P<high>\S+)\s*")
_TOP = 5
_MOST_CLASSES = 1 << 16


@dataclass(frozen=True)
class SampleOptions:
    """Options that tell the meaning of samples: images, sounds, tables."""

    bounds: str | None = option(
        None,
        "The values of the least and the greatest pixel or sound sample in training: 0..1, "
        "-1..1 or 0..255.",
        "--range",
        unit="LOW..HIGH",
    )
    mean: str | None = option(
        None,
        "Numbers to subtract after --range (without it, from the stored 0 to 255): one, or "
        "one for each channel (0.485,0.456,0.406).",
        unit="NUMBERS",
    )
    std: str | None = option(
        None, "Divisors after --mean: one, or one for each channel.", unit="NUMBERS"
    )
    real: bool = option(
        False, "Arrays and tables hold real values: quantise them with the input's scale."
    )
    resize: bool = option(False, "Scale images to the input's size (bilinear).")

    def scaling(self) -> Scaling:
        """The scaling that the options give. Raises InputError for a text that is no range or no
        list of numbers."""
        chosen = Scaling(
            None if self.bounds is None else _bounds(self.bounds),
            _numbers("--mean", self.mean),
            _numbers("--std", self.std),
            self.real,
            self.resize,
        )
        chosen.check()
        return chosen


def _bounds(text: str) -> tuple[float, float]:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise InputError(f"--range {text!r} is not like 0..1 or -1..1")
    return _number("--range", match["low"]), _number("--range", match["high"])


def _numbers(option: str, text: str | None) -> tuple[float, ...]:
    return () if text is None else tuple(_number(option, word) for word in text.split(","))


def _number(option: str, word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = float("nan")
    if not np.isfinite(number):
        raise InputError(f"{option}: {word.strip()!r} is no number")
    return number


@dataclass(frozen=True)
class Class:
    """An element of an output, its name ('' where it has none), and its real value."""

    index: int
    label: str
    score: float


def top_classes(values: NDArray[Any], end: End, labels: tuple[str, ...]) -> list[list[Class]]:
    """The elements with the largest values, best first, for each inference: of an output that is
    one row of classes. Empty for other outputs, and where its numbers have no real value.
    """
    classes = max(end.model_shape, default=1)
    scores = real_values(values, end)
    if scores is None or end.tensor.elements != classes or not 1 < classes <= _MOST_CLASSES:
        return []
    best_of = []
    for row in scores.reshape(-1, classes):
        best = np.argsort(-row, kind="stable")[:_TOP]
        best_of.append(
            [Class(int(i), labels[i] if i < len(labels) else "", float(row[i])) for i in best]
        )
    return best_of


def labels_for(
    file: Path | None,
    of_model: dict[str, tuple[str, ...]],
    outputs: tuple[End, ...],
    classes: str = "",
) -> dict[str, tuple[str, ...]]:
    """The labels of each output. Labels of the file go to the outputs that have as many classes, or
    to the one named `classes`, which holds the numbers of boxes' classes.

    Raises InputError where no output has.
    """
    if file is None:
        return of_model
    labels = read_labels(file)
    if classes:
        return {**of_model, classes: labels}
    sizes = {end.name: max(end.model_shape, default=1) for end in outputs}
    fitting = {name: labels for name, size in sizes.items() if size == len(labels)}
    if not fitting:
        listed = ", ".join(f"{name} has {size:,} classes" for name, size in sizes.items())
        raise InputError(f"--labels: {file} has {len(labels):,} labels, but {listed}")
    return of_model | fitting
