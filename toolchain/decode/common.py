"""Parameters of both kinds of detectors: thresholds, and which boxes suppress one another."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.errors import InputError
from toolchain.ops.detection.heads import Suppression

_MOST = 10_000


@dataclass(frozen=True)
class Choosing:
    """score_threshold  a box with a lower score is dropped.
    iou_threshold   so is one that shares more than this with a better one: the area of both over
                    the area that they cover together.
    max_detections  boxes to report at most.
    max_candidates  the best scores, of which boxes are chosen; 0: as many as there are boxes.
    suppression     best-class: a box has its best class, and suppresses boxes of this class;
                    each-class: every class of a box counts by itself; across: a box has its best
                    class, and suppresses boxes of any.
    """

    score_threshold: float = 0.25
    iou_threshold: float = 0.45
    max_detections: int = 20
    max_candidates: int = 0
    suppression: Suppression = Suppression.BEST_CLASS

    def __post_init__(self) -> None:
        """Check the parameters. Raises InputError naming the one beyond its limits."""
        if not 0 <= self.score_threshold <= 1:
            raise InputError(f"--decode: score_threshold={self.score_threshold} is not within 0..1")
        if not 0 < self.iou_threshold <= 1:
            raise InputError(
                f"--decode: iou_threshold={self.iou_threshold} is not above 0 and up to 1"
            )
        if not 1 <= self.max_detections <= _MOST:
            raise InputError(
                f"--decode: max_detections={self.max_detections} is not within 1 to {_MOST}"
            )
        if self.max_candidates < 0:
            raise InputError(f"--decode: max_candidates={self.max_candidates} is below 0")
