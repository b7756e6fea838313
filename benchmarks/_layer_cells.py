"""Cells of `layer_matrix.py`: one framework's layers, in the framework's environment."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toolchain import compile_keras, compile_torch, verify_model
from toolchain.deployment.verification import Verification
from toolchain.errors import InputError, ThimbleError
from toolchain.planning.options import PlanOptions
from toolchain.quantise.float_use import float_use
from toolchain.quantise.post_training import quantise_samples

RUNS = 3
SAMPLES = 16
PYTORCH, KERAS = "PyTorch", "Keras"
FLOAT = PlanOptions(allow_float=True)
NO_FILE = ("PyTorch cannot export", "TensorFlow cannot convert")
"""How errors begin that are the exporters'."""


@dataclass(frozen=True)
class Cell:
    """`verdict`: exact, near (within the tolerance), differs, refused, not made (the framework's
    own tools end in an error) or failed. `floats`: operators in float32, of all `operators`.
    `tools`: the framework with its version, and the converter's.
    """

    tools: str
    framework: str
    layer: str
    column: str
    verdict: str
    differing: int = 0
    elements: int = 0
    largest: float = 0.0
    floats: int = 0
    operators: int = 0
    said: str = ""


class NotMadeError(Exception):
    """The framework's exporter ended in an error."""


def judged(result: Verification) -> dict[str, Any]:
    """The fields of a cell."""
    use = float_use(result.compiled.plan)
    return {
        "verdict": ("near" if result.differing else "exact") if result.passed else "differs",
        "differing": result.differing,
        "elements": result.elements,
        "largest": float(result.max_difference),
        "floats": use.operators if use else 0,
        "operators": len({op.counted_as[0] for op in result.compiled.plan.graph.ops}),
    }


def tried(make: Callable[[], Verification]) -> dict[str, Any]:
    try:
        return judged(make())
    except NotMadeError as error:
        return {"verdict": "not made", "said": str(error)}
    except ThimbleError as error:
        verdict = "not made" if str(error).startswith(NO_FILE) else "refused"
        return {"verdict": verdict, "said": str(error)}
    except Exception as error:  # a fault of ours, which the table shall show
        return {"verdict": "failed", "said": f"{type(error).__name__}: {error}"}


def apart(make: Callable[[], Verification]) -> dict[str, Any]:
    """`tried` in a process of its own: some converters end theirs with a signal."""
    context = multiprocessing.get_context("fork")
    answer, said = context.Pipe(duplex=False)
    child = context.Process(target=lambda: said.send(tried(make)))
    child.start()
    said.close()
    try:
        fields: dict[str, Any] = answer.recv()
    except EOFError:
        child.join()
        fields = {"verdict": "failed", "said": f"ended by signal {-(child.exitcode or 0)}"}
    child.join()
    return fields


def pytorch_cells(text: str, folder: Path) -> Iterator[Cell]:
    import onnxruntime
    import torch

    from benchmarks.ecosystem.pytorch_common import random_inputs, seeded
    from benchmarks.ecosystem.pytorch_layers import NETWORKS

    def exported(network: Any, inputs: tuple[Any, ...]) -> Path:
        file = folder / "float.onnx"
        try:
            torch.onnx.export(network, inputs, str(file), external_data=False, verbose=False)
        except Exception as error:  # PyTorch's exceptions share no base but this
            cause: BaseException = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            said = str(cause).strip().splitlines()[0]
            raise NotMadeError(f"PyTorch cannot export the model: {said}") from error
        return file

    tools = f"PyTorch {torch.__version__}, ONNX Runtime {onnxruntime.__version__}"
    for layer, (make, shapes) in NETWORKS.items():
        if text not in layer:
            continue
        network = seeded(make, 0)
        samples = [random_inputs(shapes, seed) for seed in range(SAMPLES)]

        def by_compile_torch(network: Any = network, samples: Any = samples) -> Verification:
            batches = [tuple(values for values in sample) for sample in samples]
            built = compile_torch(
                network, batches, "host", folder / "torch", inputs=len(batches[0])
            )
            return built.verify(RUNS)

        def by_quantize(network: Any = network, samples: Any = samples) -> Verification:
            import onnx

            file, int8 = exported(network, samples[0]), folder / "int8.onnx"
            names = [value.name for value in onnx.load(str(file)).graph.input]
            feeds = [
                {n: v.numpy() for n, v in zip(names, sample, strict=True)} for sample in samples
            ]
            quantise_samples(file, feeds, int8)
            return verify_model(int8, "host", runs=RUNS)

        def by_float(network: Any = network, samples: Any = samples) -> Verification:
            return verify_model(exported(network, samples[0]), "host", runs=RUNS, options=FLOAT)

        ways = {"compile_torch": by_compile_torch, "quantize": by_quantize, "float": by_float}
        for column, way in ways.items():
            yield Cell(tools, PYTORCH, layer, column, **apart(way))


def keras_cells(text: str, folder: Path) -> Iterator[Cell]:
    import keras
    import tensorflow as tf

    from benchmarks.ecosystem.keras_layers import NETWORKS
    from benchmarks.ecosystem.tensorflow_common import INDICES
    from toolchain.quantise.tensorflow import converted_keras

    def samples(network: Any) -> Any:
        rng = np.random.default_rng(1)
        parts = []
        for end in network.inputs:
            shape = (SAMPLES, *end.shape[1:])
            whole = str(end.dtype).startswith("int")
            parts.append(rng.integers(0, INDICES, shape) if whole else rng.standard_normal(shape))
            parts[-1] = parts[-1].astype(np.int32 if whole else np.float32)
        return tuple(parts)

    tools = f"Keras {keras.__version__}, TensorFlow {tf.__version__}"
    for layer, make in NETWORKS.items():
        if text not in layer:
            continue

        def by_compile_keras(make: Any = make) -> Verification:
            network = make()
            given = samples(network)
            built = compile_keras(network, given, "host", folder / "keras", inputs=len(given))
            return built.verify(RUNS)

        def by_float(make: Any = make) -> Verification:
            file = folder / "float.tflite"
            try:
                file.write_bytes(converted_keras(make()))
            except InputError as error:
                raise NotMadeError(str(error)) from error
            return verify_model(file, "host", runs=RUNS, options=FLOAT)

        for column, way in {"compile_keras": by_compile_keras, "float": by_float}.items():
            yield Cell(tools, KERAS, layer, column, **apart(way))


CELLS: Mapping[str, Callable[[str, Path], Iterator[Cell]]] = {
    PYTORCH: pytorch_cells,
    KERAS: keras_cells,
}


def answer() -> None:
    """Print a line of JSON for each cell of the framework that the first argument names, whose
    layer contains the second one."""
    framework, text = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # the frameworks print
    with tempfile.TemporaryDirectory() as folder:
        for cell in CELLS[framework](text, Path(folder)):
            print(json.dumps(asdict(cell)), file=answers, flush=True)
