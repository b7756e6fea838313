"""ONNX files that cannot be compiled: one clear error each, and never anything else."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tests.support.onnx_models import (
    QOPERATOR,
    compare,
    model_of,
    prepared_of,
    quantised,
    random_feeds,
    surrounded,
)
from toolchain.cli import run
from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.onnx.reader import read
from toolchain.passes.refuse_float import refuse_float

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


@pytest.mark.parametrize("inside", [False, True], ids=["model", "body"])
def test_names_that_are_no_text_are_refused(inside: bool) -> None:
    """Protobuf gives bytes for what is not UTF-8; a QLinear operator's attribute reached Python's
    keywords."""
    axis = helper.make_node("QLinearSoftmax", ["NAME", "in"], ["out"], "call", NAME=1)
    model = model_of([axis], {"x": (1, 4)}, ["y"], {"const": np.zeros(1, np.float32)})
    if inside:
        then = helper.make_graph(
            [axis],
            "then",
            [],
            [helper.make_tensor_value_info("NAME", 1, [1])],
            model.graph.initializer,
        )
        nodes = [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=then)]
        model = model_of(nodes, {"x": (1, 4)}, ["y"], {"c": np.array(True)})
    data = model.SerializeToString()
    names = (b"NAME", b"const", b"QLinearSoftmax", b"call", b"out", *(() if inside else (b"y",)))
    for name in names:
        assert name in data
        with pytest.raises(InputError, match="has a name that is no text"):
            read(data.replace(name, b"\xff" + name[1:]), PATH)


def test_float_model_is_told_how_to_quantise() -> None:
    graph = read(conv_model().SerializeToString(), PATH)
    with pytest.raises(UnsupportedError, match=r"float model.*thimble quantize.*--float"):
        refuse_float(graph, allowed=False)
    refuse_float(graph, allowed=True)
    nodes = [helper.make_node("Det", ["x"], ["y"])]
    model = model_of(nodes, {"x": (1, 3, 3)}, ["y"], {})
    message = refused(model)
    assert "float model" in message and "thimble quantize" in message and "Det" in message


def test_all_unsupported_operators_are_listed_at_once() -> None:
    nodes = [
        helper.make_node("Det", ["x"], ["a"], "first"),
        helper.make_node("NonZero", ["a"], ["b"], "second"),
        helper.make_node("FancyOp", ["b"], ["c"], "third", domain="my.domain"),
        helper.make_node("Det", ["c"], ["d"], "fourth"),
        helper.make_node("QuantizeLinear", ["d", "s"], ["y"], "fifth"),
    ]
    constants = {
        "s": np.float32(1),
    }
    with pytest.raises(UnsupportedError) as caught:
        read(model_of(nodes, {"x": (1, 3)}, ["y"], constants).SerializeToString(), PATH)
    message = str(caught.value)
    assert "4 of 5 operators" in message
    assert "Det (operators 0, 3)" in message
    assert "NonZero (operator 1)" in message and "my.domain.FancyOp (operator 2)" in message


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


def test_sums_of_integers_that_nothing_scales_are_refused() -> None:
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], "q"),
        helper.make_node("MatMulInteger", ["q", "w"], ["y"], "m"),
    ]
    model = model_of(
        nodes,
        {"x": (1, 3)},
        ["y"],
        {"w": np.ones((3, 2), np.uint8)},
        output_dtype=TensorProto.INT32,
    )
    message = refused(model)
    assert "MatMulInteger" in message and "the Mul of its scales" in message


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
    "open input": (_open_input, "--input-shape image=1x"),
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


SUFFICES = DIGITS.read_bytes().index(b"B\x04\n\x00\x10\x11") + 6
"""Bytes up to the end of the graph and of the version of ONNX's own operators. What follows says
nothing of the model: a file that ends between two of those fields is whole."""


@settings(max_examples=60, deadline=None)
@given(st.integers(0, SUFFICES - 1))
def test_truncated_files(length: int) -> None:
    with pytest.raises(InputError):
        read(DIGITS.read_bytes()[:length], PATH)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_flipped_bytes_never_raise_anything_else(data: st.DataObject) -> None:
    content = bytearray(DIGITS.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputError):
        prepared_of(bytes(content))


WINDOWS: dict[str, tuple[str, dict[str, list[int] | str], str]] = {
    "dilation": ("Conv", {"dilations": [40_000, 1], "pads": [80_000, 0, 0, 0]}, "dilations"),
    "stride": ("Conv", {"strides": [2**20, 1], "pads": [0, 0, 2**20, 0]}, "strides"),
    "padding": ("Conv", {"pads": [40_000, 0, 0, 0]}, "padding"),
    "pool": ("MaxPool", {"kernel_shape": [50_000, 1], "pads": [40_000, 0, 40_000, 0]}, "padding"),
    "transposed dilation": (
        "ConvTranspose",
        {"dilations": [1, 2**31], "auto_pad": "SAME_UPPER"},
        "dilations",
    ),
    "transposed stride": ("ConvTranspose", {"strides": [1, 2**20]}, "strides"),
    "transposed padding": (
        "ConvTranspose",
        {"strides": [20_000, 1], "pads": [40_000, 0, 0, 0]},
        "padding",
    ),
}


@pytest.mark.parametrize("case", WINDOWS)
def test_windows_beyond_16_bits_are_refused_before_anything_is_made(case: str) -> None:
    operator, attributes, what = WINDOWS[case]
    pool = operator == "MaxPool"
    node = helper.make_node(operator, ["x"] if pool else ["x", "w"], ["y"], **attributes)
    weights = {} if pool else {"w": np.ones((3, 3, 3, 3), np.float32)}
    message = refused(model_of([node], {"x": (1, 3, 8, 8)}, ["y"], weights))
    assert re.search(rf"{what} \[.*\] beyond 32,767", message), message


def test_filters_that_dilations_spread_beyond_memory_are_refused() -> None:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], dilations=[30_000, 30_000])
    weights = {"w": np.ones((3, 3, 3, 3), np.float32)}
    pads = helper.make_attribute("pads", [30_000, 30_000, 30_000, 30_000])
    node.attribute.append(pads)
    message = refused(model_of([node], {"x": (1, 3, 8, 8)}, ["y"], weights))
    assert "dilations [30000, 30000] spread to 32,401,080,009 weights" in message


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


def convolution_with(**attributes: object) -> onnx.ModelProto:
    model = conv_model()
    model.graph.node[0].attribute.extend(
        helper.make_attribute(name, value) for name, value in attributes.items()
    )
    return model


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"group": [1]}, "'group' of operator 0 .* is of type INTS, not INT"),
        ({"group": "two"}, "'group' of operator 0 .* is of type STRING, not INT"),
        ({"padding": 1}, "'padding'; ONNX knows none such"),
        ({"auto_pad": "SAME"}, "'auto_pad' of operator 0 .* is 'SAME', none of NOTSET, SAME_UPPER"),
    ],
)
def test_attributes_that_onnx_does_not_define(attributes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(convolution_with(**attributes).SerializeToString(), PATH)


def test_too_few_inputs() -> None:
    model = conv_model()
    del model.graph.node[0].input[1:]
    assert "has 1 inputs; ONNX gives it 2 to 3" in refused(model)


@pytest.mark.parametrize("code", [TensorProto.INT8, TensorProto.DOUBLE, TensorProto.INT64])
def test_an_output_declared_as_another_type(code: int) -> None:
    model = conv_model()
    model.graph.output[0].type.tensor_type.elem_type = code
    assert "the output 'y' is declared as" in refused(model)


@pytest.mark.parametrize("order", [[0, 3, 1], [0, 1, 1, 2], [0, 1, 2, 4]])
def test_a_permutation_that_is_none(order: list[int]) -> None:
    node = helper.make_node("Transpose", ["x"], ["y"], perm=order)
    refused(model_of([node], {"x": (1, 3, 4, 5)}, ["y"], {}))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_numbers(value: float) -> None:
    model = conv_model()
    weights = numpy_helper.to_array(model.graph.initializer[0]).copy()
    weights[1, 2, 0, 0] = value
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(weights, "w"))
    assert "holds NaN or infinity" in refused(model)


def test_the_scale_of_a_bias() -> None:
    model = onnx.load_model_from_string(quantised(conv_model(), form=QOPERATOR))
    convolution = next(n for n in model.graph.node if n.op_type == "QLinearConv")
    scale = next(t for t in model.graph.initializer if t.name == convolution.input[4])
    wide = numpy_helper.to_array(scale).reshape(-1, 1, 1)
    scale.CopyFrom(numpy_helper.from_array(wide, scale.name))
    model.graph.node.remove(convolution)
    bias = numpy_helper.from_array(np.zeros(4, np.int32), "bias")
    model.graph.initializer.append(bias)
    convolution.input.append("bias")
    model.graph.node.insert(1, convolution)
    assert "has the shape [4, 1, 1]" in refused(model)


@pytest.mark.parametrize("zero", [-128, 0, 127])
def test_a_pad_value_that_the_inputs_scale_cannot_hold(zero: int) -> None:
    """It is stored as the output is; where nothing says how that is, it is refused."""
    constants: dict[str, np.ndarray] = {
        "xs": np.float32(0.02),
        "xz": np.int8(127),
        "ys": np.float32(0.02),
        "yz": np.int8(zero),
        "pads": np.array([0, 1, 0, 1]),
        "value": np.float32(1.0),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "xs", "xz"], ["r"]),
        helper.make_node("Pad", ["r", "pads", "value"], ["p"]),
    ]
    after = [
        helper.make_node("QuantizeLinear", ["p", "ys", "yz"], ["pq"]),
        helper.make_node("DequantizeLinear", ["pq", "ys", "yz"], ["y"]),
    ]
    model = model_of([*nodes, *after], {"x": (2, 5)}, ["y"], constants)
    found = compare(model.SerializeToString(), random_feeds(model, 20, 0))
    assert found.differing == 0
    message = refused(model_of(nodes, {"x": (2, 5)}, ["p"], constants))
    assert "its value 1 lies outside of what its input's scale can hold" in message


def test_an_output_that_is_an_input_is_refused_with_the_files_name(
    digits: onnx.ModelProto,
) -> None:
    digits.graph.output.append(digits.graph.input[0])
    with pytest.raises(UnsupportedError, match=r"^x\.onnx: the output 'image' is the input itself"):
        read(digits.SerializeToString(), Path("x.onnx"))


@pytest.mark.parametrize(("zero", "exact"), [(-128, False), (0, True)])
def test_integers_without_a_zero_point_are_of_the_type_they_were_written_in(
    zero: int, exact: bool
) -> None:
    """int8 at -128 was taken for uint8 at 0, which an absent zero point means there alone."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("Transpose", ["q"], ["t"], perm=[1, 0]),
        helper.make_node("DequantizeLinear", ["t", "s"], ["y"], "last"),
    ]
    constants = {"s": np.float32(0.5), "z": np.int8(zero)}
    model = model_of(nodes, {"x": (4, 3)}, ["y"], constants)
    if exact:
        data = model.SerializeToString()
        found = compare(data, random_feeds(model, 3, 0))
        assert found.largest <= 1
    else:
        message = refused(model)
        assert "DequantizeLinear (operator 2)" in message and "another scale" in message


