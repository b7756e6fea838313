"""--input-shape: dimensions that a model file leaves open."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.onnx_models import Samples, random_feeds
from toolchain import errors
from toolchain.cli import run
from toolchain.frontends import Reading, load_model
from toolchain.planning.options import PlanOptions

NAME = "my=image"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A quantised convolution over an image of any size, then a mean."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    weights = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", [NAME, "w"], ["c"], pads=[1] * 4),
        helper.make_node("GlobalAveragePool", ["c"], ["y"]),
    ]
    open_shape = ["batch", 3, "height", "width"]
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info(NAME, TensorProto.FLOAT, open_shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    source, target = tmp_path / "float.onnx", tmp_path / "model.onnx"
    onnx.save(made, source)
    closed = onnx.load(source)
    for dim, size in zip(
        closed.graph.input[0].type.tensor_type.shape.dim, (1, 3, 8, 8), strict=True
    ):
        dim.dim_value = size
    quantize_static(
        source,
        target,
        Samples(iter(random_feeds(closed, 4, 1))),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
    )
    return target


def test_it_is_verified_with_that_shape(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = f"{NAME}=1x3x12x10"
    words = ["--input-shape", shape, "-b", "host", "--runs", "3", "--json", "-"]
    assert run(["verify", str(model), *words]) == 0
    assert json.loads(capsys.readouterr().out)["elements"] == 3 * 4
    (name,) = load_model(model, Reading({NAME: (1, 3, 12, 10)})).inputs
    assert name == NAME


def test_shape_arithmetic_is_not_blamed_for_an_open_shape(tmp_path: Path) -> None:
    """A Shape becomes a constant with --input-shape: only the open dimension is a fault."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Shape", ["r"], ["s"]),
        helper.make_node("Reshape", ["x", "s"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, "n"]) for n in "xy"]
    graph = helper.make_graph(nodes, "model", ends[:1], ends[1:])
    path = tmp_path / "model.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path
    )
    with pytest.raises(errors.InputError, match="dimension 1 of the input 'x' is open") as found:
        load_model(path, Reading(allow_float=True))
    assert "Shape (" not in str(found.value)
    load_model(path, Reading({"x": (1, 4)}, allow_float=True))


def test_it_is_kept_among_the_words_of_a_command() -> None:
    options = PlanOptions.of({"input_shape": [f"{NAME}=1x3x12x10"]})
    assert options.input_shapes == ((NAME, (1, 3, 12, 10)),)
    assert options.words == ["--input-shape", f"{NAME}=1x3x12x10"]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({}, "--input-shape my=image=1x3x.x., with a number"),
        ({NAME: (1, 4, 8, 8)}, "the file has .x3x.x., of which only . is open"),
        ({NAME: (1, 3, 8)}, "of which only"),
        ({"other": (1,)}, "there is no input 'other'; the inputs are my=image"),
    ],
)
def test_what_does_not_fit(model: Path, shapes: dict[str, tuple[int, ...]], message: str) -> None:
    with pytest.raises(errors.InputError, match=message):
        load_model(model, Reading(shapes))


@pytest.mark.parametrize("text", ["image", "image=", "image=1x0", "=1x2", "image=1,2", "image=-1"])
def test_what_is_no_shape(text: str) -> None:
    with pytest.raises(errors.InputError, match="write it as NAME=1x3x192x192"):
        PlanOptions.of({"input_shape": [text]})


IMAGE = "serving_default_image:0"
OPEN = Path(__file__).parents[1] / "ecosystem" / "tf_open_sizes.tflite"
DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


@pytest.mark.parametrize(
    ("file", "shapes", "message"),
    [
        (OPEN, {}, "or give it: --input-shape serving_default_image:0=1x.x.x3, with a number"),
        (
            OPEN,
            {IMAGE: (1, 8, 8, 4)},
            r"4: the file has \?x\?x\?x3, of which only . is open",
        ),
        (OPEN, {IMAGE: (1, 8, 8)}, "=1x8x8: the file has"),
        (OPEN, {IMAGE: (1, 9000, 9000, 3)}, "more than 16,777,216 elements"),
        (OPEN, {"image": (1, 8, 8, 3)}, "there is no input 'image'; the inputs are 'serving"),
        (DIGITS, {"serving_default_image:0": (1, 9, 8, 1)}, "the file has .x8x8x1"),
    ],
)
def test_what_does_not_fit_a_tflite_file(
    file: Path, shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    with pytest.raises(errors.InputError, match=message) as caught:
        load_model(file, Reading(shapes))
    assert str(caught.value).startswith(f"{file.name}: ")


def test_the_shapes_of_a_tflite_file_follow_from_its_inputs() -> None:
    """A batch of two, and sizes that the strides do not divide; the C is compared in
    host_c/test_ecosystem.py."""
    graph = load_model(OPEN, Reading({IMAGE: (2, 5, 9, 3)}))
    shapes = [graph.tensors[name].shape for name in (*graph.inputs, *graph.outputs)]
    assert shapes == [(2, 5, 9, 3), (2, 12, 20, 3)]
