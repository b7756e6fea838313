"""Complex numbers of a TFLite file: RFFT2D, and what reads them.

No tensor holds complex numbers. RFFT2D, and the operators that give its output another shape, are
remembered; COMPLEX_ABS, REAL and IMAG are read with the inputs of the RFFT2D that they stand
behind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.tflite.file import FileModel, FileOp, FileTensor
from toolchain.frontends.tflite.refusals import COMPLEX

OPERATORS = ("RFFT2D",)
READERS = ("COMPLEX_ABS", "IMAG", "REAL")
_VIEWS = ("EXPAND_DIMS", "RESHAPE", "SQUEEZE")


@dataclass(frozen=True)
class _Spectrum:
    """The inputs of the RFFT2D that made it; whether it has another shape since."""

    inputs: tuple[int, ...]
    reshaped: bool = False


@dataclass(frozen=True)
class Behind:
    """One of `READERS`, with the inputs of the RFFT2D. `reshaped`: its output has another shape."""

    op: FileOp
    reshaped: bool


class Spectra:
    """The complex tensors of a file, by their numbers, while its operators are walked."""

    def __init__(self, model: FileModel) -> None:
        self._outputs = frozenset(model.outputs)
        self._file_tensors: dict[int, _Spectrum] = {}

    def takes(self, op: FileOp) -> bool:
        """Whether `operator` handles it."""
        return op.code in OPERATORS or (bool(op.inputs) and op.inputs[0] in self._file_tensors)

    def operator(self, op: FileOp) -> Behind | None:
        """The operator to read; None for one that is remembered.

        Raises RefusedError for one that computes with complex numbers, and for complex outputs.
        """
        spectrum = self._file_tensors.get(op.inputs[0])
        if spectrum is not None and op.code in READERS:
            return Behind(replace(op, inputs=spectrum.inputs), spectrum.reshaped)
        if spectrum is not None and op.code not in _VIEWS:
            raise RefusedError(*COMPLEX)
        if len(op.outputs) != 1 or (spectrum is None and len(op.inputs) != 2):
            raise op.miscounted()
        if op.outputs[0] in self._outputs:
            raise RefusedError("an output of the model is complex", COMPLEX[1])
        if spectrum is None:
            self._file_tensors[op.outputs[0]] = _Spectrum(op.inputs)
        else:
            self._file_tensors[op.outputs[0]] = replace(spectrum, reshaped=True)
        return None


def plain(file_tensor: FileTensor, name: str) -> FileTensor:
    """The tensor before it is reshaped, as the operator makes it; its shape is open."""
    assert file_tensor.tensor is not None
    return replace(
        file_tensor, name=name, tensor=replace(file_tensor.tensor, name=name), dynamic=True
    )
