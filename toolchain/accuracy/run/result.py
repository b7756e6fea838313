"""How right a model was on labelled data, in each runtime."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from toolchain.accuracy.metrics.boxes import Detection
from toolchain.accuracy.metrics.classes import Classification
from toolchain.accuracy.metrics.keywords import Keywords
from toolchain.accuracy.metrics.numbers import Regression
from toolchain.accuracy.run.columns import BOARD, FLOAT
from toolchain.accuracy.run.tasks import Figures
from toolchain.deployment.compile import Compiled


class Task(StrEnum):
    """The kind of thing that a model predicts."""

    CLASSES = "classes"
    NUMBERS = "numbers"
    BOXES = "boxes"


@dataclass(frozen=True)
class Agreement:
    """The board beside the reference. `differing` of `elements` of all outputs have other bytes, by
    up to `max_difference` steps (as `thimble verify` counts them); `same` of `predictions` are
    equal.
    """

    elements: int
    differing: int
    max_difference: float
    predictions: int
    same: int

    @property
    def same_predictions(self) -> float:
        """The share of predictions that are equal."""
        return self.same / self.predictions


@dataclass(frozen=True)
class Measured:
    """A runtime's figures. `name`: float, reference or board; `title`: the float model's file, the
    reference's name, or the board that ran; `keywords`: of sound without keywords, where some was
    given.
    """

    name: str
    title: str
    figures: Figures
    keywords: Keywords | None = None


@dataclass(frozen=True, repr=False)
class Accuracy:
    """How right `model` was on labelled data.

    board     the board that was asked for; '' without one. `ran_on`: it, or an emulated one that
              stood for it.
    columns   the runtimes that ran: the float model, the reference, the board.
    samples   labelled samples; `inferences`: how many runs these were in each runtime.
    agreement  None unless reference and board ran.
    compiled  what was compiled for the board; None for a folder, and without a board.
    """

    model: str
    board: str
    ran_on: str
    task: Task
    samples: int
    inferences: int
    columns: tuple[Measured, ...]
    agreement: Agreement | None = None
    compiled: Compiled | None = None

    @property
    def final(self) -> Measured:
        """The runtime nearest to the product: the board, else the reference."""
        return self.columns[-1]

    @property
    def floating(self) -> Measured | None:
        """The float model; None where none was given."""
        return self._column(FLOAT)

    @property
    def on_board(self) -> Measured | None:
        """The board; None without one."""
        return self._column(BOARD)

    @property
    def accuracy(self) -> float | None:
        """The share of samples whose class was found, in `final`; None without classes."""
        figures = self.final.figures
        return figures.accuracy if isinstance(figures, Classification) else None

    def _column(self, name: str) -> Measured | None:
        return next((one for one in self.columns if one.name == name), None)

    def __repr__(self) -> str:
        where = f" on {self.ran_on}" if self.ran_on else ""
        lines = [f"{self.model}{where}: {self.samples:,} samples of {self.task}"]
        lines += [f"{one.name}: {said(one.figures)} ({one.title})" for one in self.columns]
        if self.agreement is not None:
            lines.append(
                f"board and reference: {self.agreement.differing:,} of "
                f"{self.agreement.elements:,} elements differ"
            )
        return "\n".join(lines)


def said(figures: Figures) -> str:
    """The first figures in a few words."""
    if isinstance(figures, Classification):
        top = "" if figures.top_5 is None else f", top-5 {figures.top_5:.2%}"
        return f"accuracy {figures.accuracy:.2%}{top}"
    if isinstance(figures, Regression):
        return f"MAE {figures.mae:.4g}, R2 {_or_dash(figures.r2)}"
    assert isinstance(figures, Detection)
    return f"mAP {_or_dash(figures.map)}, mAP at 0.5 {_or_dash(figures.map_50)}"


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
