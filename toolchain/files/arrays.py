"""Arrays from a user's files: .npy, .npz."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError

Array = NDArray[np.generic]
ARRAY_SUFFIXES = (".npy", ".npz")
LARGEST_BYTES = 1 << 31
"""Limit for one array, and for one file of raw bytes."""
MOST_ELEMENTS = 1 << 29
"""Limit for all data of a command: as float64, in which they are scaled, these are 4 GiB."""
_LARGEST_HEADER_BYTES = 10_000
_SHOWN = 8
_MOST_DIMENSIONS = 32
_NPY, _ZIP = b"\x93NUMPY", b"PK"
_ENCRYPTED = 0x1
_HEADERS: Mapping[tuple[int, int], tuple[Callable[[Any, int], Any], int]] = MappingProxyType(
    {
        (1, 0): (np.lib.format.read_array_header_1_0, 2),
        (2, 0): (np.lib.format.read_array_header_2_0, 4),
    }
)
"""By version: NumPy's reader of the header, and the bytes that hold its length."""


Check = Callable[[tuple[int, ...]], None]
"""Raises InputError for a shape that nobody has use for."""


def _any_shape(shape: tuple[int, ...]) -> None:
    pass


def read_array(file: Path, check: Check = _any_shape) -> Array:
    """The array of a .npy file, or the first one of an .npz.

    Raises InputError, naming file and entry, for anything but an array of numbers, for more than
    LARGEST_BYTES or MOST_ELEMENTS, and as `check` does for the shape: before the data are read or
    unpacked.
    """
    if file.suffix == ".npz":
        return next(iter(_entries(file, None, check).values()))
    with _opened(file) as source:
        _expect(source, file, _NPY, "an .npy array")
        return _array(source, str(file), source.seek(0, io.SEEK_END), check)


def read_named_arrays(file: Path, checks: Mapping[str, Check]) -> dict[str, Array]:
    """Arrays of an .npz by these names, with the check of each; for one name, the only array
    whatever its name.

    Raises as `read_array` does, and InputError if a name is missing, or all together say that they
    are larger than one array may be.
    """
    return _entries(file, checks, _any_shape)


def array_file(given: Path) -> tuple[Path, str]:
    """The file, and the name of one of its arrays, that `FILE.npz:NAME` stands for; '' without."""
    file, _, name = str(given).rpartition(":")
    return (Path(file), name) if file.endswith(".npz") else (given, "")


def read_chosen(given: Path, usual: Sequence[str]) -> Array:
    """The array of an .npy, or one of an .npz: that of `FILE.npz:NAME`, else the first of the
    names `usual` that it has, else its only one. Raises as `read_named_arrays` does.
    """
    file, name = array_file(given)
    if file.suffix != ".npz":
        return read_array(file)
    if not name:
        with _archive(file) as archive:
            names = [entry.removesuffix(".npy") for entry in archive.namelist()]
        name = next((one for one in usual if one in names), usual[0])
    return read_named_arrays(file, {name: _any_shape})[name]


def _entries(file: Path, checks: Mapping[str, Check] | None, first: Check) -> dict[str, Array]:
    """These entries; for None the first one, with the check `first`."""
    with _archive(file) as archive:
        entries = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        names = None if checks is None else list(checks)
        chosen = _chosen(file, list(entries), names)
        declared = sum(entries[entry].file_size for entry in chosen.values())
        if declared > LARGEST_BYTES:
            raise InputError(
                f"{file} says that it unpacks to {declared:,} bytes; the most is "
                f"{LARGEST_BYTES:,}: use several files"
            )
        by_name = checks or dict.fromkeys(chosen, first)
        return {
            name: _entry(archive, entries[entry], file, by_name[name])
            for name, entry in chosen.items()
        }


@contextmanager
def _archive(file: Path) -> Iterator[zipfile.ZipFile]:
    """An .npz to read. Raises InputError where that fails, then or later."""
    with _opened(file) as source:
        _expect(source, file, _ZIP, "an .npz of arrays")
        try:
            with zipfile.ZipFile(source) as archive:
                yield archive
        except (InputError, MemoryError):
            raise
        except Exception as error:  # zipfile and its decoders raise a dozen kinds
            raise InputError(f"{file} is not an .npz of arrays: {_said(error)}") from error


