"""A model file as bytes, read with a limit."""

from __future__ import annotations

import os
from pathlib import Path

from toolchain.errors import InputError

LARGEST_FILE_BYTES = 1 << 30


def read_model_file(path: Path) -> bytes:
    """The bytes of a model file. Raises InputError where it cannot be read or is far too large."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size  # a device says 0, and may never end
            data = b"" if size > LARGEST_FILE_BYTES else file.read(LARGEST_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if max(size, len(data)) > LARGEST_FILE_BYTES:
        raise InputError(f"{path} is larger than {LARGEST_FILE_BYTES} bytes")
    return data
