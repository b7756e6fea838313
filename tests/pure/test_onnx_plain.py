"""ONNX operators on bools and integers without a scale, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tests.support.host import run_graph_on_host
from tests.support.onnx_models import prepared_of, run
from toolchain.errors import UnsupportedError
from toolchain.ir import End

Values = NDArray[np.generic]
CODES = {
    "bool": TensorProto.BOOL,
    "float32": TensorProto.FLOAT,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
}


def node(operator: str, inputs: str, outputs: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def file(
    nodes: Sequence[onnx.NodeProto],
    feeds: Mapping[str, Values],
    outputs: Sequence[str],
    constants: Mapping[str, Values],
) -> bytes:
    """With the types and shapes of `feeds`; those of the outputs are inferred."""
    inputs = [
        helper.make_tensor_value_info(name, CODES[value.dtype.name], value.shape)
        for name, value in feeds.items()
    ]
    known = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "plain", inputs, [], known)
    imports = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    inferred = onnx.shape_inference.infer_shapes(model).graph.value_info
    model.graph.output.extend(value for value in inferred if value.name in outputs)
    return model.SerializeToString()


def agree(data: bytes, feeds: Mapping[str, Values]) -> None:
    """References and C on the host give what ONNX Runtime gives, bit for bit."""
    prepared = prepared_of(data)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    wanted = session.run(None, dict(feeds))
    graph, ends = prepared.graph, {b.tensor: b for b in prepared.boundaries}
    found = {name: End(graph.tensors[name], ends.get(name)) for name in graph.tensors}
    given = tuple(found[name].to_graph(feeds[name]) for name in graph.inputs)
    made = run_graph_on_host(graph, given)
    for name, want, got, one in zip(graph.outputs, wanted, run(prepared, feeds), made, strict=True):
        assert (want.dtype, want.shape) == (got.dtype, got.shape)
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(found[name].to_model(one), want)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_are_computed_with_as_they_are(dtype: str) -> None:
    rng = np.random.default_rng(3)
    most = int(np.iinfo(dtype).max)
    a = rng.integers(-most - 1, most, (2, 3, 4), dtype, endpoint=True)
    b = rng.integers(-5, 6, (3, 1)).astype(dtype)
    feeds = {"a": np.where(rng.random(a.shape) < 0.5, a, a % 5).astype(dtype), "b": b}
    constants = {"d": np.array([3, -7, 1, 2], dtype), "m": np.array([3, -7, 2, 5], dtype)}
    pairs = ["Add", "Sub", "Mul", "Max", "Min", "Equal", "Greater", "GreaterOrEqual", "Less"]
    nodes = [node(operator, "a b", operator) for operator in (*pairs, "LessOrEqual")]
    nodes += [node("Div", "a d", "Div"), node("Mod", "a m", "Mod"), node("Not", "Less", "Not")]
    nodes += [node("Where", "Not a b", "Where"), node("And", "Less Equal", "And")]
    nodes += [node("Or", "Less Equal", "Or"), node("Xor", "Less Or", "Xor")]
    outputs = [part.output[0] for part in nodes]
    agree(file(nodes, feeds, outputs, constants), feeds)


def test_bools_choose_between_real_values() -> None:
    rng = np.random.default_rng(4)
    feeds = {
        "x": rng.normal(0, 1, (1, 6, 4)).astype(np.float32),
        "mask": rng.random((6, 1)) < 0.5,
    }
    nodes = [
        node("Greater", "x zero", "above"),
        node("Not", "mask", "unmasked"),
        node("And", "above unmasked", "both"),
        node("Where", "both x zero", "y"),
        node("ArgMax", "y", "first", axis=2, keepdims=0),
        node("Equal", "first index", "hit"),
        node("Cast", "hit", "count", to=TensorProto.INT32),
        node("CumSum", "count axis", "sums"),
    ]
    constants = {"zero": np.float32(0), "index": np.int64(2), "axis": np.int64(1)}
    agree(file(nodes, feeds, ["y", "sums", "hit"], constants), feeds)


def test_a_computed_divisor_is_refused() -> None:
    feeds = {"a": np.ones((2, 2), np.int64), "b": np.ones((2, 2), np.int64)}
    with pytest.raises(UnsupportedError, match=r"Div .*its input 1 is not constant"):
        prepared_of(file([node("Div", "a b", "y")], feeds, ["y"], {}))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("largest", [0, 1])
def test_the_largest_and_the_smallest_of_any_axis(dtype: str, largest: int) -> None:
    """Few values, so that many are equal; the indices pick rows."""
    rng = np.random.default_rng(6)
    feeds = {"x": rng.integers(-4, 5, (1, 7, 3, 5)).astype(dtype)}
    nodes = [
        node("TopK", "x k", "values indices", axis=1, largest=largest),
        node("TopK", "x k", "last places", largest=largest),
        node("Reshape", "places flat", "picks"),
        node("Gather", "rows picks", "chosen"),
    ]
    constants = {"k": np.array([3]), "flat": np.array([-1]), "rows": np.arange(20.0).reshape(5, 4)}
    constants["rows"] = constants["rows"].astype(np.float32)
    agree(file(nodes, feeds, ["values", "indices", "last", "chosen"], constants), feeds)


def test_the_largest_of_quantised_values() -> None:
    rng = np.random.default_rng(7)
    feeds = {"x": rng.normal(0, 2, (1, 4, 9)).astype(np.float32)}
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("TopK", "d k", "v indices"),
        node("QuantizeLinear", "v s z", "vq"),
        node("DequantizeLinear", "vq s z", "values"),
    ]
    constants = {"s": np.float32(0.03), "z": np.int8(5), "k": np.array([4])}
    data = file(nodes, feeds, ["values", "indices"], constants)
    assert [op.kind for op in prepared_of(data).graph.ops] == ["top_k"]
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for want, got in zip(session.run(None, feeds), run(prepared_of(data), feeds), strict=True):
        np.testing.assert_array_equal(got, want)
