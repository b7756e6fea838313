"""SQLite files of ours: how they are opened, and how one that cannot be read is told."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from toolchain.errors import InputError

WAIT_SECONDS = 30.0
"""For another process that writes."""


def connected(file: Path) -> sqlite3.Connection:
    """A connection in which every statement is a transaction. A text that is no UTF-8 has its bytes
    as halves of characters (PEP 383), so that whoever reads it can name its row.
    """
    connection = sqlite3.connect(file, timeout=WAIT_SECONDS, isolation_level=None)
    connection.text_factory = _text
    return connection


@contextlib.contextmanager
def told(file: Path, what: str, remedy: str) -> Iterator[None]:
    """Raises InputError, naming the file of `what`, for all that SQLite raises, and for a folder
    that cannot be made.

    `remedy`: what helps where the file is damaged.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        raise InputError(f"cannot use the {what} in {file}: {error}") from error
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter: of damaged names of columns
        raise InputError(
            f"{file} is no file of {what}, or is damaged ({error})", remedies=[remedy]
        ) from error
    except OSError as error:
        raise InputError(f"cannot write to {file.parent}: {error.strerror}") from error


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
