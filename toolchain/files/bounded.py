"""Files of users, read whole with a limit: none fills the memory, and none is read without end."""

from __future__ import annotations

import os
from pathlib import Path

from toolchain.errors import InputError
from toolchain.files._names import did_you_mean_beside

MOST_SAMPLE_BYTES = 1 << 28
"""Limit for an image, a sound and a table of numbers."""


def read_bounded(file: Path, most_bytes: int) -> bytes:
    """The bytes of a file. Raises InputError, naming it, where it cannot be read or has more than
    `most_bytes`: by its size before anything is read, and by what is read of a device or a pipe.
    """
    try:
        with file.open("rb") as source:
            size = os.fstat(source.fileno()).st_size  # a device says 0, and may never end
            data = b"" if size > most_bytes else source.read(most_bytes + 1)
    except FileNotFoundError as error:
        raise InputError(f"there is no file {file}{did_you_mean_beside(file)}") from error
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error
    if max(size, len(data)) > most_bytes:
        raise InputError(f"{file} is larger than {most_bytes:,} bytes, the most that is read here")
    return data
