"""Labels: names of folders, a table, an array; as numbers of classes or as numbers to predict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError, did_you_mean
from toolchain.files.arrays import ARRAY_SUFFIXES, Array, array_file, read_chosen
from toolchain.files.tables import TABLE_SUFFIXES, read_rows
from toolchain.preprocess.samples import expanded

FOLDERS = "folders"
"""The word that asks for the names of folders."""
MOST_CLASSES = 4096
_IN_ARCHIVE = ("labels", "label", "y", "y_test", "targets")
"""Names of the labels in an .npz."""
_FILE = ("file", "filename", "file_name", "path", "image", "sound", "name", "sample")
_LABEL = ("label", "labels", "class", "target", "value", "y")
"""Headings of the first cell, of a table with files and of one without."""


@dataclass(frozen=True)
class Label:
    """A label as it is written: one word, or several numbers. `file`: the file that has it; None
    where labels have the order of the samples. `where` tells errors its place.
    """

    where: str
    words: tuple[str, ...]
    file: Path | None = None


def read_labels(labels: str, data: Sequence[Path]) -> list[Label]:
    """The labels of `data`: by the name of the folder that a file lies in (FOLDERS), of a table
    (file, label; or labels in the order of the samples), of an array in that order.

    Raises InputError, naming file and line, for files that are not there and for no labels at all.
    """
    if labels == FOLDERS:
        return list(_of_folders(data))
    file = Path(labels)
    if file.suffix.lower() in TABLE_SUFFIXES:
        return _of_table(file, data)
    if array_file(file)[0].suffix in ARRAY_SUFFIXES:
        return labels_of_array(read_chosen(file, _IN_ARCHIVE), labels)
    raise InputError(
        f"--labels {labels}: labels are {FOLDERS!r} (each class a folder), a .csv of files and "
        "labels, an .npy or .npz, or for boxes a .csv or COCO's .json"
    )


def labels_of_array(values: Array, where: str) -> list[Label]:
    """The labels in an array of [samples] or [samples, numbers]; floats are numbers to predict.

    Raises InputError for another shape.
    """
    rows: NDArray[Any] = values.reshape(-1, 1) if values.ndim == 1 else values
    if rows.ndim != 2 or not rows.size:
        raise InputError(f"{where}: labels are [samples] or [samples, numbers], not {values.shape}")
    return [
        Label(f"{where}, entry {place}", tuple(map(str, row)))
        for place, row in enumerate(rows.tolist())
    ]


def _of_folders(data: Sequence[Path]) -> Iterator[Label]:
    for folder in data:
        if not folder.is_dir():
            raise InputError(
                f"--labels {FOLDERS}: {folder} is no folder. It holds a folder for each class"
            )
        classes = sorted(one for one in folder.iterdir() if one.is_dir() and one.name[0] != ".")
        if not classes:
            raise InputError(f"{folder} holds no folders; with --labels {FOLDERS} each is a class")
        for one in classes:
            for file in expanded(one):
                yield Label(str(file), (one.name,), file)


def _of_table(file: Path, data: Sequence[Path]) -> list[Label]:
    rows = read_rows(file)
    by_file = max(len(cells) for _, cells in rows) > 1
    if rows[0][1][0].casefold() in (_FILE if by_file else _LABEL):
        rows = rows[1:]
    if not rows:
        raise InputError(f"{file} holds no labels, only a heading")
    if not by_file:
        return [Label(f"{file}, line {number}", tuple(cells)) for number, cells in rows]
    seen: dict[Path, int] = {}
    found = []
    for number, (name, *words) in rows:
        where = f"{file}, line {number}"
        if not words or not all(words):
            raise InputError(f"{where}: {name!r} has no label")
        sample = found_file(name, file, data, where)
        if sample in seen:
            raise InputError(f"{where}: {name} has a label in line {seen[sample]} already")
        seen[sample] = number
        found.append(Label(where, tuple(words), sample))
    return found


def found_file(name: str, table: Path, data: Sequence[Path], where: str) -> Path:
    """The file that a table calls `name`: in a folder of the data, one of its files, or beside the
    table. Raises InputError where it is not there.
    """
    places = [folder / name for folder in data if folder.is_dir()]
    places += [path for path in data if path.name == name]
    places.append(table.parent / name)
    for path in places:
        if path.is_file():
            return path
    folders = ", ".join(str(folder) for folder in data)
    raise InputError(f"{where}: there is no file {name} in {folders}")


def are_numbers(labels: Sequence[Label], elements: int) -> bool:
    """Whether labels are numbers to predict, for an output of so many elements: several for a
    sample, or some that are not whole, or for a single element others than 0 and 1.
    """
    if any(len(label.words) > 1 for label in labels):
        return True
    words = {label.words[0] for label in labels}
    if not all(map(_is_number, words)):
        return False
    if not all(map(_is_whole, words)):
        return True
    return elements == 1 and not {int(word) for word in words} <= {0, 1}


def numbers(labels: Sequence[Label], elements: int) -> NDArray[np.float64]:
    """Labels as numbers, [samples, elements]. Raises InputError for what is no number, and for
    another count of them.
    """
    for label in labels:
        wrong = next((word for word in label.words if not _is_number(word)), None)
        if wrong is not None:
            raise InputError(f"{label.where}: {wrong!r} is no number")
        if len(label.words) != elements:
            raise InputError(
                f"{label.where}: there are {len(label.words)} numbers, and the output has "
                f"{elements}"
            )
    return np.array([[float(word) for word in label.words] for label in labels])


def classes_of(
    words: Sequence[tuple[str, str]], names: Sequence[str], count: int | None
) -> tuple[tuple[str, ...], list[int]]:
    """The names of the classes, and the class of each label; `words`: where one stands, and its
    word. `names`: those of the model, if known; `count`: the classes of its output, if known.

    A word is a class's name; if not all are, all may be its number from 0. Where the model has no
    names, words are names in the order of the alphabet, as training frameworks number folders.
    Raises InputError for an unknown label, a number beyond the classes, and another count of names.
    """
    _check_count(count or len(names))
    different = dict.fromkeys(word for _, word in words)
    if names and all(word in names for word in different):
        places = {name: place for place, name in reversed(list(enumerate(names)))}
        return tuple(names), [places[word] for _, word in words]
    if all(map(_is_whole, different)):
        most = max(int(word) for word in different)
        known = count or len(names) or most + 1
        for where, word in words:
            if not 0 <= int(word) < known:
                raise InputError(f"{where}: there is no class {word}; the output has {known:,}")
        _check_count(known)
        return tuple(names) or tuple(map(str, range(known))), [int(word) for _, word in words]
    if names:
        where, wrong = next((where, word) for where, word in words if word not in names)
        raise InputError(
            f"{where}: the label {wrong!r} is none of the {len(names):,} classes"
            f"{did_you_mean(wrong, names)}"
        )
    ordered = tuple(sorted(different))
    if len(ordered) != count:
        many = "an unknown number" if count is None else f"{count:,}"
        raise InputError(
            f"the labels name {len(ordered):,} classes and the model has {many}: nothing says "
            "which is which",
            remedies=["--classes FILE, with the name of one class on each line"],
        )
    return ordered, [ordered.index(word) for _, word in words]


def _check_count(count: int) -> None:
    if count > MOST_CLASSES:
        raise InputError(f"{count:,} classes: the most is {MOST_CLASSES:,}")


def _is_number(word: str) -> bool:
    try:
        return bool(np.isfinite(float(word)))
    except ValueError:
        return False


def _is_whole(word: str) -> bool:
    digits = word.removeprefix("-")
    return digits.isascii() and digits.isdecimal()
