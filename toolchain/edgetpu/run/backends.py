"""Backends that run the stages: Google's runner, libedgetpu's delegate, or LiteRT on the processor.

Only the processor has been tried. The other two were checked against their sources
(`docs/edgetpu-known.md`), and have not run on hardware.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from toolchain.device.patience import RUN_SECONDS
from toolchain.device.session import Session, open_board
from toolchain.edgetpu.run import coral, interpreters
from toolchain.edgetpu.run.folder import FIRMWARE, ModelStages, PipelineFolder, StageFile
from toolchain.edgetpu.run.runner import Limit, Tensors
from toolchain.errors import InputError, MissingToolError
from toolchain.ops.spec import Array
from toolchain.packages import EDGETPU, lazy

if TYPE_CHECKING:
    import ai_edge_litert.schema_py_generated as schema_module
else:
    schema_module = lazy("ai_edge_litert.schema_py_generated", EDGETPU)

schema: Any = schema_module
BACKENDS = ("auto", "pycoral", "delegate", "cpu")
_LITERT = "ai_edge_litert.interpreter"


@dataclass(frozen=True)
class Choice:
    """A backend, and why it was chosen. `module`: the module that has its interpreter."""

    name: str
    why: str
    module: str = _LITERT


def _interpreter_module(name: str = _LITERT) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingToolError(f"{name} cannot be loaded: {error}") from error


def load_delegate(module: str, device: str) -> Any:
    """libedgetpu's delegate for a stick (`usb:0`, `pci:1`, '' for any), for an interpreter.

    Raises MissingToolError if the library or the stick is missing.
    """
    loaded = _interpreter_module(module)
    options = {"device": device} if device else {}
    return interpreters.opened(
        lambda: loaded.load_delegate(interpreters.library(), options), device
    )


HOST = "host"
"""The device of a stage that runs on the processor beside the sticks."""


def devices_of(text: str | None, folder: PipelineFolder) -> tuple[str, ...]:
    """The stick of each stage; `HOST` for the stage that is on the host, else the board's name.

    Raises InputError if there are more or fewer sticks than stages that need one.
    """
    devices = (
        [f"usb:{k}" for k in range(folder.sticks)]
        if text is None
        else [part.strip() for part in text.split(",")]
    )
    stages = folder.models[0].stages
    if len(devices) != folder.sticks:
        places = [f"{k} ({s.board or HOST})" for k, s in enumerate(stages) if not s.on_stick]
        beside = f" beside stage {', '.join(places)}" if places else ""
        raise InputError(
            f"{len(devices)} devices for {folder.sticks} stages{beside}: name one for each stage"
        )
    sticks = iter(devices)
    return tuple(next(sticks) if s.on_stick else s.board or HOST for s in stages)


def choose(folder: PipelineFolder, wanted: str, devices: Sequence[str]) -> Choice:
    """The backend to use. Raises MissingToolError if the requested one is not available."""
    if wanted not in BACKENDS:
        raise InputError(f"there is no backend {wanted!r}; there are {', '.join(BACKENDS)}")
    if wanted == "cpu":
        return Choice("cpu", "asked for")
    if not folder.sticks:
        return Choice("cpu", "the plan uses no stick")
    reasons = []
    for name in ("pycoral", "delegate") if wanted == "auto" else (wanted,):
        try:
            return _try(name, folder, _first_stick(folder, devices))
        except MissingToolError as error:
            if wanted != "auto":
                raise
            reasons.append(f"{name}: {str(error).split(';')[0].split(': ')[0]}")
    return Choice("cpu", "no sticks: " + "; ".join(reasons))


def _first_stick(folder: PipelineFolder, devices: Sequence[str]) -> str:
    stages = folder.models[0].stages
    return next(d for d, stage in zip(devices, stages, strict=True) if stage.on_stick)


def _try(name: str, folder: PipelineFolder, device: str) -> Choice:
    """A backend on sticks, tried in a child process. Raises MissingToolError where it fails."""
    if name == "pycoral":
        if folder.sticks < folder.stages:
            raise MissingToolError("libcoral runs every stage on a stick; here, one is on none")
        coral.check_fits(folder, output_types(folder))
        coral.pycoral_runner()
    _compiled(folder)
    interpreters.wake()
    on_stick = next(stage for stage in folder.models[0].stages if stage.on_stick)
    first = folder.path / on_stick.compiled_file
    if name == "pycoral":
        interpreters.check_pycoral(first, device)
        return Choice(name, "found")
    kind = interpreters.fitting(first, device)
    return Choice(name, f"found, with {kind.name} {kind.version}", kind.module)


def _compiled(folder: PipelineFolder) -> None:
    """Raises MissingToolError where a stage has not been through edgetpu_compiler."""
    for model in folder.models:
        for stage in model.stages:
            if stage.on_stick and not (folder.path / stage.compiled_file).is_file():
                raise MissingToolError(
                    f"{folder.path / stage.compiled_file} is missing: run edgetpu_compiler on "
                    f"{stage.file} (`thimble edgetpu split` does where it is installed)"
                )


class LiteRTStage:
    """One stage of every model of the pipeline, in turn, on LiteRT."""

    def __init__(
        self,
        models: Sequence[tuple[ModelStages, Path]],
        stage: int,
        delegates: Sequence[Any],
        device: str,
        fast: bool = False,
        module: str = _LITERT,
        limit_seconds: float = RUN_SECONDS,
    ) -> None:
        """`limit_seconds`: of a frame that runs on the processor."""
        make = _interpreter_module(module).Interpreter
        options: dict[str, Any] = {"num_threads": 1}
        if delegates:
            options["experimental_delegates"] = list(delegates)
        elif not fast:
            resolver = _interpreter_module(module).OpResolverType.BUILTIN_REF
            options["experimental_op_resolver_type"] = resolver
        self.name = device
        self._device = device if delegates else ""
        self.limit = Limit(coral.SILENCE_S, of_stick=True) if delegates else Limit(limit_seconds)
        self._parts: list[_Part] = []
        for model, path in models:
            try:
                interpreter = make(model_path=str(path), **options)
                interpreter.allocate_tensors()
            except (RuntimeError, ValueError) as error:
                raise InputError(f"LiteRT refuses {path}: {error}") from error
            own, prefix = model.stages[stage], prefix_of(model, len(models))
            ends = (
                (own.inputs, interpreter.get_input_details()),
                (own.outputs, interpreter.get_output_details()),
            )
            inputs, outputs = (
                tuple(
                    (prefix + name, detail["index"])
                    for name, detail in zip(names, details, strict=True)
                )
                for names, details in ends
            )
            self._parts.append(_Part(interpreter, inputs, outputs))
        self.inputs = tuple(name for part in self._parts for name, _ in part.inputs)
        self.outputs = tuple(name for part in self._parts for name, _ in part.outputs)

    def invoke(self, tensors: Tensors) -> tuple[dict[str, Array], float]:
        """Run one frame. Raises RuntimeError naming the stick if it no longer answers."""
        results: dict[str, Array] = {}
        moved = 0.0
        for part in self._parts:
            begin = time.perf_counter()
            for name, index in part.inputs:
                part.interpreter.set_tensor(index, tensors[name])
            ready = time.perf_counter()
            try:
                part.interpreter.invoke()
            except RuntimeError as error:
                if not self._device:
                    raise
                raise RuntimeError(
                    f"the stick {self._device} does not answer ({error}); was it unplugged?"
                ) from error
            done = time.perf_counter()
            for name, index in part.outputs:
                results[name] = part.interpreter.get_tensor(index)
            moved += ready - begin + time.perf_counter() - done
        return results, 1e3 * moved


@dataclass(frozen=True)
class _Part:
    interpreter: Any
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]


def prefix_of(model: ModelStages, models: int) -> str:
    """The prefix that keeps the tensors of several models apart."""
    return f"{model.name}/" if models > 1 else ""


class BoardStage:
    """The stage on a microcontroller, over its serial line. `ends`: its file's outputs."""

    limit = None

    def __init__(self, stage: StageFile, session: Session, ends: Sequence[End]) -> None:
        self.name = stage.board
        self.inputs, self.outputs = stage.inputs, stage.outputs
        self._session, self._ends = session, ends

    def invoke(self, tensors: Tensors) -> tuple[dict[str, Array], float]:
        """Run one frame. Raises LinkError if the board does not answer, InputError where an
        emulated one does not within the session's limit.
        """
        run = self._session.run([tensors[name] for name in self.inputs])
        values = zip(self.outputs, run.outputs.values(), self._ends, strict=True)
        return {name: value.reshape(shape) for name, value, (shape, _) in values}, 0.0

    def close(self) -> None:
        self._session.close()


