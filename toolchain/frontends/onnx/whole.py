"""An ONNX file in one piece: data from files beside it inside, its functions written out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolchain.errors import InputError
from toolchain.frontends.onnx.beside import put_inside
from toolchain.frontends.onnx.functions import without_functions
from toolchain.packages import ONNX, lazy

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx", ONNX)

_LOCATION = b"location"
"""The key of each tensor whose data lies in another file."""
_FUNCTIONS = bytes([25 << 3 & 0x7F | 2 | 0x80, 25 >> 4])
"""How a function of a ModelProto begins: field 25, a message."""


def in_one_piece(data: bytes, path: Path) -> bytes:
    """The content of the file at `path`; `data` itself where that is all.

    Raises InputError where another file is missing or does not fit, and for functions that cannot
    be written out.
    """
    if _LOCATION not in data and _FUNCTIONS not in data:
        return data
    try:
        model = onnx.load_model_from_string(data)
    except Exception:  # the reader says what is wrong with it
        return data
    changed = put_inside(model, path)
    try:
        made = without_functions(model)
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from error
    return bytes(made.SerializeToString()) if changed or made is not model else data
