"""What runs the stages: Google's runner, libedgetpu's delegate, or LiteRT on the processor.

Only the processor was tried by Thimble's makers; the other two follow the documented interfaces of
pycoral 2.0 and libedgetpu and are not yet tried on hardware.
"""

from __future__ import annotations

import importlib
import importlib.util
import platform
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.edgetpu.folder import ModelStages, PipelineFolder
from toolchain.edgetpu.runner import Tensors
from toolchain.errors import InputError, MissingToolError
from toolchain.ops.spec import Array

BACKENDS = ("auto", "pycoral", "delegate", "cpu")
_RUNNER_MODULE = "pycoral.pipeline.pipelined_model_runner"
_GET_PYCORAL = (
    "install Google's pycoral 2.0 from https://github.com/google-coral/pycoral/releases "
    "(Python 3.6 to 3.9; community builds exist for newer ones)"
)
_LIBRARIES = {
    "Linux": "libedgetpu.so.1",
    "Darwin": "libedgetpu.1.dylib",
    "Windows": "edgetpu.dll",
}


@dataclass(frozen=True)
class Choice:
    """A backend, and why it is that one."""

    name: str
    why: str


def _litert() -> Any:
    try:
        return importlib.import_module("ai_edge_litert.interpreter")
    except ImportError as error:
        raise MissingToolError("LiteRT is missing: pip install ai-edge-litert") from error


def pycoral_runner() -> Any:
    """Google's class PipelinedModelRunner. Raises MissingToolError where it is not installed."""
    if importlib.util.find_spec("pycoral") is None:
        raise MissingToolError(f"pycoral is not installed; {_GET_PYCORAL}")
    try:
        return importlib.import_module(_RUNNER_MODULE).PipelinedModelRunner
    except (ImportError, AttributeError) as error:
        raise MissingToolError(
            "the package 'pycoral' that is installed has no pipeline.pipelined_model_runner: the "
            "one on PyPI is another project of that name. pip uninstall pycoral, then "
            f"{_GET_PYCORAL}"
        ) from error


def load_delegate(device: str) -> Any:
    """libedgetpu's delegate for a stick (`usb:0`, `pci:1`, '' for any).

    Raises MissingToolError where the library or the stick is missing.
    """
    library = _LIBRARIES.get(platform.system(), "libedgetpu.so.1")
    try:
        return _litert().load_delegate(library, {"device": device} if device else {})
    except OSError as error:
        raise MissingToolError(
            f"{library} is not installed: get libedgetpu1-std from Coral's package repository "
            "(https://coral.ai/docs/accelerator/get-started)"
        ) from error
    except ValueError as error:
        raise MissingToolError(
            f"no Edge TPU answers as {device or 'any device'}: is the stick plugged in?"
        ) from error


def devices_of(text: str | None, stages: int) -> tuple[str, ...]:
    """The stick of each stage. Raises InputError where their number is another."""
    devices = (
        tuple(f"usb:{k}" for k in range(stages))
        if text is None
        else tuple(part.strip() for part in text.split(","))
    )
    if len(devices) != stages:
        raise InputError(f"{len(devices)} devices for {stages} stages: name one for each stage")
    return devices


def choose(folder: PipelineFolder, wanted: str, devices: Sequence[str]) -> Choice:
    """The backend to use. Raises MissingToolError where the one asked for cannot be had."""
    if wanted not in BACKENDS:
        raise InputError(f"there is no backend {wanted!r}; there are {', '.join(BACKENDS)}")
    if wanted == "cpu":
        return Choice("cpu", "asked for")
    reasons = []
    for name in ("pycoral", "delegate") if wanted == "auto" else (wanted,):
        try:
            if name == "pycoral":
                if len(folder.models) > 1:
                    raise MissingToolError("PipelinedModelRunner takes one model at a time")
                pycoral_runner()
            _compiled(folder)
            load_delegate(devices[0])
        except MissingToolError as error:
            if wanted != "auto":
                raise
            reasons.append(f"{name}: {str(error).split(';')[0].split(': ')[0]}")
            continue
        return Choice(name, "found")
    return Choice("cpu", "no sticks: " + "; ".join(reasons))


