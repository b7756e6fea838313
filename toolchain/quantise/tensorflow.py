"""A Keras model to int8 by TensorFlow's own converter, compared with the float one tensor by
tensor (TensorFlow's guide "Post-training integer quantization").
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError
from toolchain.packages import KERAS, lazy
from toolchain.progress import Report, silent
from toolchain.quantise.layers import LayerError, OutputError, Sums
from toolchain.quantise.post_training import MOST_COMPARED

if TYPE_CHECKING:
    tensorflow: Any
else:
    tensorflow = lazy("tensorflow", KERAS)

Sample = Sequence[NDArray[Any]]


def quantise_keras(
    model: Any, samples: Sequence[Sample], report: Report = silent
) -> tuple[bytes, tuple[LayerError, ...], tuple[OutputError, ...]]:
    """The bytes of an int8 .tflite file, calibrated on `samples` (one array for each input, with a
    batch of 1), and the loss on the first `MOST_COMPARED` of them.

    Recurrent layers are unrolled for it, one copy of their operators a step: TensorFlow's
    calibrator ends the process by a signal where the file has a loop.

    Raises InputError where TensorFlow refuses the model; MissingToolError without TensorFlow.
    """
    with _unrolled(model):
        report("converting the float model")
        exact = _converted(model, None)
        if any(op["op_name"] == "WHILE" for op in _interpreter(exact)._get_ops_details()):
            raise InputError(
                "the model holds a loop other than that of a recurrent layer of Keras, which "
                "TensorFlow's converter cannot calibrate: write its turns one after another"
            )
        report(f"calibrating on {len(samples)} samples")
        rough = _converted(model, samples)
    layers, outputs = _compared(exact, rough, samples[:MOST_COMPARED], report)
    return rough, layers, outputs


def converted_keras(model: Any) -> bytes:
    """The bytes of a float .tflite file. Raises as `quantise_keras`."""
    return _converted(model, None)


def _converted(model: Any, samples: Sequence[Sample] | None) -> bytes:
    converter = tensorflow.lite.TFLiteConverter.from_keras_model(model)
    if samples is not None:
        converter.optimizations = [tensorflow.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: iter([list(sample) for sample in samples])
        converter.target_spec.supported_ops = [tensorflow.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tensorflow.int8
    try:
        with _quiet():
            made: bytes = converter.convert()
    except Exception as error:  # the converter's exceptions share no base but this
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"TensorFlow cannot convert the model: {said[0]}") from error
    return made


@contextlib.contextmanager
def _unrolled(model: Any) -> Iterator[None]:
    """Set `unroll` of the model's recurrent layers for the block, and reset it afterwards."""
    rolled = [one for one in _layers(model) if getattr(one, "unroll", True) is False]
    for layer in rolled:
        layer.unroll = True
    try:
        yield
    finally:
        for layer in rolled:
            layer.unroll = False


def _layers(model: Any) -> list[Any]:
    """The layers inside of a Keras model, those inside of layers (Bidirectional), too."""
    return list(model._flatten_layers()) if hasattr(model, "_flatten_layers") else []


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the converter from printing."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def _compared(
    exact: bytes, rough: bytes, samples: Sequence[Sample], report: Report
) -> tuple[tuple[LayerError, ...], tuple[OutputError, ...]]:
    """Every tensor that both files compute under one name, and the outputs."""
    before, after = _interpreter(exact), _interpreter(rough)
    makers = {
        tensor: op["op_name"]
        for op in before._get_ops_details()
        for tensor in op["outputs"]  # by index
    }
    wide = {detail["name"]: detail for detail in before.get_tensor_details()}
    other = {detail["name"]: detail for detail in after.get_tensor_details()}
    ends = [detail["name"] for detail in before.get_output_details()]
    both = [
        name
        for name, detail in wide.items()
        if detail["index"] in makers and name in other and name not in ends
    ]
    sums = {name: Sums() for name in (*both, *ends)}
    for number, sample in enumerate(samples):
        report("comparing", number, len(samples))
        for interpreter in (before, after):
            for detail, values in zip(interpreter.get_input_details(), sample, strict=True):
                interpreter.set_tensor(detail["index"], _stored(values, detail))
            interpreter.invoke()
        for name in both:
            want = before.get_tensor(wide[name]["index"])
            sums[name].add(want, _real(after.get_tensor(other[name]["index"]), other[name]))
        pairs = zip(before.get_output_details(), after.get_output_details(), strict=True)
        for name, (want, got) in zip(ends, pairs, strict=True):
            value = _real(after.get_tensor(got["index"]), got)
            sums[name].add(before.get_tensor(want["index"]), value)
    layers = tuple(sums[name].layer(name, makers[wide[name]["index"]].lower()) for name in both)
    return layers, tuple(sums[name].output(name) for name in ends)


def _interpreter(content: bytes) -> Any:
    with _quiet():
        made = tensorflow.lite.Interpreter(
            model_content=content, experimental_preserve_all_tensors=True
        )
    made.allocate_tensors()
    return made


def _stored(values: NDArray[Any], detail: dict[str, Any]) -> NDArray[Any]:
    scale, zero_point = detail["quantization"]
    if not scale:
        return values.astype(detail["dtype"])
    info = np.iinfo(detail["dtype"])
    stored = np.clip(np.rint(values / scale) + zero_point, info.min, info.max)
    elements: NDArray[Any] = stored.astype(detail["dtype"])
    return elements


def _real(values: NDArray[Any], detail: dict[str, Any]) -> NDArray[Any]:
    scale, zero_point = detail["quantization"]
    if not scale:
        return values
    reals: NDArray[Any] = scale * (values.astype(np.float64) - zero_point)
    return reals
