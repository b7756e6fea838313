"""Tables of numbers from a user's files: .csv, .tsv."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError
from toolchain.files.bounded import MOST_SAMPLE_BYTES, read_bounded

TABLE_SUFFIXES = (".csv", ".tsv")
_SEPARATORS = ",;\t "
_OF_WORDS = ",;\t"


def read_table(file: Path) -> NDArray[np.float64]:
    """The numbers of a .csv, row by row: separated by commas, semicolons, tabs or spaces; a first
    line without any number is a heading.

    Raises InputError, naming the file and line, for what is no number, and rows of other lengths.
    """
    lines, separator = _opened(file, _SEPARATORS)
    found, width = array("d"), 0
    try:
        for number, cells in enumerate(_rows(lines, separator), 1):
            words = [cell.strip() for cell in cells if cell.strip()]
            if not words or (number == 1 and not any(map(_is_number, words))):
                continue
            wrong = next((word for word in words if not _is_number(word)), None)
            if wrong is not None:
                raise InputError(f"{file}, line {number}: {wrong[:40]!r} is no number")
            width = width or len(words)
            if len(words) != width:
                raise InputError(
                    f"{file}, line {number}: {len(words)} numbers, and {width} in the first row"
                )
            found.extend(float(word) for word in words)
    except csv.Error as error:
        raise InputError(f"{file} is no table of numbers: {error}") from error
    if not found:
        raise InputError(f"{file} holds no numbers")
    return np.frombuffer(found, np.float64).reshape(-1, width)


def read_rows(file: Path) -> list[tuple[int, list[str]]]:
    """The cells of a table of words, without white space around them, with the number of each
    line: separated by commas, semicolons or tabs. Empty lines are left out.

    Raises InputError, naming the file, for what is no text or no table, and for an empty one.
    """
    lines, separator = _opened(file, _OF_WORDS)
    try:
        rows = [
            (number, [cell.strip() for cell in cells])
            for number, cells in enumerate(_rows(lines, separator), 1)
            if any(cell.strip() for cell in cells)
        ]
    except csv.Error as error:
        raise InputError(f"{file} is no table: {error}") from error
    if not rows:
        raise InputError(f"{file} is empty")
    return rows


def _opened(file: Path, separators: str) -> tuple[Iterable[str], str]:
    """The lines of a table, and which of these separates its cells. Raises InputError."""
    content = read_bounded(file, MOST_SAMPLE_BYTES)
    try:
        first = content.decode("utf-8-sig").partition("\n")[0]
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is no text of UTF-8: byte {error.start} is not") from error
    separator = next((s for s in separators if s in first), ",")
    lines = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline=None)
    return lines, separator


def _rows(lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    return csv.reader(lines, delimiter=separator, skipinitialspace=True)


def _is_number(word: str) -> bool:
    try:
        return bool(np.isfinite(float(word)))
    except ValueError:
        return False
