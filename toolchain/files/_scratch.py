"""Folders for the duration of a command; the next command removes those of killed ones."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolchain.errors import InputError
from toolchain.files import _lock

_PREFIX = "thimble-"
_LOCK = ".thimble-lock"


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Path]:
    """An empty folder (except for a hidden lock) that is removed afterwards.

    It is in `parent`, which exists, or in the system's temporary folder. Raises InputError if it
    cannot be created.
    """
    base = parent or Path(tempfile.gettempdir())
    try:
        _sweep(base)
        folder, lock = _locked(base)
    except OSError as error:
        raise InputError(f"cannot write to {base}: {error.strerror or error}") from error
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            _remove(folder)
        os.close(lock)


def is_scratch(folder: Path) -> bool:
    """Whether a folder is, or lies in, one of `scratch_folder`, and so is removed soon."""
    holders = (folder, *folder.parents)
    return any(one.name.startswith(_PREFIX) and (one / _LOCK).exists() for one in holders)


def _locked(base: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        with contextlib.suppress(FileNotFoundError):
            lock = _lock.take(folder / _LOCK)
            if lock is not None:
                return folder, lock


def _sweep(base: Path) -> None:
    """Remove this user's folders here that no process holds. Each has a lock; others stay."""
    for folder in base.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or not _lock.is_ours(found):
                continue
            lock = _lock.take(folder / _LOCK, make=False)
            if lock is not None:
                _remove(folder)
                os.close(lock)


def _remove(folder: Path) -> None:
    """The lock last, so that what a kill leaves is still known as ours."""
    for path in folder.iterdir():
        if path.name != _LOCK:
            shutil.rmtree(path, ignore_errors=True)
            with contextlib.suppress(OSError):
                path.unlink()
    shutil.rmtree(folder, ignore_errors=True)
