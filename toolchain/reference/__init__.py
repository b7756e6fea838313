"""Reference runtimes, whose outputs ours are compared with, run on the model file itself.

`judges.py` says which runtime judges which operator. Each runs in a process of its own
(`process.py`), so that a crash becomes an error message and does not end Thimble.
"""

from __future__ import annotations

from pathlib import Path

from toolchain.errors import InputError
from toolchain.frontends import AS_WRITTEN, Reading, front_end_of, load_model, read_whole_model
from toolchain.reference.onnx_runtime import OnnxRuntime, open_onnx_runtime
from toolchain.reference.operator_differences import OperatorDifferences
from toolchain.reference.process import RuntimeProcess
from toolchain.reference.reference import (
    FLOAT_TOLERANCE,
    SMALLEST,
    Judge,
    NumpyReference,
    Reference,
)
from toolchain.reference.tflite import TfliteReference, open_tflite

__all__ = [
    "FLOAT_TOLERANCE",
    "SMALLEST",
    "Judge",
    "NumpyReference",
    "OnnxRuntime",
    "OperatorDifferences",
    "Reference",
    "RuntimeProcess",
    "TfliteReference",
    "open_reference",
]


def open_reference(
    path: Path, process: RuntimeProcess | None = None, wanted: Reading = AS_WRITTEN
) -> Reference:
    """The runtime to compare a model file with, or several that share its operators.

    Thimble's own interpreter is used only where no runtime takes an operator. `process`: one to use
    instead of a new one. `wanted`: how the model was read. Raises as `load_model` does for a file
    that cannot be read; InputError where a runtime crashes on it; MissingToolError.
    """
    data = read_whole_model(path, wanted)
    process = process or RuntimeProcess()
    front_end = front_end_of(path, data)
    if front_end.name == "TFLite":
        return open_tflite(data, load_model(path, wanted), process)
    if front_end.name == "ONNX":
        return open_onnx_runtime(data, process, wanted)
    raise InputError(f"{path}: there is no reference runtime for {front_end.name} files")
