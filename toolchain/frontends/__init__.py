"""Front ends: a model file in, a Graph out. Each public module here holds one `FRONT_END`."""

from __future__ import annotations

import importlib
import os
import pkgutil
from functools import cache
from pathlib import Path

from toolchain.errors import InputError
from toolchain.frontends._front_end import FrontEnd
from toolchain.frontends._tflite_host_side import HostSide, host_side
from toolchain.ir import Graph

LARGEST_FILE_BYTES = 1 << 30


@cache
def front_ends() -> tuple[FrontEnd, ...]:
    """Every front end, in the alphabetical order of its file."""
    found = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        if hasattr(loaded, "FRONT_END"):
            found.append(loaded.FRONT_END)
    return tuple(found)


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


def front_end_of(path: Path, data: bytes) -> FrontEnd:
    """The front end for a file, by its content first and by its suffix second."""
    for front_end in front_ends():
        if front_end.recognises(data):
            return front_end
    for front_end in front_ends():
        if path.suffix.lower() in front_end.suffixes:
            return front_end
    suffixes = ", ".join(suffix for front_end in front_ends() for suffix in front_end.suffixes)
    raise InputError(f"{path} is no model file that Thimble reads ({suffixes})")


def left_to_the_caller(path: str | Path) -> tuple[HostSide, ...]:
    """Operators of a model file that are the host's work. Raises as `load_model`."""
    file = Path(path)
    data = read_model_file(file)
    return host_side(data) if front_end_of(file, data).name == "TFLite" else ()


def load_model(path: str | Path) -> Graph:
    """Read a model file as it stands in the file; `passes.prepare` makes it ready to compile.

    Raises InputError for a file that cannot be read or is corrupt, and UnsupportedError, listing
    all of its unsupported operators, for a model that cannot be compiled.
    """
    file = Path(path)
    data = read_model_file(file)
    return front_end_of(file, data).read(data, file)
