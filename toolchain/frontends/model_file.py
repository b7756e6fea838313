"""A model file as bytes, read with a limit."""

from __future__ import annotations

import os
from pathlib import Path

from toolchain.errors import InputError

LARGEST_FILE_BYTES = 1 << 30

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""How a file begins that Git checks out in place of a large one where Git LFS is not set up."""


def read_model_file(path: Path) -> bytes:
    """The bytes of a model file.

    Raises InputError where it cannot be read, is far too large, or is a pointer of Git LFS.
    """
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
    if data.startswith(_LFS_POINTER):
        raise InputError(
            f"{path} is a pointer of Git LFS, which stands for the model; fetch the model with "
            "`git lfs pull` in its repository"
        )
    return data