def _compiled(folder: PipelineFolder) -> None:
    """Raises MissingToolError where a stage has not been through edgetpu_compiler."""
    for model in folder.models:
        for stage in model.stages:
            if not (folder.path / stage.compiled_file).is_file():
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
    ) -> None:
        litert = _litert()
        resolver = (
            litert.OpResolverType.BUILTIN
            if fast or delegates
            else (litert.OpResolverType.BUILTIN_REF)
        )
        self.name = device
        self._device = device if delegates else ""
        self._parts: list[_Part] = []
        for model, path in models:
            try:
                interpreter = litert.Interpreter(
                    model_path=str(path),
                    num_threads=1,
                    experimental_delegates=list(delegates) or None,
                    experimental_op_resolver_type=resolver,
                )
                interpreter.allocate_tensors()
            except (RuntimeError, ValueError) as error:
                raise InputError(f"LiteRT refuses {path}: {error}") from error
            prefix = prefix_of(model, len(models))
            self._parts.append(
                _Part(
                    interpreter,
                    tuple(
                        (prefix + name, detail["index"])
                        for name, detail in zip(
                            model.stages[stage].inputs, interpreter.get_input_details(), strict=True
                        )
                    ),
                    tuple(
                        (prefix + name, detail["index"])
                        for name, detail in zip(
                            model.stages[stage].outputs,
                            interpreter.get_output_details(),
                            strict=True,
                        )
                    ),
                )
            )
        self.inputs = tuple(name for part in self._parts for name, _ in part.inputs)
        self.outputs = tuple(name for part in self._parts for name, _ in part.outputs)

    def invoke(self, tensors: Tensors) -> tuple[dict[str, Array], float]:
        """Raises RuntimeError naming the stick where it no longer answers."""
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
    """What keeps the tensors of several models apart."""
    return f"{model.name}/" if models > 1 else ""


def open_stages(
    folder: PipelineFolder, backend: str, devices: Sequence[str], fast: bool = False
) -> tuple[LiteRTStage, ...]:
    """The stages, loaded. Raises MissingToolError or InputError where that fails."""
    result = []
    for stage in range(folder.stages):
        delegates = [load_delegate(devices[stage])] if backend == "delegate" else []
        files = [
            (
                model,
                folder.path
                / (model.stages[stage].compiled_file if delegates else model.stages[stage].file),
            )
            for model in folder.models
        ]
        name = devices[stage] if delegates else files[0][1].name
        result.append(LiteRTStage(files, stage, delegates, name, fast))
    return tuple(result)


def input_details(folder: PipelineFolder) -> list[tuple[str, tuple[int, ...], Any]]:
    """Name, shape and NumPy type of everything a frame must bring."""
    litert = _litert()
    found = []
    for model in folder.models:
        interpreter = litert.Interpreter(model_path=str(folder.path / model.stages[0].file))
        prefix = prefix_of(model, len(folder.models))
        for name, detail in zip(model.inputs, interpreter.get_input_details(), strict=True):
            shape = tuple(int(n) for n in detail["shape"])
            found.append((prefix + name, shape, detail["dtype"]))
    return found


def output_names(folder: PipelineFolder) -> tuple[str, ...]:
    return tuple(
        prefix_of(model, len(folder.models)) + name
        for model in folder.models
        for name in model.outputs
    )


class PycoralPipeline:
    """Google's PipelinedModelRunner over the compiled stages; not yet tried on hardware."""

    def __init__(self, folder: PipelineFolder, devices: Sequence[str]) -> None:
        runner = pycoral_runner()
        edgetpu = importlib.import_module("pycoral.utils.edgetpu")
        model = folder.models[0]
        interpreters = []
        for stage, device in zip(model.stages, devices, strict=True):
            interpreter = edgetpu.make_interpreter(str(folder.path / stage.compiled_file), device)
            interpreter.allocate_tensors()
            interpreters.append(interpreter)
        self._inputs = model.inputs
        self._runner = runner(interpreters)
        self._runner.set_input_queue_size(1)
        self._runner.set_output_queue_size(1)

    def run(self, frames: Iterable[Tensors]) -> Iterator[tuple[Array, ...]]:
        """Results in order. Closing the iterator drains what is under way."""
        import threading

        stop = threading.Event()
        failures: list[BaseException] = []

        def feed() -> None:
            try:
                for tensors in frames:
                    if stop.is_set():
                        break
                    if not self._runner.push([tensors[name] for name in self._inputs]):
                        break
            except BaseException as error:  # handed to the caller's thread
                failures.append(error)
            finally:
                self._runner.push([])

        thread = threading.Thread(target=feed, name="feed", daemon=True)
        thread.start()
        try:
            while (result := self._runner.pop()) is not None:
                yield tuple(result)
        finally:
            stop.set()
            while thread.is_alive():
                self._runner.pop()
                thread.join(timeout=0.01)
        if failures:
            raise failures[0]
