"""A C program of a split pipeline: `runtime_c/pipeline/`, and a table of its stages.

The program is for one model. Its stages run through TensorFlow Lite's C API and libedgetpu's
(not run on hardware), or through LiteRT's on the processor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from toolchain.codegen.environment import environment
from toolchain.edgetpu.run.backends import End, ends_of
from toolchain.edgetpu.run.folder import ModelStages, PipelineFolder
from toolchain.errors import InputError
from toolchain.resources import RUNTIME_C

FOLDER = "c"
"""Below the folder of the stages."""
_TEMPLATES = ("stages.c", "CMakeLists.txt", "README.md")


@dataclass(frozen=True)
class _Tensor:
    """A tensor of the model's ends, or between stages. `bytes`: of one frame."""

    name: str
    type: str
    shape: str
    bytes: int


@dataclass(frozen=True)
class _Numbers:
    """A list of tensors, which begins at `at` of the array of all lists."""

    what: str
    at: int
    numbers: tuple[int, ...]


def check_emit(models: int, mcu: bool = False) -> None:
    """Raises InputError for several models, whose stages share sticks, and for a microcontroller:
    the program knows neither."""
    if mcu:
        raise InputError("--emit c writes a program of sticks and the host, without --mcu")
    if models != 1:
        raise InputError(f"--emit c writes the program of one model, not of {models}")


def write_program(folder: PipelineFolder) -> tuple[str, ...]:
    """Write the program into `c/` of a folder of stages. Returns the files' names.

    Raises InputError for several models, and for a type of tensor that frames do not have.
    """
    check_emit(len(folder.models), folder.mcu is not None)
    target = folder.path / FOLDER
    target.mkdir()
    values = _values(folder, folder.models[0])
    for name in _TEMPLATES:
        text = environment().get_template(f"edgetpu/c/{name}.j2").render(values)
        (target / name).write_text(text, encoding="utf-8")
    for file in sorted((RUNTIME_C / "pipeline").iterdir()):
        (target / file.name).write_bytes(file.read_bytes())
    return tuple(f"{FOLDER}/{file.name}" for file in sorted(target.iterdir()))


def _values(folder: PipelineFolder, model: ModelStages) -> dict[str, object]:
    tensors: list[_Tensor] = []
    places: dict[str, int] = {}
    lists: list[_Numbers] = []

    def numbers(what: str, names: tuple[str, ...]) -> _Numbers:
        at = sum(len(entry.numbers) for entry in lists)
        lists.append(_Numbers(what, at, tuple(places[name] for name in names)))
        return lists[-1]

    for stage in model.stages:
        inputs, outputs = ends_of(folder.path / stage.file)
        pairs = (*zip(stage.inputs, inputs, strict=True), *zip(stage.outputs, outputs, strict=True))
        for name, end in pairs:
            if name not in places:
                places[name] = len(tensors)
                tensors.append(_tensor(name, end))
    stages = [
        (
            stage,
            numbers(f"inputs of stage {place}", stage.inputs),
            numbers(f"outputs of stage {place}", stage.outputs),
        )
        for place, stage in enumerate(model.stages)
    ]
    ends = {
        "inputs": [tensors[places[name]] for name in model.inputs],
        "outputs": [tensors[places[name]] for name in model.outputs],
    }
    return {
        "model": model,
        "tensors": tensors,
        "stages": stages,
        "inputs": numbers("inputs of the model", model.inputs),
        "outputs": numbers("outputs of the model", model.outputs),
        "lists": lists,
        "ends": ends,
        "frame_bytes": sum(tensor.bytes for tensor in ends["inputs"]),
        "result_bytes": sum(tensor.bytes for tensor in ends["outputs"]),
    }


def _tensor(name: str, end: End) -> _Tensor:
    shape, dtype = end
    return _Tensor(
        name, dtype.name, "x".join(map(str, shape)) or "1", math.prod(shape) * dtype.itemsize
    )
