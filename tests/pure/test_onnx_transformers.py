"""Transformers as onnxruntime quantises them: embeddings, attention, layer norm, gelu."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.onnx_models import (
    Comparison,
    compare,
    model_of,
    prepared_of,
    random_feeds,
    surrounded,
)
from toolchain.cli import run
from toolchain.frontends.onnx.reader import read
from toolchain.ops.movement.gather import index_limits

TOKENS, WIDTH, HEADS, WORDS = 6, 8, 2, 23


def _weights(seed: int, *shape: int) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 0.5).astype(np.float32)


def _save(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], file: Path) -> None:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "bert",
        [value("tokens", TensorProto.INT64, [1, TOKENS])],
        [value("y", TensorProto.FLOAT, [1, 3])],
        [numpy_helper.from_array(data, name) for name, data in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, str(file))


def _bert(file: Path) -> None:
    """One layer: embedding and positions, two heads of attention, a feed-forward with gelu."""
    node = helper.make_node
    depth = WIDTH // HEADS
    constants = {
        "words": _weights(0, WORDS, WIDTH),
        "places": _weights(1, TOKENS, WIDTH),
        "gain": 1 + 0.3 * _weights(2, WIDTH),
        "offset": _weights(3, WIDTH),
        "wq": _weights(4, WIDTH, WIDTH),
        "wk": _weights(5, WIDTH, WIDTH),
        "wv": _weights(6, WIDTH, WIDTH),
        "w1": _weights(7, WIDTH, 2 * WIDTH),
        "w2": _weights(8, 2 * WIDTH, WIDTH),
        "w3": _weights(9, WIDTH, 3),
        "heads": np.array([1, TOKENS, HEADS, depth]),
        "joined": np.array([1, TOKENS, WIDTH]),
        "root": np.array(1 / depth**0.5, np.float32),
        "first": np.array(0),
    }
    nodes = [
        node("Gather", ["words", "tokens"], ["embedded"], "lookup"),
        node("Add", ["embedded", "places"], ["placed"]),
        node("LayerNormalization", ["placed", "gain", "offset"], ["normed"], "norm1"),
    ]
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += [
            node("MatMul", ["normed", f"w{name}"], [f"{name}0"]),
            node("Reshape", [f"{name}0", "heads"], [f"{name}1"]),
            node("Transpose", [f"{name}1"], [name], perm=order),
        ]
    nodes += [
        node("MatMul", ["q", "k"], ["scores"]),
        node("Mul", ["scores", "root"], ["scaled"]),
        node("Softmax", ["scaled"], ["shares"]),
        node("MatMul", ["shares", "v"], ["mixed"]),
        node("Transpose", ["mixed"], ["turned"], perm=[0, 2, 1, 3]),
        node("Reshape", ["turned", "joined"], ["attended"]),
        node("Add", ["attended", "normed"], ["summed"]),
        node("LayerNormalization", ["summed", "gain"], ["normed2"], "norm2", epsilon=1e-3),
        node("MatMul", ["normed2", "w1"], ["wide"]),
        node("Gelu", ["wide"], ["bent"]),
        node("MatMul", ["bent", "w2"], ["narrow"]),
        node("Add", ["narrow", "normed2"], ["out"]),
        node("Gather", ["out", "first"], ["token"], "first_token", axis=1),
        node("MatMul", ["token", "w3"], ["y"]),
    ]
    _save(nodes, constants, file)


@pytest.fixture(scope="module")
def quantised(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("bert")
    _bert(folder / "bert.onnx")
    words = np.random.default_rng(0).integers(0, WORDS, (40, 1, TOKENS))
    np.save(folder / "words.npy", words)
    command = ["quantize", str(folder / "bert.onnx"), "-d", str(folder / "words.npy")]
    assert run([*command, "-o", str(folder / "int8.onnx")]) == 0
    return (folder / "int8.onnx").read_bytes()


def _feeds(count: int) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    return [{"tokens": rng.integers(0, WORDS, (1, TOKENS))} for _ in range(count)]


def test_a_transformer_is_read_whole(quantised: bytes) -> None:
    graph = read(quantised, Path("bert.onnx"))
    kinds = Counter(op.kind for op in graph.ops)
    assert kinds["gather"] == 1 and kinds["layer_norm"] == 2 and kinds["softmax_once"] == 1
    assert kinds["batch_matmul"] == 2
    assert index_limits(prepared_of(quantised).graph) == {"tokens": WORDS}


def test_a_transformer_is_close_to_onnxruntime(quantised: bytes) -> None:
    """Every operator rounds as it does: hardly anything is left to grow on the way."""
    found: Comparison = compare(quantised, _feeds(20), optimise=False)
    assert found.elements == 60
    assert found.largest <= 1, found
    assert found.differing <= 2, found


@pytest.mark.parametrize(
    ("shape", "axis"), [((1, 6, 8), -1), ((2, 5, 4, 3), 2), ((1, 3, 17), 1), ((4, 129), -1)]
)
def test_layer_norm_equals_onnxruntime(shape: tuple[int, ...], axis: int) -> None:
    rng = np.random.default_rng(len(shape))
    row = shape[axis:]
    gain = (1 + 0.3 * rng.standard_normal(row)).astype(np.float32)
    offset = rng.standard_normal(row).astype(np.float32)
    node = helper.make_node("LayerNormalization", ["x", "gain", "offset"], ["y"], axis=axis)
    model = model_of([node], {"x": shape}, ["y"], {"gain": gain, "offset": offset})
    found = compare(surrounded(model), random_feeds(model, 10, 2), optimise=False)
    assert found.differing == 0, found


@pytest.mark.parametrize("shape", [(2, 5, 4, 3), (1, 3, 17), (1, 129, 2, 2)])
def test_instance_norm_equals_onnxruntime(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape))
    gain, offset = rng.standard_normal((2, shape[1])).astype(np.float32)
    node = helper.make_node("InstanceNormalization", ["x", "gain", "offset"], ["y"])
    model = model_of([node], {"x": shape}, ["y"], {"gain": gain, "offset": offset})
    found = compare(surrounded(model), random_feeds(model, 10, 2), optimise=False)
    assert found.differing <= 1 and found.largest <= 1, found


@pytest.mark.parametrize(
    ("kind", "constant"),
    [
        ("Tile", np.array([1, 2, 3, 1])),
        ("Expand", np.array([3, 4, 5, 6])),
        ("Expand", np.array([2, 1, 4, 5, 6])),
        ("Gather", np.array([3, 0, 0, -1, 2])),
        ("Gather", np.array([[1, 3], [0, 2]])),
    ],
)
def test_what_only_moves_is_exact(kind: str, constant: np.ndarray) -> None:
    shape = (1, 4, 5, 6)
    attributes = {"axis": 1} if kind == "Gather" else {}
    node = helper.make_node(kind, ["x", "c"], ["y"], **attributes)
    model = model_of([node], {"x": shape}, ["y"], {"c": constant})
    found = compare(surrounded(model), random_feeds(model, 5, 3), optimise=False)
    assert found.largest <= 1, found


@pytest.mark.parametrize("divisor", [np.array(2**0.5), np.array([[[-3.0]]])])
def test_division_by_one_number(divisor: np.ndarray) -> None:
    node = helper.make_node("Div", ["x", "c"], ["y"])
    model = model_of([node], {"x": (1, 5, 7)}, ["y"], {"c": divisor.astype(np.float32)})
    found = compare(surrounded(model), random_feeds(model, 5, 3), optimise=False)
    assert found.differing == 0, found


def test_quotient_of_two_tensors() -> None:
    """As x / deviation in a layer norm that came apart; the divisor is not near zero."""
    nodes = [
        helper.make_node("Abs", ["b"], ["size"]),
        helper.make_node("Add", ["size", "two"], ["divisor"]),
        helper.make_node("Div", ["a", "divisor"], ["y"]),
    ]
    two = {"two": np.array(2, np.float32)}
    model = model_of(nodes, {"a": (1, 5, 7), "b": (1, 5, 1)}, ["y"], two)
    found = compare(surrounded(model), random_feeds(model, 20, 3), optimise=False)
    assert found.largest <= 1, found
