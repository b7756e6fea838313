"""Float ONNX models built in a test, quantised by onnxruntime, compared with ONNX Runtime."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from toolchain.frontends.onnx.reader import read
from toolchain.ir import End
from toolchain.ops.interpret import interpret
from toolchain.passes import Prepared, prepare

Float = NDArray[np.float32]
QDQ, QOPERATOR = QuantFormat.QDQ, QuantFormat.QOperator
INT8, UINT8 = QuantType.QInt8, QuantType.QUInt8


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Sequence[str],
    constants: Mapping[str, NDArray[np.generic]],
    opset: int = 17,
    dtype: int = TensorProto.FLOAT,
    output_dtype: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "model",
        [helper.make_tensor_value_info(n, dtype, shape) for n, shape in inputs.items()],
        [helper.make_tensor_value_info(name, output_dtype, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(data), name) for name, data in constants.items()],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


class Samples(CalibrationDataReader):
    def __init__(self, feeds: Iterator[dict[str, Float]]) -> None:
        self._feeds = feeds

    def get_next(self) -> dict[str, Float] | None:
        return next(self._feeds, None)


def random_feeds(model: onnx.ModelProto, count: int, seed: int) -> list[dict[str, Float]]:
    """Normally distributed inputs; an open dimension is 1."""
    rng = np.random.default_rng(seed)
    initialisers = {tensor.name for tensor in model.graph.initializer}
    return [
        {
            value.name: rng.standard_normal(
                [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
            ).astype(np.float32)
            for value in model.graph.input
            if value.name not in initialisers
        }
        for _ in range(count)
    ]


def quantised(
    model: onnx.ModelProto,
    form: QuantFormat = QDQ,
    activations: QuantType = INT8,
    weights: QuantType = INT8,
    per_channel: bool = True,
    **options: object,
) -> bytes:
    """`model` as onnxruntime's static quantiser writes it."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        onnx.save(model, source)
        quantize_static(
            source,
            target,
            Samples(iter(random_feeds(model, 8, seed=1))),
            quant_format=form,
            activation_type=activations,
            weight_type=weights,
            per_channel=per_channel,
            extra_options=options or None,
        )
        return target.read_bytes()


def surrounded(model: onnx.ModelProto, dtype: type = np.int8) -> bytes:
    """`model` with QuantizeLinear and DequantizeLinear on every float activation.

    As onnxruntime leaves operators that it cannot quantise, between others that it can. Scales
    come from running the float model, and differ on both sides of every operator.
    """
    inferred = onnx.shape_inference.infer_shapes(model).graph
    floats = {
        value.name
        for value in (*inferred.value_info, *inferred.input, *inferred.output)
        if value.type.tensor_type.elem_type == TensorProto.FLOAT
    }
    watched = onnx.ModelProto.FromString(model.SerializeToString())
    del watched.graph.output[:]
    names = sorted(floats)
    watched.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = onnxruntime.InferenceSession(watched.SerializeToString())
    seen = [session.run(names, feed) for feed in random_feeds(model, 8, seed=1)]
    info = np.iinfo(dtype)
    graph = onnx.GraphProto(name="model")
    graph.initializer.extend(model.graph.initializer)
    graph.input.extend(model.graph.input)
    graph.output.extend(model.graph.output)
    outputs = {value.name for value in model.graph.output}

    def store(name: str) -> None:
        values = [run[names.index(name)] for run in seen]
        low, high = (min(0.0, *map(np.min, values)), max(0.0, *map(np.max, values)))
        scale = np.float32((high - low) / 255 or 1.0)
        zero = int(np.clip(np.rint(info.min - low / scale), info.min, info.max))
        parameters = [f"{name}/scale", f"{name}/zero"]
        graph.initializer.append(numpy_helper.from_array(scale, parameters[0]))
        graph.initializer.append(numpy_helper.from_array(np.array(zero, dtype), parameters[1]))
        source = f"{name}/float" if name in outputs else name
        target = name if name in outputs else f"{name}/real"
        graph.node.add(op_type="QuantizeLinear", input=[source, *parameters], output=[f"{name}/q"])
        stored = [f"{name}/q", *parameters]
        graph.node.add(op_type="DequantizeLinear", input=stored, output=[target])

    for value in model.graph.input:
        store(value.name)
    for original in model.graph.node:
        node = graph.node.add()
        node.CopyFrom(original)
        del node.input[:], node.output[:]
        constants = {tensor.name for tensor in graph.initializer}
        for name in original.input:
            moving = name in floats and name not in constants
            node.input.append(f"{name}/real" if moving else name)
        for name in original.output:
            node.output.append(f"{name}/float" if name in outputs & floats else name)
        for name in original.output:
            if name in floats:
                store(name)
    result = onnx.ModelProto.FromString(model.SerializeToString())
    result.graph.CopyFrom(graph)
    return result.SerializeToString()


@dataclass(frozen=True)
class Comparison:
    """Differences in steps of the output's scale."""

    prepared: Prepared
    elements: int
    differing: int
    largest: int
    beyond_one: int


def prepared_of(data: bytes) -> Prepared:
    return prepare(read(data, Path("model.onnx")))


def run(prepared: Prepared, feeds: Mapping[str, NDArray[np.generic]]) -> list[NDArray[np.generic]]:
    """The model's own outputs for its own inputs, by the operators' references."""
    graph, ends = prepared.graph, {b.tensor: b for b in prepared.boundaries}
    given = [End(graph.tensors[n], ends.get(n)).to_graph(feeds[n]) for n in graph.inputs]
    results = interpret(graph, given)
    return [
        End(graph.tensors[name], ends.get(name)).to_model(value)
        for name, value in zip(graph.outputs, results, strict=True)
    ]


def compare(
    data: bytes, feeds: Sequence[Mapping[str, NDArray[np.generic]]], optimise: bool = True
) -> Comparison:
    """Every element of every output against ONNX Runtime."""
    prepared = prepared_of(data)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # a second one spins while it waits
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    elements, differing, largest, beyond_one = 0, 0, 0, 0
    for feed in feeds:
        expected = session.run(None, dict(feed))
        for name, want, got in zip(
            prepared.graph.outputs, expected, run(prepared, feed), strict=True
        ):
            assert want.shape == got.shape and want.dtype == got.dtype
            tensor = prepared.graph.tensors[name]
            step = tensor.q.scale if want.dtype == np.float32 else 1.0
            steps = np.rint(np.abs(want.astype(np.float64) - got.astype(np.float64)) / step)
            elements += want.size
            differing += int(np.count_nonzero(steps))
            largest = max(largest, int(steps.max(initial=0)))
            beyond_one += int(np.count_nonzero(steps > 1))
    return Comparison(prepared, elements, differing, largest, beyond_one)
