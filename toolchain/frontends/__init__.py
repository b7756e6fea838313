"""Front ends: they read a model file and return a Graph.

A package here that has a `FRONT_END` is one. `neutral` and `minimalloc` read files that have sizes
and no operators.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
from functools import cache
from pathlib import Path

from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.foreign import foreign
from toolchain.frontends.front_end import AS_WRITTEN, FrontEnd, Reading
from toolchain.frontends.model_file import read_model_file
from toolchain.ir import Graph, Labels

__all__ = [
    "AS_WRITTEN",
    "FrontEnd",
    "Reading",
    "front_end_of",
    "front_ends",
    "load_model",
    "model_labels",
    "model_sha256",
    "read_model_file",
    "read_whole_model",
]


@cache
def front_ends() -> tuple[FrontEnd, ...]:
    """Every front end, in the alphabetical order of its package."""
    ends = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        if hasattr(loaded, "FRONT_END"):
            ends.append(loaded.FRONT_END)
    return tuple(ends)


def front_end_of(path: Path, data: bytes) -> FrontEnd:
    """The front end for a file: by its content first, by its suffix second."""
    for front_end in front_ends():
        if front_end.recognises(data):
            return front_end
    known = foreign(path, data, by_suffix=False)
    for front_end in front_ends():
        if path.suffix.lower() in front_end.suffixes and not known:
            return front_end
    if known := known or foreign(path, data, by_suffix=True):
        raise InputError(f"{path} is {known}")
    suffixes = ", ".join(suffix for front_end in front_ends() for suffix in front_end.suffixes)
    raise InputError(f"{path} is no model file that Thimble reads ({suffixes})")


def read_whole_model(path: Path, wanted: Reading = AS_WRITTEN) -> bytes:
    """The bytes of a model file, as they stand alone: see `FrontEnd.whole`.

    Raises InputError as `read_model_file` and `FrontEnd.whole` do.
    """
    data = read_model_file(path)
    ends = (front_end for front_end in front_ends() if front_end.recognises(data))
    front_end = next(ends, None)
    return data if front_end is None else front_end.whole(data, path, wanted)


def model_labels(path: str | Path) -> tuple[Labels, ...]:
    """The names of classes in a model file that `load_model` takes."""
    file = Path(path)
    data = read_model_file(file)
    return front_end_of(file, data).labels(data)


def model_sha256(path: str | Path) -> str:
    """SHA-256 of a model file, in hexadecimal; of one with data beside it, that of both in one
    piece. Raises InputError where it cannot be read."""
    return hashlib.sha256(read_whole_model(Path(path))).hexdigest()


def load_model(path: str | Path, wanted: Reading = AS_WRITTEN) -> Graph:
    """Read a model file. `passes.prepare` makes the graph ready to compile.

    Raises InputError for a file that cannot be read or is corrupt, and UnsupportedError, listing
    all of its unsupported operators, for a model that cannot be compiled.
    """
    file = Path(path)
    data = read_whole_model(file, wanted)
    try:
        return front_end_of(file, data).read(data, file, wanted)
    except UnsupportedError as error:
        if not wanted.allow_float or not error.in_float:
            raise
        raise UnsupportedError(error.in_float, operator=error.operator) from error
