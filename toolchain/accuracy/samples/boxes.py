"""True boxes of images: a table, or COCO's JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from toolchain.accuracy.metrics.boxes import TrueBoxes
from toolchain.accuracy.samples.labels import classes_of, found_file
from toolchain.errors import InputError
from toolchain.files.records import field_of, read_json
from toolchain.files.tables import TABLE_SUFFIXES, read_rows

_COCO = ".json"
_SIDES = ("ymin", "xmin", "ymax", "xmax")
_COLUMNS = ("file", "label", *_SIDES)
_SIZE = ("height", "width")
_SLACK = 0.5
"""How far beyond the image a side may lie, as a share: some label objects that are cut off."""


@dataclass
class _Image:
    """An image, and its boxes as they are read."""

    where: str
    file: Path
    words: list[tuple[str, str]] = field(default_factory=list)
    sides: list[tuple[float, ...]] = field(default_factory=list)
    crowds: list[bool] = field(default_factory=list)

    def add(
        self, where: str, word: str, sides: tuple[float, ...], *, is_crowd: bool = False
    ) -> None:
        """Add a box, its sides as shares of the image. Raises InputError for one that is none."""
        ymin, xmin, ymax, xmax = sides
        if not (ymin <= ymax and xmin <= xmax):
            raise InputError(f"{where}: a box ends before it begins: {_SIDES} are {sides}")
        if min(sides) < -_SLACK or max(sides) > 1 + _SLACK:
            raise InputError(
                f"{where}: {_SIDES} are {sides}, far beyond the image as shares of it: "
                "pixels need the columns height and width"
            )
        self.words.append((where, word))
        self.sides.append(sides)
        self.crowds.append(is_crowd)


@dataclass(frozen=True)
class LabelledImage:
    """An image file and its true boxes."""

    where: str
    file: Path
    boxes: TrueBoxes


def read_boxes(
    labels: str, data: Sequence[Path], names: Sequence[str], count: int | None
) -> tuple[tuple[str, ...], list[LabelledImage]]:
    """The names of the classes, and the images with their true boxes, of a table or of COCO's
    instances. `names`, `count`: of the model's classes, where known.

    Raises InputError, naming file and line or entry, for files that are not there, boxes that are
    none, and labels that are no class.
    """
    file, given = Path(labels), tuple(names)
    if file.suffix.lower() == _COCO:
        images, categories = _of_coco(file, data)
        if not given and count in (None, len(categories)):
            given = categories
    elif file.suffix.lower() in TABLE_SUFFIXES:
        images = _of_table(file, data)
    else:
        raise InputError(f"--labels {labels}: boxes are in a .csv, or in COCO's .json")
    words = [word for image in images for word in image.words]
    if not words:
        raise InputError(f"{file} holds no boxes")
    found, classes = classes_of(words, given, count)
    left = iter(classes)
    return found, [
        LabelledImage(
            image.where,
            image.file,
            TrueBoxes(
                np.array(image.sides, np.float64).reshape(-1, len(_SIDES)),
                np.array([next(left) for _ in image.words], np.int64),
                np.array(image.crowds, np.bool_),
            ),
        )
        for image in images
    ]


def _of_table(file: Path, data: Sequence[Path]) -> list[_Image]:
    """A row for each box, with a heading. A row with a file alone is an image without boxes."""
    (_, heading), *rows = read_rows(file)
    columns = {name.casefold(): place for place, name in enumerate(heading)}
    missing = [name for name in _COLUMNS if name not in columns]
    if missing:
        raise InputError(
            f"{file} has no column {missing[0]!r}: its first line names the columns, "
            f"{', '.join(_COLUMNS)}, and for pixels {' and '.join(_SIZE)} of the image"
        )
    has_size = all(name in columns for name in _SIZE)
    images: dict[Path, _Image] = {}
    for number, cells in rows:
        where = f"{file}, line {number}"
        row = {name: cells[at] for name, at in columns.items() if at < len(cells)}
        sample = found_file(row.get("file", ""), file, data, where)
        image = images.setdefault(sample, _Image(where, sample))
        if not any(row.get(name) for name in _COLUMNS[1:]):
            continue
        if not row.get("label"):
            raise InputError(f"{where}: a box without a label")
        sides = [_number(row, name, where) for name in _SIDES]
        if has_size:
            height, width = (_number(row, name, where) for name in _SIZE)
            if height <= 0 or width <= 0:
                raise InputError(f"{where}: an image of {height:g} x {width:g}")
            sides = [side / size for side, size in zip(sides, (height, width) * 2, strict=True)]
        image.add(where, row["label"], tuple(sides))
    return list(images.values())


def _number(row: Mapping[str, str], name: str, where: str) -> float:
    try:
        number = float(row.get(name, ""))
    except ValueError:
        number = float("nan")
    if not np.isfinite(number):
        raise InputError(f"{where}: {name} is {row.get(name, '')!r}, no number")
    return number


def _of_coco(file: Path, data: Sequence[Path]) -> tuple[list[_Image], tuple[str, ...]]:
    """Images, and the names of the categories by their ids."""
    content, where = read_json(file), str(file)
    categories: dict[int, str] = {}
    for place, entry in enumerate(field_of(content, "categories", tuple[Any, ...], where)):
        at = f"{where}: categories[{place}]"
        categories[field_of(entry, "id", int, at)] = field_of(entry, "name", str, at)
    images: dict[int, _Image] = {}
    sizes: dict[int, tuple[float, float]] = {}
    for place, entry in enumerate(field_of(content, "images", tuple[Any, ...], where)):
        at = f"{where}: images[{place}]"
        sample = found_file(field_of(entry, "file_name", str, at), file, data, at)
        number = field_of(entry, "id", int, at)
        images[number] = _Image(at, sample)
        sizes[number] = field_of(entry, "height", float, at), field_of(entry, "width", float, at)
        if min(sizes[number]) <= 0:
            raise InputError(f"{at}: the image has no size")
    for place, entry in enumerate(field_of(content, "annotations", tuple[Any, ...], where)):
        at = f"{where}: annotations[{place}]"
        number = field_of(entry, "image_id", int, at)
        category = field_of(entry, "category_id", int, at)
        if number not in images or category not in categories:
            raise InputError(f"{at}: its image or its category is not in the file")
        x, y, width, height = field_of(entry, "bbox", tuple[float, float, float, float], at)
        rows, columns = sizes[number]
        sides = y / rows, x / columns, (y + height) / rows, (x + width) / columns
        is_crowd = bool(field_of(entry, "iscrowd", int, at, 0))
        images[number].add(at, categories[category], sides, is_crowd=is_crowd)
    return list(images.values()), tuple(name for _, name in sorted(categories.items()))
