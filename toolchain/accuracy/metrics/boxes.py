"""Detection: mean average precision as COCO defines it.

Rules of cocodataset.org/#detection-eval: ten overlaps from 0.5 to 0.95; of each image and class the
100 best boxes; a box takes the true box that it overlaps most, each at most once; precision at 101
recalls, each the best at that recall or beyond; the mean over overlaps and over classes that have
true boxes. A true box that stands for a crowd is taken by any number of boxes, and none of them
counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

OVERLAPS = np.linspace(0.5, 0.95, 10)
"""Area of the intersection over area of the union, from which on a box is right."""
_RECALLS = np.linspace(0.0, 1.0, 101)
_MOST = 100
_HALF, _THREE_QUARTERS = 0, 5
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TrueBoxes:
    """The true boxes of an image. `sides`: [boxes, 4], ymin, xmin, ymax, xmax; `classes`: [boxes];
    `crowds`: [boxes], whether one stands for many.
    """

    sides: Floats
    classes: NDArray[np.int64]
    crowds: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FoundBoxes:
    """The boxes that a detector found in an image: sides and classes as in `TrueBoxes`, and their
    scores."""

    sides: Floats
    classes: NDArray[np.int64]
    scores: Floats


@dataclass(frozen=True)
class BoxClass:
    """One class: its true boxes (crowds left out), those that were found, and its average
    precision: over all overlaps, and at 0.5. None without a true box.
    """

    name: str
    boxes: int
    found: int
    ap: float | None
    ap_50: float | None


@dataclass(frozen=True)
class Detection:
    """Boxes beside true ones. `found`: all boxes, also of classes beyond `classes`. `map`: mean
    average precision over overlaps of 0.5 to 0.95, `map_50` and `map_75`: at these alone; None
    where no class has a true box.
    """

    samples: int
    boxes: int
    found: int
    map: float | None
    map_50: float | None
    map_75: float | None
    classes: tuple[BoxClass, ...]


def detection(
    truths: Sequence[TrueBoxes], found: Sequence[FoundBoxes], names: Sequence[str]
) -> Detection:
    """Figures of the boxes that were found, image by image; `names`: of the classes."""
    classes, precisions = [], []
    for label, name in enumerate(names):
        known, seen, ap = _class(truths, found, label)
        if ap is not None:
            precisions.append(ap)
        half = None if ap is None else float(ap[_HALF])
        classes.append(BoxClass(name, known, seen, None if ap is None else float(ap.mean()), half))
    all_ap = np.array(precisions)
    return Detection(
        samples=len(truths),
        boxes=sum(one.boxes for one in classes),
        found=sum(len(one.classes) for one in found),
        map=float(all_ap.mean()) if precisions else None,
        map_50=float(all_ap[:, _HALF].mean()) if precisions else None,
        map_75=float(all_ap[:, _THREE_QUARTERS].mean()) if precisions else None,
        classes=tuple(classes),
    )


def overlaps(boxes: Floats, others: Floats, crowds: NDArray[np.bool_]) -> Floats:
    """The overlap of each box with each other one, [boxes, others]; with a crowd the share of the
    box that lies in it."""
    least = np.maximum(boxes[:, None, :2], others[None, :, :2])
    most = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    shared = np.clip(most - least, 0.0, None).prod(axis=2)
    own, their = _areas(boxes)[:, None], _areas(others)[None, :]
    whole = np.where(crowds[None, :], own, own + their - shared)
    found: Floats = np.divide(shared, whole, out=np.zeros_like(shared), where=whole > 0)
    return found


def _areas(boxes: Floats) -> Floats:
    areas: Floats = np.clip(boxes[:, 2:] - boxes[:, :2], 0.0, None).prod(axis=1)
    return areas


def _class(
    truths: Sequence[TrueBoxes], found: Sequence[FoundBoxes], label: int
) -> tuple[int, int, Floats | None]:
    """True boxes, found boxes, and the average precision at each overlap."""
    known, scores = 0, [np.empty(0)]
    hits: list[NDArray[np.bool_]] = [np.empty((len(OVERLAPS), 0), np.bool_)]
    counted: list[NDArray[np.bool_]] = [np.empty((len(OVERLAPS), 0), np.bool_)]
    seen = 0
    for true, made in zip(truths, found, strict=True):
        mine = true.classes == label
        crowds = true.crowds[mine]
        order = np.argsort(crowds, kind="stable")  # crowds come last
        sides, crowds = true.sides[mine][order], crowds[order]
        known += int(np.count_nonzero(~crowds))
        ours = np.flatnonzero(made.classes == label)
        seen += len(ours)
        ours = ours[np.argsort(-made.scores[ours], kind="stable")][:_MOST]
        shared = overlaps(made.sides[ours], sides, crowds)
        taken = np.stack([_taken(shared, crowds, least) for least in OVERLAPS])
        in_crowd = (taken >= 0) & np.append(crowds, False)[taken]
        scores.append(made.scores[ours])
        hits.append((taken >= 0) & ~in_crowd)
        counted.append(~in_crowd)
    if not known:
        return known, seen, None
    best = np.argsort(-np.concatenate(scores), kind="stable")
    right, used = np.hstack(hits)[:, best], np.hstack(counted)[:, best]
    precision = [_average(hit[use], known) for hit, use in zip(right, used, strict=True)]
    return known, seen, np.array(precision)


def _taken(shared: Floats, crowds: NDArray[np.bool_], least: float) -> NDArray[np.int64]:
    """The true box that each box takes, best box first; -1 for none. True boxes that are no crowd
    are preferred."""
    free = np.ones(len(crowds), np.bool_)
    taken = np.full(len(shared), -1, np.int64)
    for box, row in enumerate(shared):
        for kind in (~crowds, crowds):
            able = np.flatnonzero(kind & free & (row >= least))
            if len(able):
                # Of equal overlaps COCO takes the last.
                best = able[len(able) - 1 - int(np.argmax(row[able][::-1]))]
                taken[box] = best
                free[best] = crowds[best]
                break
    return taken


def _average(hits: NDArray[np.bool_], known: int) -> float:
    """Average precision of boxes, best first, of `known` true ones."""
    if not len(hits):
        return 0.0
    right = np.cumsum(hits)
    precision = np.maximum.accumulate((right / np.arange(1, len(hits) + 1))[::-1])[::-1]
    places = np.searchsorted(right / known, _RECALLS, side="left")
    return float(np.append(precision, 0.0)[places].mean())
