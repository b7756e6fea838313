"""Lock files, held by an open descriptor, so that the system releases them when a process dies."""

from __future__ import annotations

import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_LONGEST_NAME = 255


def beside(target: Path, suffix: str) -> Path:
    """A hidden path beside `target` with its name, shortened if that would be too long."""
    name = target.name.encode("utf-8", "surrogateescape")
    kept = name[: _LONGEST_NAME - len(suffix) - 1].decode("utf-8", "surrogateescape")
    return target.with_name(f".{kept}{suffix}")


def take(path: Path, *, wait: bool = False, make: bool = True) -> int | None:
    """Lock the file at `path`. Returns its open descriptor, or None if another process has it.

    The lock ends when the descriptor is closed or the process ends. Raises OSError if the file
    cannot be opened or created.
    """
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    while True:
        handle = os.open(path, flags | (os.O_CREAT if make else 0), 0o666)
        try:
            if not hold(handle, wait=wait):
                os.close(handle)
                return None
            if is_at(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its holder removed it meanwhile


def hold(handle: int, *, wait: bool) -> bool:
    """Lock an open file. False if another process has it; True where nothing can be locked."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def is_ours(found: os.stat_result) -> bool:
    """Whether what was looked at belongs to this user; yes where files have no such owner."""
    user = getattr(os, "geteuid", None)  # not on Windows
    return user is None or found.st_uid == user()


def is_at(handle: int, path: Path) -> bool:
    """Whether an open file is still at `path`."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False
