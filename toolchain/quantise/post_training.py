"""Quantise a float ONNX model to int8 QDQ with onnxruntime's own quantiser, and measure the loss.

The settings suit the kernels: weights symmetric and per output channel, activations int8 with a
zero point, every operator quantised, so that nothing stays float between two of them.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toolchain.device.patience import RUN_SECONDS, stopped_after, too_slow
from toolchain.errors import InputError
from toolchain.files import scratch_folder, write_file
from toolchain.frontends import read_whole_model
from toolchain.frontends.onnx.file import name_of
from toolchain.frontends.onnx.operators import Trait, operator
from toolchain.ir import DType, End, Tensor
from toolchain.packages import QUANTIZE, lazy
from toolchain.preprocess.samples import AS_STORED, Scaling, read_samples
from toolchain.progress import Report, silent
from toolchain.quantise.layers import LayerError, OutputError, Sums
from toolchain.quantise.onnx_quantiser import excluding, named, with_flat_norms

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx", QUANTIZE)

Array = NDArray[np.generic]
Sample = dict[str, Array]

METHODS = ("MinMax", "Entropy", "Percentile")
_DEQUANTISED = "_DequantizeLinear_Output"
_INFERENCE = "an inference of the model in onnxruntime"
MOST_COMPARED = 32
"""Samples on which the two models are compared."""


@dataclass(frozen=True)
class Quantised:
    """`layers` in the order of the model. `left_in_float`: operators without int8, and why."""

    model: str
    samples: int
    compared: int
    float_bytes: int
    int8_bytes: int
    layers: tuple[LayerError, ...]
    outputs: tuple[OutputError, ...]
    left_in_float: tuple[tuple[str, str], ...] = ()


def quantise_model(
    model: Path,
    data: Sequence[Path],
    out: Path,
    *,
    method: str = METHODS[0],
    per_channel: bool = True,
    scaling: Scaling = AS_STORED,
    report: Report = silent,
    limit_seconds: float = RUN_SECONDS,
) -> Quantised:
    """Write `model` as int8 to `out`, calibrated on `data`, and compare the two on that data.

    A data file is .npy, .npz, an image, a sound, a table or raw float32, with one sample or
    several; for a model with several inputs it is .npz, by the inputs' names. `scaling` says what
    stored numbers mean. Raises InputError, naming the file, for a model that is not float ONNX and
    for data that does not fit, and for an inference that takes longer than `limit_seconds`;
    MissingToolError without onnxruntime.
    """
    if os.path.realpath(out) == os.path.realpath(model):
        raise InputError(f"{out} is the float model itself: name another file to write")
    ends = float_inputs(model)
    samples = [sample for file in data for sample in read_samples([file], ends, scaling)]
    if not samples:
        raise InputError("no data to calibrate with: give at least one file with --data")
    return quantise_samples(
        model,
        samples,
        out,
        method=method,
        per_channel=per_channel,
        report=report,
        limit_seconds=limit_seconds,
    )


def float_inputs(model: Path) -> list[End]:
    """The inputs of a float ONNX model. Raises InputError as `quantise_model` does."""
    return _inputs(_float_model(model))


def float_session(model: Path, limit_seconds: float) -> tuple[list[End], Any]:
    """The inputs of a float ONNX model, and a session of it. Raises as `quantise_model` does."""
    loaded = _float_model(model)
    names = [value.name for value in loaded.graph.output]
    return _inputs(loaded), _session(loaded, names, limit_seconds)


def quantise_samples(
    model: Path,
    samples: Sequence[Sample],
    out: Path,
    *,
    method: str = METHODS[0],
    per_channel: bool = True,
    report: Report = silent,
    limit_seconds: float = RUN_SECONDS,
) -> Quantised:
    """As `quantise_model`, for samples in memory: arrays by the inputs' names, in their shapes."""
    loaded = _float_model(model)
    ends = _inputs(loaded)
    with scratch_folder() as folder:
        report("preparing the model")
        prepared = _prepared(loaded, folder, ends)
        report(f"calibrating on {len(samples)} samples")
        made, left = _quantised(prepared, samples, folder, method, per_channel, limit_seconds)
        compared = samples[:MOST_COMPARED]
        layers, outputs = _compared(onnx.load(str(prepared)), made, compared, report, limit_seconds)
        text = made.SerializeToString()
        write_file(out, text)
    return Quantised(
        str(model),
        len(samples),
        len(compared),
        loaded.ByteSize(),
        len(text),
        layers,
        outputs,
        left,
    )


