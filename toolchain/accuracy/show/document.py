"""The figures as JSON: what `thimble accuracy --json` prints, and the page shows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from toolchain.accuracy.metrics.boxes import Detection
from toolchain.accuracy.metrics.classes import Classification
from toolchain.accuracy.metrics.keywords import Keywords
from toolchain.accuracy.metrics.numbers import Regression
from toolchain.accuracy.run.result import Accuracy, Measured
from toolchain.accuracy.run.tasks import Figures


def accuracy_json(result: Accuracy) -> dict[str, Any]:
    """The fields of `thimble accuracy --json`: the figures of the runtime nearest to the product,
    then all figures of each runtime."""
    fields: dict[str, Any] = {
        "model": result.model,
        "board": result.board,
        "ran_on": result.ran_on,
        "task": result.task.value,
        "samples": result.samples,
        "inferences": result.inferences,
        "judged": result.final.name,
        **_scalars(result.final),
        **_losses(result),
    }
    if result.agreement is not None:
        fields |= {
            "elements": result.agreement.elements,
            "differing": result.agreement.differing,
            "max_difference": result.agreement.max_difference,
            "same_predictions": result.agreement.same_predictions,
        }
    return fields | {"runtimes": {one.name: _measured(one) for one in result.columns}}


def _measured(measured: Measured) -> dict[str, Any]:
    """All figures of one runtime."""
    return {"title": measured.title, **_scalars(measured), **_lists(measured.figures)}


def _scalars(measured: Measured) -> dict[str, Any]:
    """The figures that are one number each; null where there is none."""
    figures, found = measured.figures, dict[str, Any]()
    if isinstance(figures, Classification):
        low, high = figures.interval
        found = {
            "correct": figures.correct,
            "accuracy": figures.accuracy,
            "accuracy_low": low,
            "accuracy_high": high,
            "top_5": figures.top_5,
            "macro_f1": figures.macro_f1,
        }
    elif isinstance(figures, Regression):
        found = {
            "mae": figures.mae,
            "rmse": figures.rmse,
            "r2": figures.r2,
            "largest_error": figures.largest_error,
        }
    elif isinstance(figures, Detection):
        found = {
            "map": figures.map,
            "map_50": figures.map_50,
            "map_75": figures.map_75,
            "boxes": figures.boxes,
            "found": figures.found,
        }
    return found | ({} if measured.keywords is None else _keywords(measured.keywords))


def _keywords(keywords: Keywords) -> dict[str, Any]:
    return {
        "threshold": keywords.threshold,
        "hold_off_seconds": keywords.hold_off,
        "hours": keywords.hours,
        "false_accepts": keywords.false_accepts,
        "false_accepts_per_hour": keywords.false_accepts_per_hour,
        "false_reject_rate": keywords.false_reject_rate,
        "accepts_by_keyword": dict(zip(keywords.names, keywords.accepts, strict=True)),
    }


def _lists(figures: Figures) -> dict[str, Any]:
    """The figures of each class, or of each number."""
    if isinstance(figures, Classification):
        return {
            "classes": [asdict(one) for one in figures.classes],
            "confusions": [asdict(one) for one in figures.confusions],
            "confusion_matrix": figures.matrix.tolist(),
        }
    if isinstance(figures, Regression):
        return {"numbers": [asdict(one) for one in figures.numbers]}
    return {"classes": [asdict(one) for one in figures.classes]}


def _losses(result: Accuracy) -> dict[str, float]:
    """The loss from the float model on; nothing without that model."""
    before = None if result.floating is None else result.floating.figures
    after = result.final.figures
    if result.floating is result.final:
        return {}
    if isinstance(before, Classification) and isinstance(after, Classification):
        return {"accuracy_loss": before.accuracy - after.accuracy}
    maps = [one.map for one in (before, after) if isinstance(one, Detection)]
    match maps:
        case [float(whole), float(left)]:
            return {"map_loss": whole - left}
    return {}
