"""Reading of a model file, with a limit on its size."""

from __future__ import annotations

from pathlib import Path

from toolchain.errors import InputError
from toolchain.files.bounded import read_bounded

LARGEST_FILE_BYTES = 1 << 30

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""How a file begins that Git checks out in place of a large one where Git LFS is not set up."""


def read_model_file(path: Path) -> bytes:
    """The bytes of a model file.

    Raises InputError where it cannot be read, is far too large, or is a pointer of Git LFS.
    """
    data = read_bounded(path, LARGEST_FILE_BYTES)
    if data.startswith(_LFS_POINTER):
        raise InputError(
            f"{path} is a pointer of Git LFS, which stands for the model; fetch the model with "
            "`git lfs pull` in its repository"
        )
    return data