def _float_model(file: Path) -> onnx.ModelProto:
    if file.suffix in (".tflite", ".lite"):
        raise InputError(
            f"{file} is a TFLite file, which `thimble quantize` and `quantise_tflite` take"
        )
    data = read_whole_model(file)
    load = onnx.load_model_from_string
    try:
        model = load(data)
        onnx.checker.check_model(model)
    except Exception as error:  # protobuf's and onnx's exceptions share no base but this
        raise InputError(f"{file} is not a sound ONNX model: {error}") from error
    rows = [operator(name_of(node)) for node in model.graph.node]
    if any(Trait.OF_THE_MOMENT in row.traits for row in rows):
        raise InputError(
            f"{file} has its weights in 8 bits and scales of its activations that are known when "
            "it runs: give the float model that it was made of, or compile it with --float"
        )
    if any(row.is_quantised for row in rows):
        raise InputError(f"{file} is quantised already: compile it as it is")
    return model


def _inputs(model: onnx.ModelProto) -> list[End]:
    """The model's inputs; a dimension that the file leaves open counts as 1."""
    constants = {tensor.name for tensor in model.graph.initializer}
    ends = []
    for value in model.graph.input:
        if value.name in constants:
            continue
        kind = value.type.tensor_type
        name = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)).name
        if name not in {dtype.value for dtype in DType}:
            raise InputError(f"the input {value.name!r} is of type {name}")
        shape = tuple(int(d.dim_value) or 1 for d in kind.shape.dim)
        ends.append(End(Tensor(value.name, shape, DType(name))))
    return ends


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise QUANTIZE.lacks("onnxruntime") from error


def _prepared(model: onnx.ModelProto, folder: Path, ends: Sequence[End]) -> Path:
    """Shapes fixed and inferred, batch normalisation folded into the convolutions before it."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for value in fixed.graph.input:
        for end in ends:
            if value.name == end.name:
                for dim, size in zip(
                    value.type.tensor_type.shape.dim, end.tensor.shape, strict=True
                ):
                    dim.ClearField("dim_param")
                    dim.dim_value = size
    named(fixed)
    source, target = folder / "fixed.onnx", folder / "prepared.onnx"
    onnx.save(fixed, str(source))
    preprocess = _module("onnxruntime.quantization.shape_inference").quant_pre_process
    try:
        preprocess(str(source), str(target), skip_symbolic_shape=True)
    except Exception as error:  # onnxruntime's exceptions share no base but this
        raise InputError(f"onnxruntime cannot prepare the model: {error}") from error
    ready = onnx.load(str(target))
    with_flat_norms(ready)
    onnx.save(ready, str(target))
    return target


class _Samples:
    """`CalibrationDataReader` of onnxruntime."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples
        self.rewind()

    def get_next(self) -> Sample | None:
        return next(self._left, None)

    def rewind(self) -> None:
        self._left = iter(self._samples)

    def __len__(self) -> int:
        return len(self._samples)


class _Session:
    """A session of onnxruntime that stops a run which takes longer than it may."""

    def __init__(self, session: Any, limit_seconds: float) -> None:
        self._session, self._limit_seconds = session, limit_seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run(self, outputs: Sequence[str] | None, inputs: Sample) -> list[Array]:
        """The outputs. Raises InputError for a run that was stopped."""
        options = _module("onnxruntime").RunOptions()
        options.log_severity_level = 4

        def stop() -> None:
            options.terminate = True

        with stopped_after(self._limit_seconds, stop) as expired:
            try:
                values: list[Array] = self._session.run(outputs, inputs, options)
            except Exception as error:  # onnxruntime's exceptions share no base but this
                if expired.is_set():
                    raise too_slow(_INFERENCE, self._limit_seconds) from error
                raise
        return values


