"""Loop and If whose course is known are written out; others are refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tests.support.onnx_models import model_of, prepared_of, random_feeds, run
from toolchain.errors import UnsupportedError


def node(operator: str, inputs: str, outputs: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def end(
    name: str, dtype: int = TensorProto.FLOAT, shape: Sequence[int] | None = None
) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def body(condition: Sequence[onnx.NodeProto]) -> onnx.GraphProto:
    """h = tanh(h + x[i] + offset), collected; `condition` gives 'go'."""
    nodes = [
        node("Gather", "x i", "row", axis=0),
        node("Add", "h row", "s"),
        node("Add", "s offset", "t"),
        node("Tanh", "t", "next"),
        node("Identity", "next", "each"),
        *condition,
    ]
    inputs = [
        end("i", TensorProto.INT64, []),
        end("c", TensorProto.BOOL, []),
        end("h", shape=[3]),
    ]
    outputs = [end("go", TensorProto.BOOL), end("next"), end("each")]
    offset = numpy_helper.from_array(np.float32([0.1, -0.2, 0.3]), "offset")
    last = numpy_helper.from_array(np.int64(2), "last")
    return helper.make_graph(nodes, "body", inputs, outputs, [offset, last])


def looped(condition: Sequence[onnx.NodeProto], count: str = "five") -> onnx.ModelProto:
    inputs = [count, "yes", "first"]
    nodes = [helper.make_node("Loop", inputs, ["h", "y"], body=body(condition))]
    constants: dict[str, NDArray[np.generic]] = {
        "five": np.int64(5),
        "yes": np.array(True),
        "first": np.float32([0.5, 0, -0.5]),
    }
    return model_of(nodes, {"x": (5, 3)}, ["h", "y"], constants)


CONSTANT = [node("Identity", "c", "go")]
CASES = {
    "for": looped(CONSTANT),
    "while": looped([node("Less", "i last", "go")]),
    "only while": looped([node("Less", "i last", "go")], count=""),
}


def near(model: onnx.ModelProto) -> None:
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for feed in random_feeds(model, 3, 3):
        results = zip(run(prepared_of(data), feed), session.run(None, feed), strict=True)
        for got, want in results:
            assert isinstance(want, np.ndarray) and got.shape == want.shape
            assert np.abs(got - want).max() <= 2.0**-20


@pytest.mark.parametrize("case", CASES)
def test_a_loop_is_unrolled(case: str) -> None:
    near(CASES[case])


@pytest.mark.parametrize("taken", [True, False])
def test_the_branch_that_is_taken(taken: bool) -> None:
    branches = {
        f"{name}_branch": helper.make_graph([node(operator, "x", "r")], name, [], [end("r")])
        for name, operator in (("then", "Relu"), ("else", "Abs"))
    }
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "first"),
        node("Equal", "first wanted", "c"),
        node("If", "c", "b", **branches),
        node("Sigmoid", "b", "y"),
    ]
    constants = {"zero": np.int64(0), "wanted": np.int64(2 if taken else 3)}
    near(model_of(nodes, {"x": (2, 3)}, ["y"], constants))


def test_a_branch_that_stands_before_what_it_reads() -> None:
    """ONNX Runtime's quantiser sees inputs alone: the If comes first, and what it quantised is read
    by nothing."""
    branches = {
        f"{name}_branch": helper.make_graph([node(operator, "a", "r")], name, [], [end("r")])
        for name, operator in (("then", "Relu"), ("else", "Neg"))
    }
    nodes = [
        node("If", "c", "y", **branches),
        node("Sigmoid", "x", "a"),
        node("QuantizeLinear", "a s z", "q"),
        node("DequantizeLinear", "q s z", "unread"),
    ]
    constants = {"c": np.array(True), "s": np.float32(0.25), "z": np.int8(0)}
    near(model_of(nodes, {"x": (2, 3)}, ["y"], constants))


def test_a_loop_whose_end_depends_on_values_is_refused() -> None:
    condition = [
        node("ReduceSum", "next", "total", keepdims=0),
        node("Less", "total big", "go"),
    ]
    model = looped(condition)
    model.graph.initializer.append(numpy_helper.from_array(np.float32(9), "big"))
    with pytest.raises(UnsupportedError, match=r"Loop.*control flow"):
        prepared_of(model.SerializeToString())