def _chosen(file: Path, entries: list[str], names: Sequence[str] | None) -> dict[str, str]:
    """Which entry each name stands for."""
    if not entries:
        raise InputError(f"{file} holds no array")
    if names is None:
        return {entries[0]: entries[0]}
    missing = [name for name in names if name not in entries]
    if missing and len(entries) == len(names) == 1:
        return {names[0]: entries[0]}
    if missing:
        raise InputError(f"{file} has no array {missing[0]!r}; it has: {_few(entries)}")
    return {name: name for name in names}


def _few(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, file: Path, check: Check) -> Array:
    where = f"{file}, entry {info.filename!r}"
    if info.flag_bits & _ENCRYPTED:
        raise InputError(f"{where}: it is encrypted")
    try:
        with archive.open(info) as source:
            return _array(source, where, info.file_size, check)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # zipfile and its decoders raise a dozen kinds
        raise InputError(f"{where}: it cannot be unpacked: {_said(error)}") from error


def _array(source: IO[bytes], where: str, size_bytes: int, check: Check) -> Array:
    """One array. `size_bytes`: what `source` holds, as far as is known before it is read."""
    if source.seekable():
        source.seek(0)
    shape, fortran, dtype = _header(source, where)
    if dtype.kind not in "biuf":
        raise InputError(f"{where} holds {dtype}: an array of numbers is needed")
    count = math.prod(shape)
    data_bytes = count * dtype.itemsize
    if data_bytes > LARGEST_BYTES:
        raise InputError(
            f"{where} says that it holds {data_bytes:,} bytes of data; the most is "
            f"{LARGEST_BYTES:,}: use several files"
        )
    if count > MOST_ELEMENTS:
        raise InputError(
            f"{where} says that it holds {count:,} numbers; the most is {MOST_ELEMENTS:,}: use "
            "several files"
        )
    if data_bytes > size_bytes:
        raise InputError(
            f"{where} says that it holds {list(shape)} of {dtype}, {data_bytes:,} bytes, and has "
            f"{size_bytes:,} in all"
        )
    check(shape)
    data = source.read(data_bytes)
    if len(data) != data_bytes:
        raise InputError(f"{where} ends after {len(data):,} of {data_bytes:,} bytes of data")
    return np.frombuffer(data, dtype, count).reshape(shape, order="F" if fortran else "C")


def _header(source: IO[bytes], where: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(source)
        if version not in _HEADERS:
            raise ValueError(f"version {version} is unknown")
        read, length_bytes = _HEADERS[version]
        length = source.read(length_bytes)
        size = int.from_bytes(length, "little")
        if size > _LARGEST_HEADER_BYTES:  # NumPy looks after it has read them
            raise ValueError(f"it says that its header has {size:,} bytes")
        header = io.BytesIO(length + source.read(size))
        shape, fortran, dtype = read(header, _LARGEST_HEADER_BYTES)
        if not all(type(n) is int and 0 <= n < 1 << 62 for n in shape):
            raise ValueError(f"the shape is {shape!r}")
        if len(shape) > _MOST_DIMENSIONS:
            raise ValueError(f"the shape has {len(shape)} dimensions")
        return shape, fortran, dtype
    except (InputError, OSError, zipfile.BadZipFile):
        raise
    except Exception as error:  # whatever Python's own parser makes of a header
        raise InputError(f"{where} has no .npy header that can be read: {_said(error)}") from error


def _said(error: BaseException) -> str:
    """The first line of what an error says, not too long; its type where it says nothing."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    """A file to read. Raises InputError where that fails, then or later."""
    try:
        with file.open("rb") as source:
            yield source
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error


def _expect(source: IO[bytes], file: Path, magic: bytes, what: str) -> None:
    """Raises InputError where the file begins otherwise; what it seems to be is said."""
    begins = source.read(len(_NPY))
    source.seek(0)
    if begins.startswith(magic):
        return
    if not begins:
        found = "it is empty"
    elif begins.startswith(_NPY):
        found = "it is an .npy array; name it so"
    elif begins.startswith(_ZIP):
        found = "it is a zip file; name it .npz"
    else:
        found = f"it begins with {begins!r}"
    raise InputError(f"{file} is not {what}: {found}")
