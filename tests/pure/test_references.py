"""The runtimes that models are compared with, where they need help."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from tests.support.tflite_writer import tflite_bytes
from toolchain.frontends.onnx.reader import read_traced
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.interpret import interpret
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.unary.relu import Bounds, Relu
from toolchain.reference import OnnxRuntime, TfliteReference, open_reference
from toolchain.reference.operator_differences import operator_differences, watched

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_qdq.onnx"


def test_sums_are_taken_outside_of_litert(tmp_path: Path) -> None:
    """One sum feeds another, and a result of either is the model's."""
    scales = {"x": (0.01, -7), "r": (0.01, -7), "s": (0.03, 5), "t": (0.2, -90), "y": (0.2, -90)}
    shapes = {"x": (2, 3, 9), "r": (2, 3, 9), "s": (2, 3), "t": (2,), "y": (2,)}
    tensors = [
        Tensor(name, shapes[name], DType.INT8, Quantisation((scale,), (zero,)))
        for name, (scale, zero) in scales.items()
    ]
    ops = [
        Op("relu", "a", ("x",), ("r",), Relu(Bounds.RELU)),
        Op("sum", "b", ("r",), ("s",), Reduce((2,))),
        Op("sum", "c", ("s",), ("t",), Reduce((1,))),
        Op("relu", "d", ("t",), ("y",), Relu(Bounds.RELU)),
    ]
    graph = Graph.build("sums", tensors, ops, ["x"], ["y", "s"])
    file = tmp_path / "sums.tflite"
    file.write_bytes(tflite_bytes(graph))
    reference = open_reference(file)
    assert isinstance(reference, TfliteReference)
    rng = np.random.default_rng(0)
    for _ in range(3):
        value = rng.integers(-128, 128, shapes["x"]).astype(np.int8)
        for have, want in zip(reference.run([value]), interpret(graph, [value]), strict=True):
            np.testing.assert_array_equal(have, want)


def test_an_onnx_model_operator_by_operator() -> None:
    reference = open_reference(DIGITS)
    assert isinstance(reference, OnnxRuntime)
    (source,) = onnx.load(DIGITS).graph.input
    shape = [dim.dim_value or 1 for dim in source.type.tensor_type.shape.dim]
    image = np.random.default_rng(1).uniform(0, 1, shape).astype(np.float32)
    found = reference.by_operators([image], 7)
    assert found.runs == (7,) and found.tensors > 5
    assert found.elements > 500
    assert found.differing <= 1 and found.max_difference <= 1


def test_an_operator_that_is_wrong_is_named() -> None:
    """The comparison can fail: other integers than ONNX Runtime's are seen."""
    reference = open_reference(DIGITS)
    assert isinstance(reference, OnnxRuntime)
    model = onnx.load_from_string(reference.data)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.INT8 and len(tensor.dims) == 4:
            values = onnx.numpy_helper.to_array(tensor).copy()
            values[0] = -values[0]
            spoiled = onnx.numpy_helper.from_array(values, tensor.name)
            break
    else:
        raise AssertionError("no convolution")
    tensor.CopyFrom(spoiled)
    graph, stored = read_traced(model.SerializeToString(), DIGITS)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    names = tuple(dict.fromkeys((*stored, *graph.outputs)))
    session = onnxruntime.InferenceSession(watched(reference.data, names), options)
    shape = session.get_inputs()[0].shape
    image = np.ones([d if isinstance(d, int) else 1 for d in shape], np.float32)
    results = session.run(None, {session.get_inputs()[0].name: image})
    given = {name: np.asarray(value) for name, value in zip(names, results, strict=True)}
    found = operator_differences(graph, stored, given, [image], 0)
    assert found.max_difference > 1
    assert found.worst in {op.name for op in graph.ops}
