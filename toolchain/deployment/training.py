"""From a training script to firmware: a PyTorch or Keras model and some samples.

    built = thimble.compile_torch(model, samples, board="nucleo-f446re")
    print(built)

exports the model, quantises it to int8 with the framework's usual tools (ONNX Runtime's for
PyTorch, TensorFlow's own converter for Keras), compares int8 with float on the samples, layer by
layer, and compiles.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toolchain.deployment.compile import (
    Compiled,
    compile_model,
    compiled_json,
    compiled_need,
    known_latency,
)
from toolchain.deployment.run import deployed
from toolchain.deployment.verification import Verification, verify_model
from toolchain.errors import InputError
from toolchain.files import scratch_folder, write_file
from toolchain.packages import TORCH, lazy
from toolchain.planning.options import PlanOptions
from toolchain.preprocess.samples import quantised_input, real_values
from toolchain.progress import Report, silent
from toolchain.quantise.layers import LayerError, OutputError
from toolchain.quantise.post_training import METHODS, quantise_samples
from toolchain.quantise.tensorflow import quantise_keras
from toolchain.report.gates import check, gates
from toolchain.report.text import size
from toolchain.report.time import time_text

if TYPE_CHECKING:
    torch: Any
else:
    torch = lazy("torch", TORCH)

_OPSET = 17
_DYNAMO_OPSET = 18
"""The oldest that the newer exporter writes."""
_WORST = 3
Array = NDArray[Any]


@dataclass(frozen=True, repr=False)
class Built:
    """A trained model as int8 and as firmware.

    `model`: the int8 file, .onnx or .tflite. `layers`: what int8 costs at each tensor, on up to 32
    of the samples, in the order of the model; `outputs`: the agreement of each output.
    """

    compiled: Compiled
    model: Path
    layers: tuple[LayerError, ...]
    outputs: tuple[OutputError, ...]

    @property
    def folder(self) -> Path:
        """The folder with the C and the firmware."""
        return self.compiled.folder

    @property
    def board(self) -> str:
        return self.compiled.plan.board

    @property
    def arena_bytes(self) -> int:
        return self.compiled.plan.arena.size_bytes

    @property
    def ram_bytes(self) -> int:
        """Arena, data and stack: as linked, or estimated on the host."""
        return compiled_need(self.compiled.plan, self.compiled.sizes).ram_bytes

    @property
    def flash_bytes(self) -> int:
        return compiled_need(self.compiled.plan, self.compiled.sizes).flash_bytes

    @property
    def milliseconds(self) -> float | None:
        """Milliseconds of one inference, as `thimble plan` knows them; None on the host."""
        return known_latency(self.compiled.plan).milliseconds

    @property
    def agreement(self) -> float:
        """The share of samples in which int8 and float have the same largest output; the worst
        output counts.
        """
        return min((output.agreement for output in self.outputs), default=1.0)

    @property
    def worst_layers(self) -> tuple[LayerError, ...]:
        """The layers by signal over noise, the noisiest first."""
        return tuple(sorted(self.layers, key=lambda layer: layer.noise_db))

    def run(self, *inputs: Array) -> Mapping[str, Array]:
        """The outputs, as real numbers, for one sample of real numbers for each input: on the
        board, in QEMU, or on this machine. Raises InputError for a sample of another size.
        """
        with deployed(self.folder) as deployment:
            ends = deployment.inputs
            if len(inputs) != len(ends):
                raise InputError(f"the model has {len(ends)} inputs, and {len(inputs)} are given")
            given = {
                end.name: quantised_input(np.asarray(values), end)
                for end, values in zip(ends, inputs, strict=True)
            }
            stored = deployment.run(given).outputs
            real = {end.name: real_values(stored[end.name], end) for end in deployment.outputs}
            return {name: stored[name] if v is None else v for name, v in real.items()}

    def verify(self, runs: int = 20) -> Verification:
        """Compare the firmware's outputs with the reference runtime's on random inputs."""
        return verify_model(self.model, self.board, runs=runs)

    def __repr__(self) -> str:
        plan, known = self.compiled.plan, known_latency(self.compiled.plan)
        time = time_text(known.total, known.unit, known.basis, known.clock_hz)
        lines = [
            f"{plan.graph.name} on {self.board}: arena {size(self.arena_bytes)}, "
            f"RAM {size(self.ram_bytes)}, flash {size(self.flash_bytes)}, {time}",
            f"int8 against float: same largest output in {self.agreement:.1%}; noisiest: "
            + ", ".join(
                f"{_short(layer.tensor)} {layer.noise_db:.1f} dB"
                for layer in self.worst_layers[:_WORST]
            ),
            f"C and firmware: {self.folder}; the model: {self.model}",
        ]
        return "\n".join(lines)


def compile_torch(  # noqa: PLR0913 - the public interface: a keyword each
    model: Any,
    samples: Any,
    board: str,
    out: str | Path = "build/model",
    *,
    inputs: int = 1,
    method: str = METHODS[0],
    options: PlanOptions | None = None,
    fail_on: Sequence[str] = (),
    report: Report = silent,
    force: bool = False,
) -> Built:
    """A PyTorch model to firmware for `board` in the folder `out`, and to `<out>_int8.onnx`.

    `samples`: inputs as in training, to calibrate with and to compare on; 50 to 500 are enough. An
    array or tensor of [samples, ...], or batches of them, as a DataLoader gives: of a batch that is
    a tuple the first `inputs` elements count, so labels are left out. The model is exported in
    evaluation mode with a batch of 1. `fail_on`: conditions as of `--fail-on`.

    Raises InputError where PyTorch or ONNX Runtime refuses the model, GateError for a condition
    that holds, MissingToolError without torch, and what `compile_model` raises.
    """
    conditions = gates(fail_on)
    batches = _samples(samples, inputs)
    target = _int8_file(out, ".onnx")
    with scratch_folder() as folder:
        report("exporting the model")
        names = ["input"] if inputs == 1 else [f"input{i}" for i in range(inputs)]
        exported = folder / "model.onnx"
        _export(model, batches[0], names, exported)
        named = [dict(zip(names, sample, strict=True)) for sample in batches]
        quantised = quantise_samples(exported, named, target, method=method, report=report)
    compiled = compile_model(target, board, out, options, report=report, force=force)
    built = Built(compiled, target, quantised.layers, quantised.outputs)
    check(conditions, _fields(built))
    return built


def compile_keras(
    model: Any,
    samples: Any,
    board: str,
    out: str | Path = "build/model",
    *,
    inputs: int = 1,
    options: PlanOptions | None = None,
    fail_on: Sequence[str] = (),
    report: Report = silent,
    force: bool = False,
) -> Built:
    """As `compile_torch`, for a Keras model: by TensorFlow's converter, to `<out>_int8.tflite`.

    `samples` may be a tf.data.Dataset, too. Raises MissingToolError without TensorFlow.
    """
    conditions = gates(fail_on)
    batches = _samples(samples, inputs)
    content, layers, outputs = quantise_keras(model, batches, report)
    target = _int8_file(out, ".tflite")
    write_file(target, content)
    compiled = compile_model(target, board, out, options, report=report, force=force)
    built = Built(compiled, target, layers, outputs)
    check(conditions, _fields(built))
    return built


def _short(tensor: str) -> str:
    """The first of the names that TensorFlow joins where it fuses operators."""
    return tensor.partition(";")[0]


def _int8_file(out: str | Path, suffix: str) -> Path:
    """The path of the int8 model: beside the folder, which is replaced as a whole."""
    folder = Path(out)
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder.parent / f"{folder.name}_int8{suffix}"


def _fields(built: Built) -> dict[str, Any]:
    """Fields that a condition can name: those of `compile --json` and `quantize --json`."""
    fields = compiled_json(built.compiled.plan, built.compiled.sizes, built.compiled.sources.stack)
    return {
        **fields,
        "layers": [vars(layer) for layer in built.layers],
        "outputs": [vars(output) for output in built.outputs],
    }


def _samples(samples: Any, inputs: int) -> list[tuple[Array, ...]]:
    """Samples one by one, each an array with a batch of 1 for each input."""
    single: list[tuple[Array, ...]] = []
    for batch in _batches(samples, inputs):
        arrays = [np.asarray(_on_cpu(part)) for part in batch]
        counts = {len(values) for values in arrays if values.ndim}
        if len(counts) != 1 or any(not values.ndim for values in arrays):
            raise InputError("samples: each input needs an array of [samples, ...], equally many")
        for index in range(counts.pop()):
            one = (values[index : index + 1] for values in arrays)
            single.append(tuple(v.astype(np.float32) if v.dtype.kind == "f" else v for v in one))
    if not single:
        raise InputError("samples: there are none to calibrate with")
    return single


def _batches(samples: Any, inputs: int) -> Iterator[Sequence[Any]]:
    if hasattr(samples, "shape"):
        yield (samples,)
        return
    if isinstance(samples, tuple) and all(hasattr(part, "shape") for part in samples):
        yield samples[:inputs]  # arrays of all samples: the inputs, then perhaps labels
        return
    if not isinstance(samples, Iterable):
        raise InputError(
            f"samples: {type(samples).__name__} is no array and gives no batches: give an array of "
            "[samples, ...], or a loader of batches (PyTorch's DataLoader, tf.data.Dataset.batch)"
        )
    for batch in samples:
        parts = batch if isinstance(batch, tuple | list) else (batch,)
        if len(parts) < inputs:
            raise InputError(f"samples: a batch has {len(parts)} parts; the model {inputs} inputs")
        yield parts[:inputs]


def _on_cpu(values: Any) -> Any:
    """A tensor of PyTorch without its gradient, in the memory of this machine."""
    return values.detach().cpu() if hasattr(values, "detach") else values


def _export(model: Any, sample: Sequence[Array], names: list[str], file: Path) -> None:
    """Write the model by PyTorch's exporter through TorchScript; by its newer one, which needs
    onnxscript, what the older one does not know.
    """
    arguments = tuple(torch.from_numpy(np.ascontiguousarray(values)) for values in sample)
    known = inspect.signature(torch.onnx.export).parameters
    ways: list[dict[str, Any]] = [{"opset_version": _OPSET}]
    if "dynamo" in known:
        ways[0]["dynamo"] = False
        ways.append({"opset_version": _DYNAMO_OPSET, "dynamo": True, "external_data": False})
    said = []
    for way in ways:
        try:
            with _evaluating(model), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.onnx.export(model, arguments, str(file), input_names=names, **way)
                return
        except (KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:  # PyTorch's exceptions share no base but this
            said.append(_cause(error))
    newer = "".join(f"; nor can its newer exporter: {text}" for text in said[1:])
    raise InputError(f"PyTorch cannot export the model: {said[0]}{newer}")


def _cause(error: BaseException) -> str:
    """The first line of the error that the others were raised from: PyTorch's own say which step
    of the exporter failed, in colours."""
    while error.__cause__ is not None:
        error = error.__cause__
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Put a model in evaluation mode for the block, and back afterwards."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
