"""A float model in its own runtime, by the names of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from toolchain.device.patience import RUN_SECONDS
from toolchain.errors import InputError
from toolchain.files.arrays import Array
from toolchain.frontends import read_model_file
from toolchain.ir import End
from toolchain.quantise import tflite_model
from toolchain.quantise.post_training import float_session
from toolchain.quantise.tflite import SUFFIXES, float_ends


@dataclass(frozen=True)
class FloatModel:
    """`run`: the outputs by name of one inference on inputs by name. `outputs`: their names, in the
    order of the file. `restart` resets what the model keeps from run to run. `run` raises
    InputError for an inference beyond the limit of time.
    """

    inputs: tuple[End, ...]
    outputs: tuple[str, ...]
    run: Callable[[Mapping[str, Array]], dict[str, Array]]
    restart: Callable[[], None]


def open_float(model: Path, limit_seconds: float = RUN_SECONDS) -> FloatModel:
    """A float ONNX or TFLite file, in ONNX Runtime or in LiteRT.

    Raises InputError, naming the file, for one that cannot be read or is quantised already, and
    MissingToolError without its runtime.
    """
    if model.suffix in SUFFIXES:
        return _in_litert(model, limit_seconds)
    ends, session = float_session(model, limit_seconds)
    names = tuple(output.name for output in session.get_outputs())

    def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
        return dict(zip(names, map(np.asarray, session.run(None, dict(inputs))), strict=True))

    return FloatModel(tuple(ends), names, run, lambda: None)  # ONNX keeps no state


def _in_litert(model: Path, limit_seconds: float) -> FloatModel:
    try:
        data = tflite_model.widened(read_model_file(model))
        machines = [tflite_model.interpreter(data)]
    except InputError as error:
        raise InputError(f"{model}: {error}") from error
    details = machines[0].get_output_details()

    def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
        tflite_model.run(machines[0], inputs, limit_seconds)
        return {detail["name"]: machines[0].get_tensor(detail["index"]) for detail in details}

    def restart() -> None:
        machines[0] = tflite_model.interpreter(data)

    names = tuple(detail["name"] for detail in details)
    return FloatModel(tuple(float_ends(model, machines[0])), names, run, restart)
