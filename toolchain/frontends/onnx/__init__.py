"""The ONNX front end: `whole` puts a model of several files and functions in one piece, `file`
checks it, `importer` builds the Graph, `operators` says of each operator how it is read, `node`
presents it to its reader.

The modules below are imported when the first ONNX file is read.
"""

from __future__ import annotations

from pathlib import Path

from toolchain.frontends.front_end import AS_WRITTEN, FrontEnd, Reading
from toolchain.ir import Graph, Labels


def _recognises(data: bytes) -> bool:
    """A ModelProto as writers begin it: its field 1, the IR version, a small number."""
    return len(data) > 2 and data[0] == 0x08 and 1 <= data[1] < 0x40


def _read(data: bytes, path: Path, wanted: Reading = AS_WRITTEN) -> Graph:
    from toolchain.frontends.onnx.reader import read

    return read(data, path, wanted)


def _labels(data: bytes) -> tuple[Labels, ...]:
    from toolchain.frontends.onnx.labels import labels

    return labels(data)


def _whole(data: bytes, path: Path, wanted: Reading) -> bytes:
    from toolchain.frontends.onnx.whole import in_one_piece

    return in_one_piece(data, path)


FRONT_END = FrontEnd("ONNX", (".onnx",), _recognises, _read, labels=_labels, whole=_whole)