def open_stages(
    folder: PipelineFolder,
    choice: Choice,
    devices: Sequence[str],
    fast: bool = False,
    port: str | None = None,
    limit_seconds: float = RUN_SECONDS,
) -> tuple[LiteRTStage | BoardStage, ...]:
    """The stages, loaded. Raises MissingToolError or InputError if that fails, LinkError where the
    board of a stage does not answer.

    Beside sticks, a stage on the host has LiteRT's optimised kernels, as its plan assumes.
    `limit_seconds`: of a frame on the host or on the board.
    """
    result: list[LiteRTStage | BoardStage] = []
    on_sticks = choice.name == "delegate"
    for stage in range(folder.stages):
        first = folder.models[0].stages[stage]
        if first.board:
            continue
        on_stick = on_sticks and first.on_stick
        delegates = [load_delegate(choice.module, devices[stage])] if on_stick else []
        files = [
            (
                model,
                folder.path
                / (model.stages[stage].compiled_file if delegates else model.stages[stage].file),
            )
            for model in folder.models
        ]
        name = devices[stage] if delegates else files[0][1].name
        quick = fast or on_sticks
        result.append(
            LiteRTStage(files, stage, delegates, name, quick, choice.module, limit_seconds)
        )
    if folder.mcu is not None:  # last, so that nothing that fails leaves its line open
        first = folder.models[0].stages[folder.mcu]
        session = open_board(folder.path / FIRMWARE, port, limit_seconds=limit_seconds)
        result.insert(folder.mcu, BoardStage(first, session, ends_of(folder.path / first.file)[1]))
    return tuple(result)


