"""Operators that ONNX Runtime's quantiser left in float run in float32 between int8 ones."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import helper
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

from tests.support.onnx_models import Samples, compare, model_of, prepared_of, random_feeds, run
from toolchain.errors import UnsupportedError
from toolchain.frontends.onnx.reader import read
from toolchain.ir import DType

RNG = np.random.default_rng(31)


def node(operator: str, inputs: str, outputs: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def reals(*shape: int) -> NDArray[np.float32]:
    return (0.4 * RNG.standard_normal(shape)).astype(np.float32)


def detector() -> onnx.ModelProto:
    """A head as of YOLOv8: boxes by a softmax over bins, anchors and strides, beside scores."""
    nodes = [
        node("Conv", "x w0 b0", "c0", pads=[1] * 4, strides=[2, 2]),
        node("Sigmoid", "c0", "s0"),
        node("Mul", "c0 s0", "a0"),
        node("Conv", "a0 w1 b1", "c1", pads=[1] * 4),
        node("Reshape", "c1 flat", "r"),
        node("Split", "r sizes", "box cls", axis=1),
        node("Reshape", "box bins", "bb"),
        node("Transpose", "bb", "bt", perm=[0, 2, 1, 3]),
        node("Softmax", "bt", "bs", axis=1),
        node("Conv", "bs dfl", "d"),
        node("Reshape", "d four", "dd"),
        node("Slice", "dd i0 i2 one", "lt"),
        node("Slice", "dd i2 i4 one", "rb"),
        node("Sub", "anchors lt", "x1"),
        node("Add", "anchors rb", "x2"),
        node("Add", "x1 x2", "ss"),
        node("Div", "ss two", "cxy"),
        node("Sub", "x2 x1", "wh"),
        node("Concat", "cxy wh", "bxs", axis=1),
        node("Mul", "bxs strides", "bxx"),
        node("Sigmoid", "cls", "sc"),
        node("Concat", "bxx sc", "y", axis=1),
        node("Mul", "anchors two", "grid"),
    ]
    constants = {
        "w0": reals(8, 3, 3, 3),
        "b0": reals(8),
        "w1": reals(35, 8, 3, 3),
        "b1": reals(35),
        "flat": np.array([1, 35, 64]),
        "sizes": np.array([32, 3]),
        "bins": np.array([1, 4, 8, 64]),
        "dfl": np.arange(8, dtype=np.float32).reshape(1, 8, 1, 1),
        "four": np.array([1, 4, 64]),
        "i0": np.array([0]),
        "i2": np.array([2]),
        "i4": np.array([4]),
        "one": np.array([1]),
        "anchors": reals(1, 2, 64),
        "two": np.float32(2),
        "strides": np.abs(reals(1, 64)) * 20,
    }
    return model_of(nodes, {"x": (1, 3, 16, 16)}, ["y", "grid"], constants)


def partly_quantised(model: onnx.ModelProto, kinds: Sequence[str]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        onnx.save(model, source)
        quantize_static(
            source,
            target,
            Samples(iter(random_feeds(model, 8, seed=1))),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=list(kinds),
        )
        return target.read_bytes()


@pytest.mark.parametrize(
    "kinds",
    [
        ("Conv",),
        ("Conv", "Concat", "Mul"),
        ("Conv", "Add", "Sub", "Softmax", "Sigmoid"),
        ("Split", "MatMul"),
    ],
    ids="+".join,
)
def test_a_detector_of_which_some_is_quantised(kinds: tuple[str, ...]) -> None:
    """Its second output, the grid, is constant."""
    data = partly_quantised(detector(), kinds)
    prepared = prepared_of(data)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    kept = {op.kind for op in prepared.graph.ops if prepared.graph.output(op).dtype is DType.INT8}
    assert ("conv2d" in kept) == ("Conv" in kinds)
    for feed in random_feeds(detector(), 3, seed=9):
        for got, want in zip(run(prepared, feed), session.run(None, feed), strict=True):
            assert isinstance(want, np.ndarray) and got.shape == want.shape
            beyond = np.abs(got - want) > 2.0**-17 * np.abs(want).max()
            assert np.count_nonzero(beyond) <= 0.01 * got.size, "a half may go either way"


def test_parts_of_other_scales_are_joined_as_they_are() -> None:
    """No scale of one part holds the values of the other, a hundred times as large."""
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(2, 4, 3, 1, 1)).astype(np.float32) * [[[[[1.0]]]], [[[[100.0]]]]]
    constants = {"v": weights[0].astype(np.float32), "w": weights[1].astype(np.float32)}
    nodes = [node("Conv", "x v", "a"), node("Conv", "x w", "b")]
    nodes += [node("Concat", "a b", "both", axis=1), node("Sigmoid", "both", "y")]
    model = model_of(nodes, {"x": (1, 3, 8, 8)}, ["y"], constants)
    data = partly_quantised(model, ["Conv"])
    prepared = prepared_of(data)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for feed in random_feeds(model, 2, seed=9):
        ((got,), (want,)) = run(prepared, feed), session.run(None, feed)
        np.testing.assert_allclose(got, np.asarray(want), rtol=0, atol=2.0**-17)


def quantised(name: str, source: str) -> list[onnx.NodeProto]:
    """`source` stored as int8, and read again as `name`."""
    return [
        node("QuantizeLinear", f"{source} s z", f"{name}/q"),
        node("DequantizeLinear", f"{name}/q s z", name),
    ]


CONSTANTS = {"s": np.float32(0.02), "z": np.int8(3), "c": np.arange(6, dtype=np.int8)}


def test_constants_behind_dequantisation_are_folded() -> None:
    nodes = [
        *quantised("a", "x"),
        node("DequantizeLinear", "c s z", "real"),
        node("Reshape", "real rows", "wide"),
        node("Mul", "wide wide", "square"),
        node("Add", "a square", "b"),
        *quantised("y", "b"),
        node("Neg", "square", "minus"),
    ]
    constants = CONSTANTS | {"rows": np.array([2, 3])}
    model = model_of(nodes, {"x": (4, 2, 3)}, ["y", "minus"], constants)
    data = model.SerializeToString()
    found = prepared_of(data)
    feed = random_feeds(model, 1, 0)[0]
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for got, want in zip(run(found, feed), session.run(None, feed), strict=True):
        assert isinstance(want, np.ndarray) and np.abs(got - want).max() <= 0.0201


def test_an_input_that_one_operator_reads_as_float() -> None:
    nodes = [
        *quantised("a", "x"),
        node("Relu", "a", "r"),
        *quantised("b", "r"),
        node("Exp", "x", "e"),
        node("Mul", "b e", "m"),
        *quantised("y", "m"),
    ]
    model = model_of(nodes, {"x": (2, 5)}, ["y"], CONSTANTS)
    found = compare(model.SerializeToString(), random_feeds(model, 5, 0), optimise=False)
    assert found.differing == 0


def test_the_range_of_a_part_is_not_that_of_the_whole() -> None:
    """One slice is stored, of a small range; the other goes on in float, beyond that range."""
    nodes = [
        *quantised("a", "x"),
        node("Mul", "a spread", "m"),
        node("Slice", "m i0 i1 i1", "first"),
        node("Slice", "m i1 i2 i1", "second"),
        *quantised("b", "first"),
        node("Mul", "second spread", "far"),
        node("Concat", "b far", "d", axis=1),
        node("Sigmoid", "d", "e"),
        *quantised("y", "e"),
    ]
    more = {
        "spread": np.array([[0.1], [9.0]], np.float32),
        **{f"i{n}": np.array([n], np.int64) for n in range(3)},
    }
    model = model_of(nodes, {"x": (1, 2, 5)}, ["y"], CONSTANTS | more)
    found = compare(model.SerializeToString(), random_feeds(model, 5, 0), optimise=False)
    assert found.differing == 0


def test_the_list_is_whole_although_the_file_contradicts_itself() -> None:
    nodes = [
        *quantised("a", "x"),
        node("Transpose", "a", "t", perm=[0, 2]),
        node("Det", "x", "n"),
        node("Pad", "n p", "y", mode="edge"),
    ]
    model = model_of(nodes, {"x": (2, 5)}, ["y"], CONSTANTS | {"p": np.array([0, 1, 0, 0])})
    with pytest.raises(UnsupportedError) as caught:
        read(model.SerializeToString(), Path("model.onnx"))
    message = str(caught.value)
    assert "Det (operator 3)" in message and "besides, the model contradicts itself" in message


def test_operators_that_contradict_themselves_are_listed_with_the_others() -> None:
    nodes = [
        *quantised("a", "x"),
        node("QuantizeLinear", "a zero z", "q"),
        node("DequantizeLinear", "q zero z", "b"),
        node("Pad", "b p", "y", mode="edge"),
    ]
    constants = CONSTANTS | {"p": np.array([0, 1, 0, 0]), "zero": np.float32(0)}
    with pytest.raises(UnsupportedError) as caught:
        read(model_of(nodes, {"x": (2, 5)}, ["y"], constants).SerializeToString(), Path("m.onnx"))
    message = str(caught.value)
    assert "'edge'" in message and "besides, operator 2 (QuantizeLinear" in message
