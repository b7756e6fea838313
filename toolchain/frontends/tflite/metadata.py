"""Labels in a TFLite file: its metadata name text files, which lie in a zip archive at its end.

Source: `metadata_schema.fbs` of tflite-support (file identifier M001). The slots below are its
fields, in the order of their declaration. Labels do not change results: a file that is damaged, or
too large for labels, counts as absent.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

from toolchain.errors import InputError
from toolchain.files.labels import LARGEST_FILE_BYTES, label_lines
from toolchain.frontends.tflite.flatbuffer import FlatBuffer, Table
from toolchain.ir import Labels

_ENTRY, _IDENTIFIER = "TFLITE_METADATA", b"M001"
_BUFFERS, _METADATA = 4, 6  # of Model, in the schema of models
_SUBGRAPHS, _OUTPUTS = 3, 3  # of ModelMetadata, of SubGraphMetadata
_TENSOR_FILES = 6  # of TensorMetadata
_FILE_NAME, _FILE_TYPE = 0, 2  # of AssociatedFile
_AXIS_LABELS, _VALUE_LABELS = 2, 3  # of AssociatedFileType


def labels(data: bytes) -> tuple[Labels, ...]:
    """The names of classes that the metadata give the outputs of the main subgraph."""
    try:
        return tuple(_labels(data))
    except InputError:
        return ()


def _labels(data: bytes) -> Iterator[Labels]:
    model = FlatBuffer(data).root()
    buffers = model.tables(_BUFFERS)
    for entry in model.tables(_METADATA):
        number = entry.integer(1, "I")
        if entry.string(0) != _ENTRY or number >= len(buffers):
            continue
        content = buffers[number].numbers(0, "uint8")
        stored = b"" if content is None else content.tobytes()
        if stored[4:8] != _IDENTIFIER:
            continue
        for subgraph in FlatBuffer(stored).root().tables(_SUBGRAPHS)[:1]:
            for output, tensor in enumerate(subgraph.tables(_OUTPUTS)):
                yield from _of_output(tensor, output, data)


def _of_output(tensor: Table, output: int, data: bytes) -> Iterator[Labels]:
    for file in tensor.tables(_TENSOR_FILES):
        if file.integer(_FILE_TYPE, "b") not in (_AXIS_LABELS, _VALUE_LABELS):
            continue
        names = label_lines(_text(data, file.string(_FILE_NAME)))
        if names:
            yield Labels(names, output)
            return  # others are the same in other languages


def _text(data: bytes, name: str) -> str:
    """A file of the archive at the end of `data`. Raises InputError if it is damaged, encrypted,
    larger than labels are, or no text.
    """
    import zipfile
    import zlib

    damaged = (zipfile.BadZipFile, zlib.error, OSError, EOFError, LookupError, ArithmeticError)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open(name) as opened:
            text = opened.read(LARGEST_FILE_BYTES + 1)
        if len(text) <= LARGEST_FILE_BYTES and b"\0" not in text:
            return text.decode("utf-8")
    except (*damaged, ValueError, RuntimeError) as error:
        raise InputError(f"the file {name!r} in the model's archive cannot be read") from error
    raise InputError(f"the file {name!r} in the model's archive is no list of labels")
