"""Options of custom operators: a FlexBuffer that is a map of names to numbers.

The format is that of FlatBuffers' `flexbuffers.h`. A value of another type is left out. No number
in a file is used as an index before it is checked.
"""

from __future__ import annotations

import struct
from types import MappingProxyType, SimpleNamespace

import numpy as np
from numpy.typing import NDArray

_INT, _UINT, _FLOAT, _MAP, _BOOL = 1, 2, 3, 9, 26
_WIDTHS = (1, 2, 4, 8)
_FLOATS = MappingProxyType({2: "<e", 4: "<f", 8: "<d"})
_MOST_VALUES = 64
_LONGEST_NAME = 64


class _BrokenError(ValueError):
    pass


def read_flexbuffer(content: NDArray[np.generic] | None) -> SimpleNamespace | None:
    """The map's numbers and booleans by name; None if `content` is no such map."""
    data = b"" if content is None else content.tobytes()
    try:
        return _root(data)
    except _BrokenError:
        return None


def _root(data: bytes) -> SimpleNamespace:
    if len(data) < 3:
        raise _BrokenError
    width, packed = data[-1], data[-2]
    if width not in _WIDTHS or packed >> 2 != _MAP:
        raise _BrokenError
    values = _behind(data, len(data) - 2 - width, width)
    width = _WIDTHS[packed & 3]
    count = _unsigned(data, values - width, width)
    keys = _behind(data, values - 3 * width, width)
    key_width = _unsigned(data, values - 2 * width, width)
    if count > _MOST_VALUES or key_width not in _WIDTHS:
        raise _BrokenError
    options = SimpleNamespace()
    for index in range(count):
        kind = _unsigned(data, values + count * width + index, 1) >> 2
        at = values + index * width
        if kind in (_INT, _UINT, _FLOAT, _BOOL):
            raw = _bytes(data, at, width)
            name = _name(data, _behind(data, keys + index * key_width, key_width))
            setattr(options, name, _number(kind, raw))
    return options


def _number(kind: int, raw: bytes) -> int | float:
    if kind != _FLOAT:
        return int.from_bytes(raw, "little", signed=kind == _INT)
    if len(raw) not in _FLOATS:
        raise _BrokenError
    return float(struct.unpack(_FLOATS[len(raw)], raw)[0])


def _bytes(data: bytes, at: int, count: int) -> bytes:
    if not 0 <= at <= len(data) - count:
        raise _BrokenError
    return data[at : at + count]


def _unsigned(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(_bytes(data, at, width), "little")


def _behind(data: bytes, at: int, width: int) -> int:
    """The position to which the offset at `at` points: so many bytes back."""
    return at - _unsigned(data, at, width)


def _name(data: bytes, at: int) -> str:
    end = data.find(b"\0", max(at, 0), max(at, 0) + _LONGEST_NAME)
    name = data[at:end].decode("ascii", "replace") if 0 <= at <= end else ""
    if not name.isidentifier():
        raise _BrokenError
    return name
