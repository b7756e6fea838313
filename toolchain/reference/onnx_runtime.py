"""ONNX Runtime as the reference of an ONNX file, whole or operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain.errors import InputError
from toolchain.frontends import AS_WRITTEN, Reading
from toolchain.frontends.onnx.qonnx import in_standard_operators
from toolchain.frontends.onnx.reader import read_traced
from toolchain.ops.spec import Array
from toolchain.packages import ONNX, VERIFY, lazy
from toolchain.reference.operator_differences import (
    OperatorDifferences,
    operator_differences,
    watched,
)
from toolchain.reference.process import (
    NotInstalledError,
    OpenModel,
    RefusedError,
    Runtime,
    RuntimeProcess,
    open_model,
)
from toolchain.reference.reference import Judge

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx", ONNX)


@dataclass(frozen=True)
class OnnxRuntime:
    """ONNX Runtime on the processor, one thread, its optimiser off.

    The optimiser drops roundings to int8 that the file asks for, for example between a convolution
    and a SiLU. Its result is then several units from what the file means.
    """

    model: OpenModel
    data: bytes
    operators: tuple[str, ...] = ()
    name: str = Runtime.ONNX_RUNTIME.title
    tolerance: int = 1
    not_independent: str = ""
    wanted: Reading = AS_WRITTEN

    @property
    def judges(self) -> tuple[Judge, ...]:
        return (Judge(self.name, self.operators, "it defines what a quantised ONNX file means"),)

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return self.model.run(inputs)

    def restart(self) -> None:
        """Does nothing: an ONNX model keeps no state."""

    def by_operators(self, inputs: Sequence[Array], run: int) -> OperatorDifferences:
        """Compare every operator of the model, given ONNX Runtime's values of its inputs.

        `run`: its number, to tell it from others.
        """
        graph, stored = read_traced(self.data, Path("model.onnx"), self.wanted)
        own = {name for node in onnx.load_from_string(self.data).graph.node for name in node.output}
        stored = {name: place for name, place in stored.items() if name in own}
        names = tuple(dict.fromkeys((*stored, *graph.outputs)))
        traced = _open(self.model.process, watched(self.data, names)).run(inputs)
        given = dict(zip(names, traced, strict=True))
        return operator_differences(graph, stored, given, inputs, run)


def open_onnx_runtime(
    data: bytes, process: RuntimeProcess, wanted: Reading = AS_WRITTEN
) -> OnnxRuntime:
    """The reference of an ONNX file, which gets QONNX's operators in ONNX's own.

    Raises InputError where ONNX Runtime refuses the file, and MissingToolError where it is not
    installed.
    """
    data = in_standard_operators(data)
    model = _open(process, data)
    operators = tuple(node.op_type for node in onnx.load_from_string(data).graph.node)
    return OnnxRuntime(model, data, operators, wanted=wanted)


def _open(process: RuntimeProcess, data: bytes) -> OpenModel:
    try:
        return open_model(process, Runtime.ONNX_RUNTIME, data)
    except NotInstalledError as error:
        raise VERIFY.lacks("onnxruntime") from error
    except RefusedError as error:
        raise InputError(f"ONNX Runtime refuses the model: {error}") from error