Input = tuple[str, tuple[int, ...], Any]
"""Name, shape and NumPy type of an input."""


def inputs_of(path: Path, model: ModelStages) -> list[Input]:
    """The inputs of one model whose files are in a folder, `path`."""
    ends, _ = ends_of(path / model.stages[0].file)
    return [(name, *end) for name, end in zip(model.inputs, ends, strict=True)]


def input_details(folder: PipelineFolder) -> list[Input]:
    """Every input of a frame."""
    return [
        (prefix_of(model, len(folder.models)) + name, shape, dtype)
        for model in folder.models
        for name, shape, dtype in inputs_of(folder.path, model)
    ]


def output_types(folder: PipelineFolder) -> dict[str, Any]:
    """NumPy type of every output, by the names of `output_names`."""
    ends = (end for m in folder.models for end in ends_of(folder.path / m.stages[-1].file)[1])
    return {name: dtype for name, (_, dtype) in zip(output_names(folder), ends, strict=True)}


End = tuple[tuple[int, ...], Any]


def ends_of(path: Path) -> tuple[list[End], list[End]]:
    """Shape and NumPy type of every input and output of a stage, of which we hold the digest.

    Read without an interpreter: a process that has loaded one may be unable to load another
    ("InterpreterWrapper is already registered": google-ai-edge/LiteRT#8272, pycoral#60).
    """
    graph = schema.Model.GetRootAs(path.read_bytes()).Subgraphs(0)

    def end(index: int) -> End:
        tensor = graph.Tensors(index)
        kind = next(k for k, v in vars(schema.TensorType).items() if v == tensor.Type())
        try:
            dtype = np.dtype(kind.lower())
        except TypeError:
            raise InputError(f"{path}: {kind} is no type that a frame can bring") from None
        return tuple(int(tensor.Shape(axis)) for axis in range(tensor.ShapeLength())), dtype

    inputs = [end(graph.Inputs(k)) for k in range(graph.InputsLength())]
    return inputs, [end(graph.Outputs(k)) for k in range(graph.OutputsLength())]


def output_names(folder: PipelineFolder) -> tuple[str, ...]:
    """The outputs of every model, in the order of a frame's results."""
    return tuple(
        prefix_of(model, len(folder.models)) + name
        for model in folder.models
        for name in model.outputs
    )
