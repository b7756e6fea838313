"""The runtimes whose outputs ours are compared with, run on the model file itself."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from toolchain.errors import InputError, MissingToolError
from toolchain.frontends import front_end_of, load_model, read_model_file
from toolchain.frontends._litert_sums import SumsApart, sums_apart
from toolchain.frontends._onnx_trace import (
    OperatorDifferences,
    operator_differences,
    watched,
)
from toolchain.frontends._tflite_host_side import bytes_without_host_side
from toolchain.frontends.onnx import read_traced
from toolchain.ir import Graph
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array

_BEYOND_LITERT = frozenset({"svdf_s8"})
"""Kinds that LiteRT computes with memory that is not theirs."""


__all__ = ["OnnxRuntime", "OperatorDifferences", "Reference", "open_reference"]


class Reference(Protocol):
    """A runtime that has a model loaded.

    `name` says which it is, for the user. `tolerance`: by how many units in the last place an
    output may differ from it and still count as equal.
    """

    @property
    def name(self) -> str: ...

    @property
    def tolerance(self) -> int: ...

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Outputs of one inference, in the file's order, for inputs in the file's order."""

    def restart(self) -> None:
        """Forget what the model keeps from run to run."""


@dataclass
class LiteRT:
    """LiteRT's reference kernels (`OpResolverType.BUILTIN_REF`), one thread.

    `make` gives a fresh interpreter: LiteRT cannot put resource variables back.
    """

    make: Callable[[], Any]
    name: str = "LiteRT's reference kernels"
    tolerance: int = 0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.interpreter = self.make()

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        details = self.interpreter.get_input_details()
        for detail, value in zip(details, inputs, strict=True):
            self.interpreter.set_tensor(detail["index"], value)
        try:
            self.interpreter.invoke()
        except RuntimeError as error:
            raise InputError(f"LiteRT cannot run the model on this input: {error}") from error
        outputs = self.interpreter.get_output_details()
        return tuple(self.interpreter.get_tensor(detail["index"]) for detail in outputs)


@dataclass(frozen=True)
class LiteRTButSums:
    """LiteRT's reference kernels, but for int8 SUM, which is ours: LiteRT's is broken."""

    parts: SumsApart
    name: str = "LiteRT's reference kernels (its int8 SUM, which is broken, by Thimble's)"
    tolerance: int = 0

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return self.parts.run(inputs)

    def restart(self) -> None:
        """It is for models that keep nothing."""


@dataclass
class TfliteMicro:
    """The `tflite-micro` wheel: TFLM's reference kernels, compiled for this machine."""

    make: Callable[[], Any]
    outputs: int
    name: str = "tflite-micro (LiteRT cannot run the file)"
    tolerance: int = 0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.interpreter = self.make()

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        for index, value in enumerate(inputs):
            self.interpreter.set_input(value, index)
        self.interpreter.invoke()
        return tuple(self.interpreter.get_output(index) for index in range(self.outputs))


@dataclass(frozen=True)
class NumpyReference:
    """Our own operator references, where no other runtime takes the file."""

    graph: Graph
    states: dict[str, Array] = field(default_factory=dict)
    name: str = "Thimble's NumPy references (no other runtime here takes the file)"
    tolerance: int = 0

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return interpret(self.graph, inputs, self.states)

    def restart(self) -> None:
        self.states.clear()


@dataclass(frozen=True)
class OnnxRuntime:
    """ONNX Runtime on the processor, one thread, its optimiser off.

    The optimiser drops roundings to int8 that the file asks for (between a convolution and a SiLU,
    say): what it then computes is several units off from what the file means.
    """

    session: Any
    data: bytes
    name: str = "ONNX Runtime, its optimiser off"
    tolerance: int = 1

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        names = [declared.name for declared in self.session.get_inputs()]
        try:
            return tuple(self.session.run(None, dict(zip(names, inputs, strict=True))))
        except Exception as error:  # onnxruntime's exceptions share no base but this
            raise InputError(f"ONNX Runtime cannot run the model on this input: {error}") from error

    def restart(self) -> None:
        """An ONNX model keeps nothing."""

    def by_operators(self, inputs: Sequence[Array]) -> OperatorDifferences:
        """Every operator of the model, fed what ONNX Runtime gives its inputs."""
        graph, stored = read_traced(self.data, Path("model.onnx"))
        session = _session(watched(self.data, tuple(stored)))
        return operator_differences(graph, stored, session, inputs)


def open_reference(path: Path) -> Reference:
    """The runtime to compare a model file with.

    TFLite files: LiteRT (but for its SUM); where it refuses the file, tflite-micro if that is
    installed, else our own interpreter. Raises as `load_model` does for a file that cannot be read.
    """
    data = read_model_file(path)
    front_end = front_end_of(path, data)
    if front_end.name == "TFLite":
        return _open_tflite(path, data)
    if front_end.name == "ONNX":
        return _open_onnx(data)
    raise InputError(f"{path}: there is no reference runtime for {front_end.name} files")


def _module(name: str) -> Any:
    """An installed module, imported only when it is needed; None where it is absent."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _open_tflite(path: Path, data: bytes) -> Reference:
    graph = load_model(path)
    data = bytes_without_host_side(data)
    litert = _module("ai_edge_litert.interpreter")
    if litert is None:
        raise MissingToolError("LiteRT is missing: pip install ai-edge-litert")

    def make(model: bytes = data) -> Any:
        interpreter = litert.Interpreter(
            model_content=model,
            num_threads=1,
            experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF,
        )
        interpreter.allocate_tensors()
        return interpreter

    if not any(op.kind in _BEYOND_LITERT for op in graph.ops):
        with contextlib.suppress(RuntimeError, ValueError):
            if not any(op.kind == "sum" for op in graph.ops):
                return LiteRT(make)
            parts = sums_apart(data, graph, make)
            if parts is not None:
                return LiteRTButSums(parts)
    return _tflite_micro(data, graph) or NumpyReference(graph)


def _tflite_micro(data: bytes, graph: Graph) -> Reference | None:
    runtime = _module("tflite_micro.python.tflite_micro.runtime")
    if runtime is None:
        return None
    try:
        return TfliteMicro(lambda: runtime.Interpreter.from_bytes(data), len(graph.outputs))
    except (RuntimeError, ValueError):
        return None


def _open_onnx(data: bytes) -> Reference:
    return OnnxRuntime(_session(data), data)


def _session(data: bytes) -> Any:
    onnxruntime = _module("onnxruntime")
    if onnxruntime is None:
        raise MissingToolError("ONNX Runtime is missing: pip install onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions share no base but this
        raise InputError(f"ONNX Runtime refuses the model: {error}") from error
