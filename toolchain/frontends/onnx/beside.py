"""Tensors of an ONNX file whose data lies in files beside it (`external_data`), put inside.

`torch.onnx.export` writes weights to `model.onnx.data`. Format: onnx/docs/ExternalData.md.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from toolchain.errors import InputError
from toolchain.files.bounded import read_bounded
from toolchain.frontends.model_file import LARGEST_FILE_BYTES
from toolchain.packages import ONNX, lazy

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx", ONNX)


def put_inside(model: onnx.ModelProto, path: Path) -> bool:
    """Put the data inside of `model`, that of the file at `path`; False if all of it was.

    Raises InputError, naming tensor and file, for a file that is missing or too short, and for one
    outside of the model's folder.
    """
    outside = [tensor for tensor in _tensors(model) if is_outside(tensor)]
    files = _Files(path)
    for tensor in outside:
        content = files.content(tensor)
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
        tensor.raw_data = content
    return bool(outside)


def is_outside(tensor: onnx.TensorProto) -> bool:
    """Whether the data of a tensor lies in another file."""
    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data)


def _tensors(model: onnx.ModelProto) -> Iterator[Any]:
    graphs = [model.graph]
    nodes = [node for function in model.functions for node in function.node]
    while graphs or nodes:
        if graphs:
            graph = graphs.pop()
            yield from graph.initializer
            nodes.extend(graph.node)
        while nodes:
            for attribute in nodes.pop().attribute:
                yield from (attribute.t, *attribute.tensors)
                graphs.extend((attribute.g, *attribute.graphs))


class _Files:
    """The files beside a model, each read once."""

    def __init__(self, model: Path) -> None:
        self._model = model
        self._folder = Path(os.path.realpath(model)).parent
        self._read: dict[str, bytes] = {}
        self._bytes = 0

    def content(self, tensor: onnx.TensorProto) -> bytes:
        """The bytes of a tensor."""
        what = f"{self._model}: the tensor {tensor.name!r}"
        entries = {entry.key: entry.value for entry in tensor.external_data}
        if not entries.get("location"):
            raise InputError(f"{what} lies in another file, and its location is not given")
        file = self._file(entries["location"], what)
        begin = _number(entries, "offset", 0, what)
        length = _number(entries, "length", len(file) - begin, what)
        needed = _bytes_of(tensor, what)
        if length != needed or begin + length > len(file):
            raise InputError(
                f"{what} takes {needed:,} bytes; of {entries['location']}, which has "
                f"{len(file):,}, it names {length:,} from {begin:,}: the two files are not of one "
                "export"
            )
        self._bytes += length
        if self._bytes > LARGEST_FILE_BYTES:  # many tensors may name the same bytes
            raise InputError(f"{self._model}: its tensors take more than {LARGEST_FILE_BYTES:,} B")
        return file[begin : begin + length]

    def _file(self, location: str, what: str) -> bytes:
        if location in self._read:
            return self._read[location]
        parts = (*PurePosixPath(location).parts, *PureWindowsPath(location).parts)
        absolute = PurePosixPath(location).is_absolute() or PureWindowsPath(location).anchor
        if absolute or ".." in parts or "\0" in location:
            raise InputError(
                f"{what} names the file {location!r} outside of the model's folder, which is not "
                "read; save the model again with its data beside it or inside "
                "(onnx.save_model(..., save_as_external_data=False))"
            )
        file = self._folder / location
        if not file.is_file():
            raise InputError(
                f"{what} lies in the file {location}, which is not beside the model: put it there, "
                "under this name, or export with the data inside (torch.onnx.export(..., "
                "external_data=False))"
            )
        if not Path(os.path.realpath(file)).is_relative_to(self._folder):
            raise InputError(
                f"{what} lies in {location}, a link that leads out of the model's folder: put the "
                "file itself there"
            )
        self._read[location] = read_bounded(file, LARGEST_FILE_BYTES)
        return self._read[location]


def _number(entries: dict[str, str], key: str, default: int, what: str) -> int:
    text = entries.get(key, str(max(default, 0)))
    if not text.isascii() or not text.isdecimal() or len(text) > len(str(LARGEST_FILE_BYTES)):
        raise InputError(f"{what} has the {key} {text!r} in its file, which is no number of bytes")
    return int(text)


def _bytes_of(tensor: onnx.TensorProto, what: str) -> int:
    """Bytes that the shape takes; elements of four and of two bits are packed."""
    elements = math.prod(tensor.dims)
    try:
        name = onnx.TensorProto.DataType.Name(tensor.data_type)
        wide = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"{what} is of the unknown type {tensor.data_type}") from error
    bits = next((bits for bits in (4, 2) if name.startswith((f"INT{bits}", f"UINT{bits}"))), 0)
    bits = 4 if name.startswith("FLOAT4") else bits
    return -(-elements * bits // 8) if bits else int(elements * wide)
