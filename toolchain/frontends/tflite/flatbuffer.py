"""Reads an unverified flatbuffer: every offset is checked before it is followed.

Layout: https://flatbuffers.dev/internals. A table starts with a signed offset back to its vtable:
uint16 vtable size, uint16 table size, then one uint16 per field, its offset in the table or 0.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError

_U16, _U32, _I32 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<i")


class FlatBuffer:
    """Bytes, and a limit on what is read, so that overlapping parts cannot be read without end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._budget = 16 * len(data) + 65536

    def root(self) -> Table:
        return Table(self, self.number(_U32, 0))

    def number(self, form: struct.Struct, position: int) -> int:
        """One number. Raises InputError outside the file."""
        if not 0 <= position <= len(self.data) - form.size:
            raise InputError(f"the file is corrupt: it points to byte {position}, past its end")
        value: int = form.unpack_from(self.data, position)[0]
        return value

    def spend(self, size_bytes: int) -> None:
        """Count `size_bytes` as read."""
        self._budget -= size_bytes
        if self._budget < 0:
            raise InputError("the file is corrupt: its parts overlap one another many times over")

    def vector(self, position: int, item_bytes: int) -> tuple[int, int]:
        """Number of items of the vector at `position`, and the position of the first."""
        count = self.number(_U32, position)
        first = position + _U32.size
        if count * item_bytes > len(self.data) - first:
            raise InputError(
                f"the file is corrupt: {count} items at byte {first} do not fit into it"
            )
        self.spend(_U32.size + count * item_bytes)
        return count, first

    def follow(self, position: int) -> int:
        """The position that the offset stored at `position` refers to."""
        return position + self.number(_U32, position)


class Table:
    """One table; fields by slot number, in the order in which the schema declares them."""

    def __init__(self, file: FlatBuffer, position: int) -> None:
        self.file = file
        self.position = position
        self._vtable = position - file.number(_I32, position)
        self._vtable_bytes = file.number(_U16, self._vtable)
        table_bytes = file.number(_U16, self._vtable + 2)
        file.spend(self._vtable_bytes + table_bytes)
        self._table_bytes = table_bytes
        if (
            self._vtable_bytes < 4
            or self._vtable + self._vtable_bytes > len(file.data)
            or position + table_bytes > len(file.data)
        ):
            raise InputError(f"the file is corrupt: a broken table at byte {position}")

    def _field(self, slot: int, size_bytes: int) -> int | None:
        """Position of a field that is `size_bytes` long; None where it is absent."""
        entry = 4 + 2 * slot
        if entry + 2 > self._vtable_bytes:
            return None
        offset = self.file.number(_U16, self._vtable + entry)
        if offset == 0:
            return None
        if offset + size_bytes > self._table_bytes:
            raise InputError(f"the file is corrupt: a broken table at byte {self.position}")
        return self.position + offset

    def has(self, slot: int) -> bool:
        return self._field(slot, 0) is not None

    def integer(self, slot: int, form: str, default: int = 0) -> int:
        """An integer field; `form` is its letter in the struct module."""
        return int(self.scalar(slot, form, default))

    def scalar(self, slot: int, form: str, default: float) -> float:
        """A field that is a number or a bool, as `integer`."""
        packed = struct.Struct("<" + form)
        position = self._field(slot, packed.size)
        return default if position is None else self.file.number(packed, position)

    def table(self, slot: int) -> Table | None:
        position = self._field(slot, _U32.size)
        return None if position is None else Table(self.file, self.file.follow(position))

    def tables(self, slot: int) -> tuple[Table, ...]:
        """A vector of tables; empty if the field is absent."""
        position = self._field(slot, _U32.size)
        if position is None:
            return ()
        count, first = self.file.vector(self.file.follow(position), _U32.size)
        places = range(first, first + count * _U32.size, _U32.size)
        return tuple(Table(self.file, self.file.follow(place)) for place in places)

    def numbers(self, slot: int, dtype: str) -> NDArray[Any] | None:
        """A vector of scalars as a read-only view of the file; None if the field is absent."""
        position = self._field(slot, _U32.size)
        if position is None:
            return None
        kind = np.dtype(dtype).newbyteorder("<")
        count, first = self.file.vector(self.file.follow(position), kind.itemsize)
        return np.frombuffer(self.file.data, kind, count, first)

    def string(self, slot: int) -> str:
        """A string; bytes that are not UTF-8 are replaced."""
        position = self._field(slot, _U32.size)
        if position is None:
            return ""
        count, first = self.file.vector(self.file.follow(position), 1)
        return self.file.data[first : first + count].decode("utf-8", errors="replace")
