"""A TFLite file as objects that can be changed, and back."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from toolchain.errors import InputError
from toolchain.packages import VERIFY, lazy

if TYPE_CHECKING:
    import ai_edge_litert.schema_py_generated as schema
    import flatbuffers.builder
else:
    schema = lazy("ai_edge_litert.schema_py_generated", VERIFY)
    flatbuffers = lazy("flatbuffers")

_IDENTIFIER = b"TFL3"


def object_of(data: bytes) -> Any:
    """The file as objects of TFLite's schema. Raises InputError where it is none."""
    types: Any = schema
    if data[4:8] != _IDENTIFIER:
        raise InputError("this is no TFLite file")
    try:
        return types.ModelT.InitFromObj(types.Model.GetRootAs(data))
    except (struct.error, IndexError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"the file cannot be taken apart: {error}") from error


def bytes_of(model: Any) -> bytes:
    """The file of a model that `object_of` gave."""
    make: Any = flatbuffers.builder.Builder
    builder = make(1 << 16)
    builder.Finish(model.Pack(builder), _IDENTIFIER)
    return bytes(builder.Output())
