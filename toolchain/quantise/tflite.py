"""Quantise a float or dynamic-range TFLite model to int8, and measure the loss.

Weights become symmetric int8 per channel, activations int8 with a zero point, by LiteRT's
quantisation specification; the ends of the model stay float. An engine of its own: the converters'
quantisers start from what a training framework saved, and ai-edge-quantizer brings TensorFlow's
weight of packages.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.device.patience import RUN_SECONDS
from toolchain.errors import InputError
from toolchain.files import write_file
from toolchain.frontends import read_model_file
from toolchain.ir import DType, End, Tensor
from toolchain.preprocess.samples import AS_STORED, Scaling, read_samples
from toolchain.progress import Report, silent
from toolchain.quantise import tflite_model
from toolchain.quantise.layers import LayerError, OutputError, Sums
from toolchain.quantise.post_training import MOST_COMPARED, Quantised
from toolchain.quantise.tflite_rewriting import quantised

SUFFIXES = (".tflite", ".lite")
_INT8 = "_int8"


def quantise_tflite(
    model: Path,
    data: Sequence[Path],
    out: Path,
    *,
    per_channel: bool = True,
    scaling: Scaling = AS_STORED,
    report: Report = silent,
    limit_seconds: float = RUN_SECONDS,
) -> Quantised:
    """Write `model` as int8 to `out`, calibrated on `data`, and compare the two on that data.

    Ranges are the least and greatest values seen. Raises InputError, naming the file, for a model
    that LiteRT does not run, one that is quantised already, and data that does not fit, and for an
    inference that takes longer than `limit_seconds`; MissingToolError without LiteRT.
    """
    if os.path.realpath(out) == os.path.realpath(model):
        raise InputError(f"{out} is the float model itself: name another file to write")
    given = read_model_file(model)
    try:
        wide = tflite_model.widened(given)
        machine = tflite_model.interpreter(wide)
    except InputError as error:
        raise InputError(f"{model}: {error}") from error
    ends = float_ends(model, machine)
    samples = [sample for file in data for sample in read_samples([file], ends, scaling)]
    if not samples:
        raise InputError("no data to calibrate with: give at least one file with --data")
    ranges = tflite_model.ranges(wide, samples, report, limit_seconds)
    report("writing int8")
    made = quantised(wide, ranges, per_channel=per_channel)
    written = tflite_model.with_archive_of(given, made.data)
    rough = tflite_model.interpreter(made.data)
    compared = samples[:MOST_COMPARED]
    layers, outputs = _compared(machine, rough, compared, report, limit_seconds)
    write_file(out, written)
    sizes = len(given), len(written)
    counts = len(samples), len(compared)
    return Quantised(str(model), *counts, *sizes, layers, outputs, made.left)


def float_ends(model: Path, machine: Any) -> list[End]:
    """The model's inputs. Raises InputError for a type that has no counterpart, and for int8."""
    ends = []
    for detail in machine.get_input_details():
        name = np.dtype(detail["dtype"]).name
        if name not in {dtype.value for dtype in DType}:
            raise InputError(f"{model}: the input {detail['name']!r} is of type {name}")
        if detail["quantization_parameters"]["scales"].size:
            raise InputError(f"{model} is quantised already: compile it as it is")
        shape = tuple(int(size) for size in detail["shape"])
        ends.append(End(Tensor(detail["name"], shape, DType(name))))
    return ends


def _compared(
    exact: Any,
    rough: Any,
    samples: Sequence[tflite_model.Sample],
    report: Report,
    limit_seconds: float,
) -> tuple[tuple[LayerError, ...], tuple[OutputError, ...]]:
    """Every tensor that both models compute, and the models' outputs."""
    details = {d["index"]: d for d in exact.get_tensor_details()}
    ours = {d["name"]: d for d in rough.get_tensor_details()}
    outputs = exact.get_output_details()
    theirs = dict(zip((d["index"] for d in outputs), rough.get_output_details(), strict=True))
    makers = {
        int(index): op["op_name"] for op in exact._get_ops_details() for index in op["outputs"]
    }
    inner = {
        index: ours[details[index]["name"] + _INT8]
        for index in makers
        if index in details and details[index]["name"] + _INT8 in ours and index not in theirs
    }
    sums = {index: Sums() for index in (*theirs, *inner)}
    for number, sample in enumerate(samples):
        report("comparing", number, len(samples))
        tflite_model.run(exact, sample, limit_seconds)
        tflite_model.run(rough, sample, limit_seconds)
        for index, total in sums.items():
            other = rough.get_tensor((theirs | inner)[index]["index"])
            if index in inner:
                other = _real(other, inner[index])
            total.add(exact.get_tensor(index), other)
    layers = tuple(sums[i].layer(details[i]["name"], makers[i]) for i in inner)
    return layers, tuple(sums[d["index"]].output(d["name"]) for d in outputs)


def _real(values: NDArray[Any], detail: Any) -> NDArray[np.float32]:
    scale, zero = detail["quantization"]
    real: NDArray[np.float32] = (values.astype(np.float32) - zero) * np.float32(scale)
    return real
