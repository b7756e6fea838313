"""Data that large files keep behind the flatbuffer, where its object API does not look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError


def take_in(data: bytes, buffers: Iterable[Any], operators: Iterable[Any]) -> None:
    """Give buffers (`BufferT`) and custom options (`OperatorT`) of the file `data` their bytes.

    A rewritten file has other offsets, so those of `data` would lead to other bytes. As in LiteRT,
    a buffer's own bytes count where it has both. Raises InputError for bytes past the end.
    """
    for buffer in buffers:
        if buffer.data is None and buffer.offset > 1:
            buffer.data = _part(data, buffer.offset, buffer.size)
        buffer.offset = buffer.size = 0
    for op in operators:
        if op.largeCustomOptionsOffset > 1:
            op.customOptions = _part(data, op.largeCustomOptionsOffset, op.largeCustomOptionsSize)
        op.largeCustomOptionsOffset = op.largeCustomOptionsSize = 0


def _part(data: bytes, offset: int, size: int) -> NDArray[np.uint8]:
    if size > len(data) or offset > len(data) - size:
        raise InputError(f"the file is corrupt: {size} bytes at byte {offset} lie past its end")
    return np.frombuffer(data, np.uint8, size, offset)
