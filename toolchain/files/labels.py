"""Names of classes: text with one a line."""

from __future__ import annotations

from pathlib import Path

from toolchain.errors import InputError
from toolchain.files.bounded import read_bounded

LARGEST_FILE_BYTES = 1 << 20


def label_lines(text: str) -> tuple[str, ...]:
    """The lines without the white space around them; empty ones at the end do not count."""
    lines = [line.strip() for line in text.removeprefix("\ufeff").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines)


def read_labels(file: Path) -> tuple[str, ...]:
    """The labels in a file. Raises InputError if it cannot be read, is no text of UTF-8, is larger
    than a megabyte, or has no labels.
    """
    data = read_bounded(file, LARGEST_FILE_BYTES)
    try:
        labels = label_lines(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is no text of UTF-8: byte {error.start} is not") from error
    if "\0" in "".join(labels):
        raise InputError(f"{file} is no text: it has a byte of 0")
    if not labels:
        raise InputError(f"{file} has no labels: it has to have the name of one class on each line")
    return labels
