"""The entries of a folder, and the list of the files that Thimble wrote there: the path of each,
with slashes, and its SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from toolchain.errors import InputError
from toolchain.files.formats import FOLDER
from toolchain.files.records import field_of, read_json, record
from toolchain.version import __version__

MARKER = ".thimble.json"
"""The file that is the list, in the folder."""
_SHOWN = 5


@dataclass(frozen=True)
class _Entry:
    sha256: str


@dataclass(frozen=True)
class _List:
    format: Literal["thimble-output"]
    version: int
    tool: str
    files: Mapping[str, _Entry]


def write_list(folder: Path) -> None:
    """List the files in `folder`."""
    files = {name: {"sha256": content(folder / name)} for name in entries(folder)}
    data = {"format": FOLDER.name, "version": FOLDER.version, "tool": __version__, "files": files}
    (folder / MARKER).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def read_list(folder: Path) -> dict[str, str] | None:
    """SHA-256 of each listed file; None where there is no list. InputError if it is damaged, or of
    a version that is not read.
    """
    file = folder / MARKER
    if file.is_symlink() or not file.is_file():
        return None
    with _damaged(file):
        data = read_json(file)
        version = field_of(data, "version", int, MARKER)
    FOLDER.check(version, str(folder))
    with _damaged(file):
        listed = record(_List, data, MARKER).files
        for name in listed:
            parts = name.split("/")
            if not all(parts) or {".", ".."} & set(parts) or "\0" in name or name == MARKER:
                raise InputError(f"{name!r} is no file in the folder")
    return {name: entry.sha256 for name, entry in listed.items()}


@contextmanager
def _damaged(file: Path) -> Iterator[None]:
    """An InputError of the list becomes one that says what to do."""
    try:
        yield
    except InputError as error:
        raise InputError(
            f"{file}, the list of what thimble wrote, is damaged ({error}): move what you need, "
            "delete the folder"
        ) from error


def list_of(folder: Path) -> tuple[Path, dict[str, str] | None]:
    """The folder that was written whole, `folder` or the one above it, and its list."""
    for root in (folder, folder.parent):
        listed = read_list(root)
        if listed is not None and (root == folder or folder.name in parents(listed)):
            return root, listed
    return folder, None


def is_ours(name: str, listed: Mapping[str, str]) -> bool:
    """Whether an entry is listed, the list itself, or a folder that has lost its listed files."""
    return name == MARKER or name in listed or (name[-1] == "/" and name[:-1] in parents(listed))


def entries(folder: Path, prefix: str = "") -> list[str]:
    """Every file below, and every empty folder with a slash after it; links are not followed."""
    found = []
    for path in sorted(folder.iterdir()):
        inside = path.is_dir() and not path.is_symlink()
        found += entries(path, f"{prefix}{path.name}/") if inside else [prefix + path.name]
    return found or [prefix][: len(prefix)]


def parents(names: Iterable[str]) -> set[str]:
    """The folders in which files with these paths lie, `.` among them."""
    return {parent.as_posix() for name in names for parent in PurePosixPath(name).parents}


def content(path: Path) -> object:
    """A value that is equal for equal entries: a file's SHA-256; None where nothing is there."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISREG(found.st_mode):
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    if stat.S_ISLNK(found.st_mode):
        return path.readlink()
    return stat.S_ISDIR(found.st_mode) or (found.st_dev, found.st_ino)


def few(names: Sequence[str]) -> str:
    """The first names and the number of the others, for an error."""
    shown = ", ".join(n if n.isprintable() else ascii(n) for n in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
