"""The heads of a detector: where their numbers lie, and what boxes and scores these stand for.

NumPy, operation by operation as the kernels compute them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic.float_math import exp, logistic
from toolchain.ops.detection.boxes import Float32, decode, overlap

COORDINATES = 4
_ONE, _TWO, _HALF = np.float32(1), np.float32(2), np.float32(0.5)


class BoxCoding(StrEnum):
    """How a box is encoded: `thimble_box_coding`."""

    OFFSETS = "offsets"
    CENTRES = "centres"
    SQUARES = "squares"
    EXPONENTS = "exponents"


class Scoring(StrEnum):
    """The function that makes a score of a number: `thimble_scoring`."""

    PLAIN = "plain"
    LOGISTIC = "logistic"
    SOFTMAX = "softmax"


class Suppression(StrEnum):
    """Which boxes suppress one another: `thimble_suppression`."""

    BEST_CLASS = "best-class"
    EACH_CLASS = "each-class"
    ACROSS = "across"


@dataclass(frozen=True)
class View:
    """Number `channel` of an anchor of a cell is the element first + cell * cell_step + anchor *
    anchor_step + channel * channel_step of a tensor.
    """

    first: int = 0
    cell_step: int = 0
    anchor_step: int = 0
    channel_step: int = 1

    def reach(self, cells: int, anchors: int, channels: int) -> int:
        """One past the last element of so many."""
        sizes = (cells, self.cell_step), (anchors, self.anchor_step), (channels, self.channel_step)
        return self.first + sum((size - 1) * step for size, step in sizes) + 1

    def numbers(self, values: Float32, cells: int, anchors: int, begin: int, end: int) -> Float32:
        """Channels `begin` to below `end` of each place, [anchors * cells][channels]."""
        anchor, cell = np.divmod(np.arange(anchors * cells), cells)
        places = self.first + cell * self.cell_step + anchor * self.anchor_step
        chosen: Float32 = values.reshape(-1)[
            places[:, None] + np.arange(begin, end)[None] * self.channel_step
        ]
        return chosen


@dataclass(frozen=True)
class Head:
    """`cells`, in rows of `columns`, with `anchors` boxes each.

    `boxes` and `scores` are numbers of the operator's inputs, and so is `sizes`, the anchors; -1
    where there are none. `box_view` has the four numbers of a box at channels 0 to 3, `score_view`
    the scores: the background's, if there is one, then those of the classes, and objectness at -1.
    """

    boxes: int
    scores: int
    cells: int
    columns: int
    anchors: int
    box_view: View
    score_view: View
    sizes: int = -1

    @property
    def places(self) -> int:
        return self.cells * self.anchors


def grid_boxes(numbers: Float32, sizes: Float32, head: Head, coding: BoxCoding) -> Float32:
    """Boxes of `thimble_head_box` for SQUARES and EXPONENTS: y, x, height, width of each place
    relative to cells and anchors to ymin, xmin, ymax, xmax.
    """
    anchor, cell = np.divmod(np.arange(head.places), head.cells)
    at = np.stack(np.divmod(cell, head.columns), axis=1).astype(np.float32)
    cells = np.array([head.cells // head.columns, head.columns], np.float32)
    with np.errstate(all="ignore"):
        inside = logistic(numbers[:, :2])
        squares = coding is BoxCoding.SQUARES
        centre = ((inside * _TWO - _HALF if squares else inside) + at) / cells
        if squares:
            root = logistic(numbers[:, 2:]) * _TWO
            size = root * root * sizes[anchor]
        else:
            size = exp(numbers[:, 2:]) * sizes[anchor]
        return np.concatenate([centre - _HALF * size, centre + _HALF * size], axis=1)


def head_boxes(
    numbers: Float32,
    sizes: Float32 | None,
    head: Head,
    coding: BoxCoding,
    scales: Sequence[float],
) -> Float32:
    """ymin, xmin, ymax, xmax of each place, from its four numbers y, x, height, width."""
    if coding is BoxCoding.CENTRES:
        with np.errstate(all="ignore"):
            centre, size = np.split(numbers / np.array(scales, np.float32), 2, axis=1)
            return np.concatenate([centre - _HALF * size, centre + _HALF * size], axis=1)
    assert sizes is not None
    if coding is BoxCoding.OFFSETS:
        return decode(numbers, sizes, scales)
    return grid_boxes(numbers, sizes, head, coding)


def scores_of(
    numbers: Float32, objects: Float32 | None, scoring: Scoring, background: int
) -> Float32:
    """Scores of the classes of each place, from its numbers [places][background + classes]."""
    with np.errstate(all="ignore"):
        if scoring is Scoring.LOGISTIC:
            scores = logistic(numbers)
        elif scoring is Scoring.SOFTMAX:
            powers = exp(numbers - numbers.max(axis=1, keepdims=True))
            total = np.zeros(len(numbers), np.float32)
            for channel in powers.T:
                total = total + channel
            scores = powers / total[:, None]
        else:
            scores = numbers
        scores = scores[:, background:]
        if objects is not None:
            scores = scores * (logistic(objects) if scoring is Scoring.LOGISTIC else objects)
    return scores


def chosen(
    scores: Float32,
    numbers: Float32,
    suppression: Suppression,
    least_score: float,
    candidates: int,
) -> list[tuple[int, int]]:
    """Place and class of the best candidates, best first. `numbers` of the classes say which class
    is a place's best.
    """
    places, classes = scores.shape
    if suppression is Suppression.EACH_CLASS:
        label, place = np.divmod(np.arange(places * classes), places)
    else:
        rest = np.where(np.isnan(numbers[:, 1:]), np.float32(-np.inf), numbers[:, 1:])
        place, label = np.arange(places), np.hstack([numbers[:, :1], rest]).argmax(axis=1)
    score = np.where(np.isnan(numbers[place, 0]), np.float32(np.nan), scores[place, label])
    wanted = np.flatnonzero(score >= np.float32(least_score))
    order = wanted[np.argsort(-score[wanted], kind="stable")][:candidates]
    return [(int(place[i]), int(label[i])) for i in order]


def kept(
    candidates: Sequence[tuple[int, int]],
    boxes: Float32,
    across: bool,
    most_overlap: float,
    most: int,
) -> list[tuple[int, int]]:
    """The candidates that share too much with none before them."""
    best: list[tuple[int, int]] = []
    for place, label in candidates:
        if len(best) == most:
            break
        others = [other for other, known in best if across or known == label]
        if not (overlap(boxes[others], boxes[place]) > np.float32(most_overlap)).any():
            best.append((place, label))
    return best


def joined(parts: Sequence[kit.Array]) -> NDArray[np.float32]:
    """The heads' places one after the other."""
    return np.concatenate(list(parts), axis=0).astype(np.float32)
