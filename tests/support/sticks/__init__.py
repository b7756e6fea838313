"""An external delegate of our own, compiled here: `delegate.c` says what its sticks do."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_FLAGS = ("-std=c11", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror")
_SOURCE = Path(__file__).parent / "delegate.c"


def compile_delegate(folder: Path, *options: str) -> Path:
    """The shared library, under the name by which libedgetpu's is loaded. Skips without gcc."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc, which compiles the delegate, is not installed")
    library = folder / "libedgetpu.so.1"
    subprocess.run(
        ["gcc", *_FLAGS, *options, str(_SOURCE), "-o", str(library)],
        check=True,
        capture_output=True,
    )
    return library
