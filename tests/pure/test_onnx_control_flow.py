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
from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends import written_out


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


def nested(turns: int, inner: Sequence[onnx.NodeProto], result: str) -> onnx.ModelProto:
    """y = x, carried through `turns` turns of a loop whose body is `inner`."""
    inputs = [end("i", TensorProto.INT64, []), end("c", TensorProto.BOOL, []), end("h")]
    nodes = [node("Identity", "c", "go"), *inner]
    outputs = [end("go", TensorProto.BOOL), end(result)]
    own = [
        numpy_helper.from_array(np.int64(turns), "inner_turns"),
        numpy_helper.from_array(np.array(True), "inner_yes"),
    ]
    graph = helper.make_graph(nodes, "body", inputs, outputs, own)
    loop = helper.make_node("Loop", ["turns", "yes", "x"], ["y"], body=graph)
    constants: dict[str, NDArray[np.generic]] = {"turns": np.int64(turns), "yes": np.array(True)}
    return model_of([loop], {"x": (1, 4)}, ["y"], constants)


def test_loops_in_loops_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each loop turns 20 times, both together 400 times."""
    ends = [end("j", TensorProto.INT64, []), end("d", TensorProto.BOOL, []), end("k")]
    nodes = [node("Identity", "d", "on"), node("Add", "k k", "twice")]
    graph = helper.make_graph(nodes, "inner", ends, [end("on", TensorProto.BOOL), end("twice")])
    names = ["inner_turns", "inner_yes", "h"]
    model = nested(20, [helper.make_node("Loop", names, ["inner_h"], body=graph)], "inner_h")
    monkeypatch.setattr(written_out, "MOST_WRITTEN", 40 + 800)
    assert len(prepared_of(model.SerializeToString()).graph.ops) == 400
    monkeypatch.setattr(written_out, "MOST_WRITTEN", 40 + 800 - 1)
    with pytest.raises(InputError, match=r"Loop .*written out, turn by turn"):
        prepared_of(model.SerializeToString())


def test_a_loop_does_not_double_a_constant_without_end() -> None:
    """2^40 elements, if they were computed."""
    inputs = [end("i", TensorProto.INT64, []), end("c", TensorProto.BOOL, []), end("h")]
    nodes = [node("Identity", "c", "go"), node("Concat", "h h", "twice", axis=0)]
    outputs = [end("go", TensorProto.BOOL), end("twice")]
    graph = helper.make_graph(nodes, "body", inputs, outputs)
    loop = helper.make_node("Loop", ["turns", "yes", "one"], ["many"], body=graph)
    add = node("Add", "x many", "y")
    constants: dict[str, NDArray[np.generic]] = {
        "turns": np.int64(40),
        "yes": np.array(True),
        "one": np.float32([1]),
    }
    with pytest.raises(InputError):
        prepared_of(model_of([loop, add], {"x": (1, 4)}, ["y"], constants).SerializeToString())
