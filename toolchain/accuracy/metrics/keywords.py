"""Keyword spotting: how often sound without a keyword is taken for one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

_SECONDS = 3600.0
_BACKGROUND = frozenset({"silence", "unknown", "background", "noise", "other", "negative"})


@dataclass(frozen=True)
class Keywords:
    """The accepts of a detector of keywords at a threshold.

    names          of the keywords
    threshold      a score from which on a keyword is accepted, in the unit of the output
    hold_off       seconds after an accept in which none follows
    hours          of the sound without keywords
    accepts        in that sound, by keyword
    samples        labelled samples of keywords; `rejected`: those whose keyword is not accepted
    """

    names: tuple[str, ...]
    threshold: float
    hold_off: float
    hours: float
    accepts: tuple[int, ...]
    samples: int
    rejected: int

    @property
    def false_accepts(self) -> int:
        return sum(self.accepts)

    @property
    def false_accepts_per_hour(self) -> float:
        return self.false_accepts / self.hours

    @property
    def false_reject_rate(self) -> float | None:
        """The share of labelled keywords that are not accepted; None without any."""
        return self.rejected / self.samples if self.samples else None


def keyword_classes(names: Sequence[str]) -> tuple[int, ...]:
    """The classes that are keywords: all but those named silence, unknown, noise and the like."""
    return tuple(
        place
        for place, name in enumerate(names)
        if not _BACKGROUND.issuperset(re.split(r"[\W_]+", name.strip("_ ").casefold()))
    )


@dataclass
class KeywordTally:
    """Counts accepts as they come. `classes`: those of the keywords among the scores."""

    names: tuple[str, ...]
    classes: tuple[int, ...]
    threshold: float
    hold_off: float
    seconds: float = 0.0
    samples: int = 0
    rejected: int = 0
    accepts: list[int] = field(init=False)
    _quiet_until: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.accepts = [0] * len(self.classes)

    def accepted(self, scores: NDArray[np.float64]) -> int | None:
        """The place in `classes` of the keyword that these scores, [classes], are taken for: the
        largest of all classes, at the threshold or above; None where that is no keyword."""
        best = int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))
        if best not in self.classes or not scores[best] >= self.threshold:
            return None
        return self.classes.index(best)

    def begin(self, seconds: float) -> None:
        """A recording without keywords, of so many seconds, begins."""
        self.seconds += seconds
        self._quiet_until = 0.0

    def hear(self, at: float, scores: NDArray[np.float64]) -> None:
        """Scores of a window that ends `at` so many seconds of the recording."""
        keyword = self.accepted(scores)
        if keyword is not None and at >= self._quiet_until:
            self.accepts[keyword] += 1
            self._quiet_until = at + self.hold_off

    def say(self, truth: int, scores: NDArray[np.float64]) -> None:
        """Scores of a labelled sample of the class `truth`."""
        if truth in self.classes:
            self.samples += 1
            keyword = self.accepted(scores)
            self.rejected += int(keyword is None or self.classes[keyword] != truth)

    def result(self) -> Keywords:
        names = tuple(self.names[place] for place in self.classes)
        hours = self.seconds / _SECONDS
        counts = tuple(self.accepts)
        return Keywords(
            names, self.threshold, self.hold_off, hours, counts, self.samples, self.rejected
        )
