"""One file, written completely or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from toolchain.errors import InputError
from toolchain.files import _lock

_PART = ".thimble-part"
_OPEN_FILES = tuple(map(Path, ("/dev/stdout", "/dev/stderr", "/dev/fd", "/proc")))


@contextmanager
def replaced_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which becomes `path` if the block ends without an error.

    Until then it lies beside its target, hidden; the next writer there removes what a killed
    process left. A symbolic link stays, and what it points to is replaced. A device or pipe is
    written to directly. A new file's mode follows the user's umask; a replaced one keeps its mode.
    Raises InputError if the file cannot be written.
    """
    try:
        if _takes_a_stream(path):
            with path.open("wb") as stream:
                yield stream
            return
        target = Path(os.path.realpath(path))
        temporary = _lock.beside(target, _PART)
        with os.fdopen(_begun(temporary), "wb") as file:
            try:
                yield file
                file.flush()
                with contextlib.suppress(FileNotFoundError):
                    temporary.chmod(stat.S_IMODE(target.stat().st_mode) & 0o777)
                os.fsync(file.fileno())
                temporary.replace(target)
            except BaseException:
                with contextlib.suppress(OSError):
                    temporary.unlink()
                raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def write_file(path: Path, content: str | bytes) -> None:
    """Replace `path`, completely or not at all; text as UTF-8. Raises as `replaced_file` does."""
    with replaced_file(path) as file:
        data = content if isinstance(content, bytes) else content.encode("utf-8", _UNPRINTABLE)
        file.write(data)


_UNPRINTABLE = "backslashreplace"
"""Names of files need not be UTF-8; what is not is written as \\udc80."""


def _takes_a_stream(path: Path) -> bool:
    """Whether `path` is a device, a pipe or a folder, or stands for an open file."""
    if path.exists() and not path.is_file():
        return True
    return any(path.absolute().is_relative_to(name) for name in _OPEN_FILES)


def _begun(temporary: Path) -> int:
    """A new, locked file; waits while another process writes one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    while True:
        try:
            handle = os.open(temporary, flags, 0o666)
        except FileExistsError:
            _clear(temporary)
            continue
        _lock.hold(handle, wait=True)
        if _lock.is_at(handle, temporary):
            return handle
        os.close(handle)


def _clear(temporary: Path) -> None:
    """Wait for the process that writes `temporary`; remove what is left if it died."""
    with contextlib.suppress(FileNotFoundError):
        handle = _lock.take(temporary, wait=True, make=False)
        try:
            temporary.unlink()
        finally:
            if handle is not None:
                os.close(handle)


def files_digest(files: Iterable[Path]) -> str:
    """SHA-256 over the names and bytes of files in this order, in hexadecimal: the same wherever
    their folders lie.
    """
    found = hashlib.sha256()
    for file in files:
        name, data = f"{file.parent.name}/{file.name}".encode(), file.read_bytes()
        found.update(f"{len(name)} {len(data)} ".encode() + name + data)
    return found.hexdigest()
