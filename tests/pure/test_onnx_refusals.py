"""ONNX files that cannot be compiled: one clear error each, and never anything else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tests.support.onnx_models import model_of, prepared_of, quantised, surrounded
from toolchain.errors import InputError, UnsupportedError
from toolchain.float_use import check_leave
from toolchain.frontends.onnx import read

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_qdq.onnx"
PATH = Path("model.onnx")


@pytest.fixture
def digits() -> onnx.ModelProto:
    return onnx.load(DIGITS)


def refused(model: onnx.ModelProto) -> str:
    with pytest.raises(InputError) as caught:
        read(model.SerializeToString(), PATH)
    return str(caught.value)


def conv_model() -> onnx.ModelProto:
    node = helper.make_node("Conv", ["x", "w"], ["y"], "conv")
    weights = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    return model_of([node], {"x": (1, 3, 8, 8)}, ["y"], {"w": weights})


def test_float_model_is_told_how_to_quantise() -> None:
    graph = read(conv_model().SerializeToString(), PATH)
    with pytest.raises(UnsupportedError, match=r"float model.*thimble quantize.*--float"):
        check_leave(graph, allowed=False)
    check_leave(graph, allowed=True)
    nodes = [helper.make_node("CumSum", ["x", "axis"], ["y"])]
    model = model_of(nodes, {"x": (1, 3)}, ["y"], {"axis": np.int64(0)})
    message = refused(model)
    assert "float model" in message and "thimble quantize" in message and "CumSum" in message


def test_all_unsupported_operators_are_listed_at_once() -> None:
    nodes = [
        helper.make_node("CumSum", ["x", "axis"], ["a"], "first"),
        helper.make_node("LSTM", ["a", "w", "r"], ["b"], "second"),
        helper.make_node("FancyOp", ["b"], ["c"], "third", domain="my.domain"),
        helper.make_node("CumSum", ["c", "axis"], ["d"], "fourth"),
        helper.make_node("QuantizeLinear", ["d", "s"], ["y"], "fifth"),
    ]
    constants = {
        "axis": np.int64(0),
        "s": np.float32(1),
        "w": np.zeros((1, 4, 1), np.float32),
        "r": np.zeros((1, 4, 1), np.float32),
    }
    with pytest.raises(UnsupportedError) as caught:
        read(model_of(nodes, {"x": (1, 3)}, ["y"], constants).SerializeToString(), PATH)
    message = str(caught.value)
    assert "4 of 5 operators" in message
    assert "CumSum (operators 0, 3)" in message
    assert "LSTM (operator 1)" in message and "my.domain.FancyOp (operator 2)" in message


def test_every_problem_of_known_operators_is_listed_too() -> None:
    nodes = [
        helper.make_node("Pad", ["x", "p"], ["a"], "edges", mode="edge"),
        helper.make_node("MaxPool", ["a"], ["y"], "pool", kernel_shape=[2, 2], dilations=[2, 2]),
    ]
    pads = {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1])}
    data = surrounded(model_of(nodes, {"x": (1, 2, 6, 6)}, ["y"], pads))
    with pytest.raises(UnsupportedError) as caught:
        read(data, PATH)
    message = str(caught.value)
    assert "Pad" in message and "'edge'" in message and "dilations" in message


def test_dynamic_quantisation_is_told_to_be_static() -> None:
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], "q"),
        helper.make_node("MatMulInteger", ["q", "w"], ["y"], "m"),
    ]
    model = model_of(nodes, {"x": (1, 3)}, ["y"], {"w": np.ones((3, 2), np.uint8)})
    assert "quantize_static instead of quantize_dynamic" in refused(model)


def test_weights_with_a_zero_point_say_the_remedy() -> None:
    weights = np.abs(np.random.default_rng(0).standard_normal((4, 3, 3, 3))).astype(np.float32)
    weights[0] *= -0.2
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], "conv")
    model = model_of([node], {"x": (1, 4, 8, 8)}, ["y"], {"w": weights})
    data = quantised(model, per_channel=False, WeightSymmetric=False)
    with pytest.raises(UnsupportedError, match="WeightSymmetric"):
        read(data, PATH)


def _cycle(model: onnx.ModelProto) -> None:
    first, last = model.graph.node[0], model.graph.node[-1]
    first.input[0] = last.input[0]


def _duplicate_output(model: onnx.ModelProto) -> None:
    model.graph.node[1].output[0] = model.graph.node[0].output[0]


def _duplicate_initialiser(model: onnx.ModelProto) -> None:
    model.graph.initializer.add().CopyFrom(model.graph.initializer[0])


def _missing_initialiser(model: onnx.ModelProto) -> None:
    del model.graph.initializer[0]


def _external_data(model: onnx.ModelProto) -> None:
    tensor = model.graph.initializer[0]
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")


def _huge_input(model: onnx.ModelProto) -> None:
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_value = 1 << 40


def _negative_input(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = -5


def _open_input(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"


def _short_tensor(model: onnx.ModelProto) -> None:
    tensor = max(model.graph.initializer, key=lambda t: len(t.raw_data))
    tensor.raw_data = tensor.raw_data[:-3]


def _huge_tensor(model: onnx.ModelProto) -> None:
    tensor = max(model.graph.initializer, key=lambda t: len(t.raw_data))
    tensor.dims[0] = 1 << 50


def _no_nodes(model: onnx.ModelProto) -> None:
    del model.graph.node[:]


def _no_outputs(model: onnx.ModelProto) -> None:
    del model.graph.output[:]


def _unknown_output(model: onnx.ModelProto) -> None:
    model.graph.output[0].name = "nothing"


def _scale(model: onnx.ModelProto, value: float) -> None:
    name = next(n.input[1] for n in model.graph.node if n.op_type == "QuantizeLinear")
    tensor = next(t for t in model.graph.initializer if t.name == name)
    tensor.CopyFrom(numpy_helper.from_array(np.float32(value), name))


def _wrong_channels(model: onnx.ModelProto) -> None:
    conv = next(n for n in model.graph.node if n.op_type == "Conv")
    next(a for a in conv.attribute if a.name == "group").i = 7


def _future_opset(model: onnx.ModelProto) -> None:
    for imported in model.opset_import:
        if imported.domain == "":
            imported.version = 900


HOSTILE: dict[str, tuple[Callable[[onnx.ModelProto], None], str]] = {
    "cycle": (_cycle, "cycle"),
    "duplicate output": (_duplicate_output, "already defined"),
    "duplicate initialiser": (_duplicate_initialiser, "two initialisers"),
    "missing initialiser": (_missing_initialiser, "nothing defines"),
    "external data": (_external_data, "another file"),
    "huge input": (_huge_input, "impossible shape"),
    "negative input": (_negative_input, "negative dimension"),
    "open input": (_open_input, "make_dynamic_shape_fixed"),
    "short tensor": (_short_tensor, "disagree"),
    "huge tensor": (_huge_tensor, "impossible shape"),
    "no nodes": (_no_nodes, "no operators"),
    "no outputs": (_no_outputs, "no outputs"),
    "unknown output": (_unknown_output, "nothing computes"),
    "zero scale": (lambda model: _scale(model, 0.0), "not a positive number"),
    "infinite scale": (lambda model: _scale(model, np.inf), "not a positive number"),
    "wrong group": (_wrong_channels, "contradict"),
    "future opset": (_future_opset, "version 900"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_get_a_clear_error(case: str, digits: onnx.ModelProto) -> None:
    spoil, expected = HOSTILE[case]
    spoil(digits)
    message = refused(digits)
    assert expected in message and message.startswith("model.onnx:")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 21000))
def test_truncated_files(length: int) -> None:
    data = DIGITS.read_bytes()
    if length >= len(data):
        return
    with pytest.raises(InputError):
        read(data[:length], PATH)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_flipped_bytes_never_raise_anything_else(data: st.DataObject) -> None:
    content = bytearray(DIGITS.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputError):
        prepared_of(bytes(content))


def test_names_of_any_kind_are_kept(digits: onnx.ModelProto) -> None:
    """Names are the code generator's business; here they only must not clash."""
    strange = '*/ int x; /* "ü"'
    digits.graph.node[3].name = strange
    for node in digits.graph.node:
        for names in (node.input, node.output):
            for index, name in enumerate(names):
                names[index] = strange if name == "image" else name
    digits.graph.input[0].name = strange
    assert prepared_of(digits.SerializeToString()).graph.inputs == (strange,)
