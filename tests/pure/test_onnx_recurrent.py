"""ONNX LSTM, GRU and RNN against ONNX Runtime, alone and inside a quantised keyword spotter."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import helper

from tests.support.onnx_models import compare, model_of, prepared_of, quantised, random_feeds, run
from toolchain.errors import UnsupportedError
from toolchain.ir import DType
from toolchain.passes.refuse_float import refuse_float

RNG = np.random.default_rng(77)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCHES, INPUTS, UNITS = 5, 2, 4, 3


def reals(*shape: int) -> NDArray[np.float32]:
    return (0.6 * RNG.standard_normal(shape)).astype(np.float32)


def layer(
    operator: str,
    direction: str = "forward",
    outputs: str = "y h c",
    states: str = "",
    layout: int = 0,
    **attributes: object,
) -> onnx.ModelProto:
    """`outputs`: which are the model's; `states`: 'given' as inputs, 'constant', or absent."""
    both = 2 if direction == "bidirectional" else 1
    rows = GATES[operator] * UNITS
    constants: dict[str, NDArray[np.generic]] = {
        "w": reals(both, rows, INPUTS),
        "r": reals(both, rows, UNITS),
        "b": reals(both, 2 * rows),
    }
    state = (BATCHES, both, UNITS) if layout else (both, BATCHES, UNITS)
    inputs: dict[str, tuple[int, ...]] = {
        "x": (BATCHES, STEPS, INPUTS) if layout else (STEPS, BATCHES, INPUTS)
    }
    names = ["x", "w", "r", "b"]
    kinds = 2 if operator == "LSTM" else 1
    if states:
        names += ["", *("h0", "c0")[:kinds]]
    for name in ("h0", "c0")[:kinds]:
        if states == "given":
            inputs[name] = state
        elif states == "constant":
            constants[name] = reals(*state)
    made = ("y", "h", "c")[: kinds + 1]
    wanted = [name for name in made if name in outputs.split()]
    extra = {"layout": 1} if layout else {}
    node = helper.make_node(
        operator,
        names,
        [name if name in wanted else "" for name in made],
        hidden_size=UNITS,
        direction=direction,
        **extra,
        **attributes,
    )
    return model_of([node], inputs, wanted, constants)


CASES = {
    f"{operator} {direction} {outputs} {states}".strip(): layer(
        operator, direction, outputs, states
    )
    for operator in GATES
    for direction, outputs, states in (
        ("forward", "y h c", "given"),
        ("reverse", "y h", "constant"),
        ("bidirectional", "y h c", ""),
        ("bidirectional", "h", "given"),
        ("forward", "h", ""),
        ("forward", "y", ""),
    )
} | {
    "GRU reset after": layer("GRU", linear_before_reset=1, states="given"),
    "GRU both, reset after": layer("GRU", "bidirectional", "y", linear_before_reset=1),
    "RNN rectified": layer("RNN", activations=["Relu"]),
    "LSTM without forward": layer("LSTM", outputs="c"),
}


@pytest.mark.parametrize("case", CASES)
def test_near_onnx_runtime(case: str) -> None:
    model = CASES[case]
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    prepared = prepared_of(data)
    for feed in random_feeds(model, 3, 4):
        for got, want in zip(run(prepared, feed), session.run(None, feed), strict=True):
            assert isinstance(want, np.ndarray) and got.shape == want.shape
            assert np.abs(got - want).max() <= 2.0**-17


@pytest.mark.parametrize("operator", GATES)
def test_batches_first(operator: str) -> None:
    """ONNX Runtime does not run layout 1; it is layout 0 with other dimensions first."""
    first = layer(operator, "bidirectional", "y h c", "given", layout=1)
    second = onnx.ModelProto.FromString(first.SerializeToString())
    (node,) = second.graph.node
    node.attribute.remove(next(a for a in node.attribute if a.name == "layout"))
    for value in second.graph.input:
        dims = value.type.tensor_type.shape.dim
        one, other = dims[0].dim_value, dims[1].dim_value
        dims[0].dim_value, dims[1].dim_value = other, one
    feed = random_feeds(first, 1, 3)[0]
    moved = {name: np.swapaxes(value, 0, 1) for name, value in feed.items()}
    got = run(prepared_of(first.SerializeToString()), feed)
    want = run(prepared_of(second.SerializeToString()), moved)
    back = [np.moveaxis(want[0], 2, 0), *(np.swapaxes(state, 0, 1) for state in want[1:])]
    for one_result, other_result in zip(got, back, strict=True):
        assert np.array_equal(one_result, other_result)


@pytest.mark.parametrize("operator", GATES)
def test_a_quantised_keyword_spotter(operator: str) -> None:
    """Convolutions and the classifier in int8, the recurrent layer in float32 between them."""
    rows = GATES[operator] * 6
    nodes = [
        helper.make_node("Conv", ["x", "k", "kb"], ["c"], pads=[1, 1], strides=[2]),
        helper.make_node("Relu", ["c"], ["a"]),
        helper.make_node("Transpose", ["a"], ["t"], perm=[2, 0, 1]),
        helper.make_node(operator, ["t", "w", "r", "b"], ["", "h"], hidden_size=6),
        helper.make_node("Squeeze", ["h", "zero"], ["s"]),
        helper.make_node("Gemm", ["s", "d", "db"], ["y"]),
    ]
    constants: dict[str, NDArray[np.generic]] = {
        "k": reals(5, 4, 3),
        "kb": reals(5),
        "w": reals(1, rows, 5),
        "r": reals(1, rows, 6),
        "b": reals(1, 2 * rows),
        "zero": np.array([0]),
        "d": reals(6, 3),
        "db": reals(3),
    }
    data = quantised(model_of(nodes, {"x": (1, 4, 12)}, ["y"], constants))
    found = compare(data, random_feeds(onnx.load_from_string(data), 5, 2), optimise=False)
    assert found.differing <= 1 and found.largest <= 1
    graph = found.prepared.graph
    types = {op.kind: graph.output(op).dtype for op in graph.ops}
    assert types["conv2d"] is DType.INT8 and types["recurrent_layer"] is DType.FLOAT32
    refuse_float(graph, allowed=False)  # most weights are the layer's, which has no int8 form


def test_what_no_exporter_writes_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="the activations sigmoid, relu"):
        prepared_of(layer("GRU", activations=["Sigmoid", "Relu"]).SerializeToString())
    with pytest.raises(UnsupportedError, match="clipping"):
        prepared_of(layer("RNN", clip=1.0).SerializeToString())