@contextlib.contextmanager
def _calibrating_within(limit_seconds: float) -> Iterator[None]:
    """onnxruntime's calibrators have sessions that stop. `quantize_static` takes no options of
    their runs, so that what makes a calibrator is another in this block.
    """
    module = _module("onnxruntime.quantization.quantize")
    make = module.create_calibrator

    def made(*given: Any, **named: Any) -> Any:
        calibrator = make(*given, **named)
        calibrator.infer_session = _Session(calibrator.infer_session, limit_seconds)
        return calibrator

    module.create_calibrator = made
    try:
        yield
    finally:
        module.create_calibrator = make


def _quantised(
    prepared: Path,
    samples: Sequence[Sample],
    folder: Path,
    method: str,
    per_channel: bool,
    limit_seconds: float,
) -> tuple[onnx.ModelProto, tuple[tuple[str, str], ...]]:
    """The int8 model, and the operators that stay in float, each with why."""
    quantization = _module("onnxruntime.quantization")
    target, graph = folder / "int8.onnx", onnx.load(str(prepared)).graph

    class Reader(_Samples, quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
        """A reader with the base class that onnxruntime asks for."""

    def quantise(left: list[str]) -> None:
        with _calibrating_within(limit_seconds):
            quantization.quantize_static(
                str(prepared),
                str(target),
                Reader(samples),
                quant_format=quantization.QuantFormat.QDQ,
                op_types_to_quantize=sorted({node.op_type for node in graph.node}),
                nodes_to_exclude=left,
                per_channel=per_channel,
                activation_type=quantization.QuantType.QInt8,
                weight_type=quantization.QuantType.QInt8,
                calibrate_method=getattr(quantization.CalibrationMethod, method),
                extra_options={"ActivationSymmetric": False, "WeightSymmetric": True},
            )

    left = excluding(quantise, graph)
    return onnx.load(str(target)), left


def _compared(
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    samples: Sequence[Sample],
    report: Report,
    limit_seconds: float,
) -> tuple[tuple[LayerError, ...], tuple[OutputError, ...]]:
    """Every tensor that both models compute, and the models' outputs."""
    outputs = [value.name for value in before.graph.output]
    makers = {name: node.op_type for node in before.graph.node for name in node.output}
    dequantised = {name for node in after.graph.node for name in node.output}
    inner = {name: name + _DEQUANTISED for name in makers if name + _DEQUANTISED in dequantised}
    both = [(name, other) for name, other in inner.items() if name not in outputs]
    names = [*outputs, *(name for name, _ in both)]
    exact = _session(before, names, limit_seconds)
    rough = _session(after, [*outputs, *(other for _, other in both)], limit_seconds)
    sums = {name: Sums() for name in names}
    for number, sample in enumerate(samples):
        report("comparing", number, len(samples))
        pairs = zip(exact.run(None, sample), rough.run(None, sample), strict=True)
        for name, (want, got) in zip(names, pairs, strict=True):
            sums[name].add(np.asarray(want), np.asarray(got))
    layers = tuple(sums[name].layer(name, makers[name]) for name, _ in both)
    return layers, tuple(sums[name].output(name) for name in outputs)


def _session(model: onnx.ModelProto, outputs: Sequence[str], limit_seconds: float) -> _Session:
    """The model with just these outputs, unoptimised so that each tensor is computed as it says."""
    runtime = _module("onnxruntime")
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    known = {value.name: value for value in model.graph.output}
    del shown.graph.output[:]
    for name in outputs:
        value = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        shown.graph.output.append(known.get(name, value))
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = runtime.InferenceSession(
        shown.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return _Session(session, limit_seconds)


def as_json(result: Quantised, out: Path) -> Mapping[str, object]:
    """The report for programs. An infinite ratio (no loss) is null."""

    def finite(values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: None if value == float("inf") else value for key, value in values.items()}

    return {
        **vars(result),
        "out": str(out),
        "layers": [finite(vars(layer)) for layer in result.layers],
        "outputs": [finite(vars(output)) for output in result.outputs],
    }