@pytest.mark.slow
@pytest.mark.parametrize("bias", [2**31 - 1, -(2**31) + 20_000])
def test_a_bias_that_fits_32_bits_but_not_with_the_sums(bias: int, tmp_path: Path) -> None:
    """Weights of 100 times an input that is 255 steps from its zero point, nine times over.

    Clipped, the bias moves the output by 46 of its steps; by 0.05, where they are 1000 times
    coarser. There ONNX Runtime's own optimiser lets it overflow: it is held against without."""
    constants: dict[str, np.ndarray] = {
        "s": np.float32(0.01),
        "z": np.int8(-128),
        "w": np.full((1, 1, 3, 3), 100, np.int8),
        "ws": np.float32(0.02),
        "b": np.array([bias], np.int32),
        "bs": np.float32(np.float32(0.01) * np.float32(0.02)),
        "ys": np.float32(1000),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["r"]),
        helper.make_node("DequantizeLinear", ["w", "ws"], ["wr"]),
        helper.make_node("DequantizeLinear", ["b", "bs"], ["br"]),
        helper.make_node("Conv", ["r", "wr", "br"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "ys", "z"], ["cq"]),
        helper.make_node("DequantizeLinear", ["cq", "ys", "z"], ["y"]),
    ]
    finer = model_of(nodes, {"x": (1, 1, 4, 4)}, ["y"], constants | {"ys": np.float32(1)})
    assert "its bias is too large for an int32 accumulator" in refused(finer)
    for number, sound in enumerate((constants, constants | {"b": np.array([bias // 2], np.int32)})):
        file = tmp_path / f"model{number}.onnx"
        made = model_of(nodes, {"x": (1, 1, 4, 4)}, ["y"], sound)
        file.write_bytes(made.SerializeToString())
        assert run(["verify", str(file), "-b", "host", "--runs", "5"]) == 0


@pytest.mark.parametrize(("columns", "steps", "sound"), [(11, 1600, True), (11, 1650, False)])
def test_a_quantised_softmax_that_overruns_float32(columns: int, steps: int, sound: bool) -> None:
    """ONNX Runtime's kernel holds exp(5) * columns; beyond, what should be the largest is 0."""
    constants = {
        "xs": np.float32(0.05),
        "xz": np.uint8(255),
        "ys": np.float32(1 / steps),
        "yz": np.uint8(0),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        helper.make_node(
            "QLinearSoftmax",
            ["q", "xs", "xz", "ys", "yz"],
            ["s"],
            domain="com.microsoft",
            axis=-1,
            opset=17,
        ),
        helper.make_node("DequantizeLinear", ["s", "ys", "yz"], ["y"]),
    ]
    model = model_of(nodes, {"x": (2, columns)}, ["y"], constants)
    if sound:
        assert compare(model.SerializeToString(), random_feeds(model, 5, 0)).largest <= 1
    else:
        assert "at which ONNX Runtime's kernel overruns float32" in refused(model)


@pytest.mark.parametrize(("opset", "sound"), [(17, True), (2**32 + 17, False), (2**63 - 1, False)])
def test_a_quantised_softmax_of_an_opset_beyond_32_bits(opset: int, sound: bool) -> None:
    """ONNX Runtime's kernel keeps 32 bits of it: of 2^63 - 1 that is -1, whose softmax is over all
    dimensions from its axis on."""
    constants = {
        "xs": np.float32(0.05),
        "xz": np.int8(-3),
        "ys": np.float32(1 / 256),
        "yz": np.int8(-128),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        helper.make_node(
            "QLinearSoftmax",
            ["q", "xs", "xz", "ys", "yz"],
            ["s"],
            domain="com.microsoft",
            axis=1,
            opset=opset,
        ),
        helper.make_node("DequantizeLinear", ["s", "ys", "yz"], ["y"]),
    ]
    model = model_of(nodes, {"x": (1, 5, 3, 4)}, ["y"], constants)
    if sound:
        assert compare(model.SerializeToString(), random_feeds(model, 5, 0)).largest <= 1
    else:
        assert f"is of opset {opset}, of which ONNX Runtime keeps 32 bits" in refused(model)


def test_a_function_is_not_blamed_for_what_contradicts_the_file() -> None:
    """ONNX defines it by others, which are read: only the declared type is wrong."""
    nodes = [helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)]
    constants = {name: np.ones(4, np.float32) for name in "sb"}
    model = model_of(
        nodes, {"x": (1, 4, 4, 4)}, ["y"], constants, 21, output_dtype=TensorProto.BOOL
    )
    message = refused(model)
    assert "declared as bool" in message and "GroupNormalization" not in message
