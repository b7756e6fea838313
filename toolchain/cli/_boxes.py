"""Boxes that a detector found, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.markup import escape
from rich.table import Table

_SIDES = 4


@dataclass(frozen=True)
class Box:
    """`run` counts inferences. Sides are shares of the image's."""

    run: int
    label: int
    name: str
    score: float
    ymin: float
    xmin: float
    ymax: float
    xmax: float


def boxes_in(
    outputs: Mapping[str, NDArray[Any]], names: Mapping[str, str], labels: Sequence[str]
) -> list[Box]:
    """The boxes of all inferences in `outputs`; `names` are those of the outputs
    (`CompiledModel.boxes`)."""
    counts = outputs[names["count"]].reshape(-1).astype(int)
    sides = outputs[names["boxes"]].reshape(len(counts), -1, _SIDES)
    classes, scores = (outputs[names[n]].reshape(len(counts), -1) for n in ("classes", "scores"))
    boxes = []
    for run, count in enumerate(counts):
        for place in range(min(max(count, 0), scores.shape[1])):
            label = int(classes[run, place])
            name = labels[label] if 0 <= label < len(labels) else ""
            around = (float(np.float64(side)) for side in sides[run, place])
            boxes.append(Box(run, label, name, float(scores[run, place]), *around))
    return boxes


def box_table(boxes: Sequence[Box]) -> Table:
    """One row for each box."""
    table = Table(header_style="bold")
    several = any(box.run for box in boxes)
    columns = ("class", "score", "ymin", "xmin", "ymax", "xmax")
    for column in ("run", *columns) if several else columns:
        table.add_column(column, justify="left" if column == "class" else "right")
    for box in boxes:
        numbers = (box.score, box.ymin, box.xmin, box.ymax, box.xmax)
        cells = [escape(box.name or str(box.label)), *(f"{number:.4g}" for number in numbers)]
        table.add_row(*([str(box.run)] if several else []), *cells)
    return table
