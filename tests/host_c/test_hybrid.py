"""Float activations beside int8 weights: exact against LiteRT's hybrid kernels."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from tests.support.hybrid import hybrid_network
from tests.support.tflite_writer import tflite_bytes
from toolchain.boards import board as find_board
from toolchain.cli import run
from toolchain.deployment.verification import verify_model
from toolchain.errors import UnsupportedError
from toolchain.frontends import load_model
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import forms
from toolchain.ops.arithmetic.dynamic_range import Range, quantised
from toolchain.ops.check import check
from toolchain.ops.hybrid.convolutions import HybridConvolution
from toolchain.ops.hybrid.dense import HybridDense
from toolchain.ops.hybrid.product import HybridMatMul
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.reference.process import RuntimeProcess
from toolchain.reference.tflite import open_tflite


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "hybrid.tflite"
    path.write_bytes(tflite_bytes(hybrid_network()))
    return path


def test_a_network_equals_litert(model: Path) -> None:
    result = verify_model(model, board="host", runs=12, options=PlanOptions(allow_float=True))
    assert result.reference.startswith("LiteRT's reference kernels")
    assert (result.elements, result.max_difference) == (12 * 7, 0)


@pytest.mark.parametrize("shape", [(33, 3), (3, 66), (1, 11, 9)])
def test_a_dense_layer_reads_rows_across_the_axes_of_its_input(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    """Its filters are one group, however long the last axis is."""
    rng = np.random.default_rng(4)
    rows = math.prod(shape) // 33
    weights = rng.integers(-127, 128, (11, 33)).astype(np.int8)
    tensors = [
        Tensor("x", shape, DType.FLOAT32),
        Tensor("w", (11, 33), DType.INT8, Quantisation((0.01,), (0,)), weights),
        Tensor("y", (rows, 11), DType.FLOAT32),
    ]
    op = Op("fully_connected", "dense", ("x", "w"), ("y",), HybridDense())
    graph = Graph.build("dense", tensors, [op], ["x"], ["y"])
    path = tmp_path / "dense.tflite"
    path.write_bytes(tflite_bytes(graph))
    result = verify_model(path, board="host", runs=3, options=PlanOptions(allow_float=True))
    assert (result.elements, result.max_difference) == (3 * 11 * rows, 0)
    for name in ("netduinoplus2", "mps3-an547"):
        plan_graph(check(graph), find_board(name))  # which holds packed constants against extents


def test_depthwise_filters_of_one_scale_are_judged_in_a_copy() -> None:
    """Which has a scale of each: LiteRT reads beyond the one. Runs are in `test_ecosystem`."""
    path = Path(__file__).parents[1] / "ecosystem" / "tf_doubled_lone_scales_float.tflite"
    reference = open_tflite(path.read_bytes(), load_model(path), RuntimeProcess())
    assert reference.name == "LiteRT's reference kernels"
    (judge,) = reference.judges
    assert "of a copy that gives each filter the one scale" in judge.why


def test_one_scale_of_filters_in_groups_is_refused(tmp_path: Path) -> None:
    filters = np.ones((6, 3, 3, 2), np.int8)
    tensors = [
        Tensor("x", (1, 5, 5, 4), DType.FLOAT32),
        Tensor("w", filters.shape, DType.INT8, Quantisation((0.01,), (0,)), filters),
        Tensor("y", (1, 3, 3, 6), DType.FLOAT32),
    ]
    op = Op("conv2d", "grouped", ("x", "w"), ("y",), HybridConvolution())
    path = tmp_path / "grouped.tflite"
    path.write_bytes(tflite_bytes(Graph.build("grouped", tensors, [op], ["x"], ["y"])))
    with pytest.raises(UnsupportedError, match="one scale of all filters beside groups"):
        load_model(path)


def test_svdf_equals_litert_over_time() -> None:
    """Every element of six layers in four runs, of which one gets zeros."""
    rng = np.random.default_rng(9)
    for _ in range(6):
        graph, states = forms()["svdf.hybrid"].sample(rng), dict[str, Array]()
        interpreter = Interpreter(
            model_content=tflite_bytes(graph),
            num_threads=1,
            experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        )
        interpreter.allocate_tensors()
        for turn in range(4):
            x = rng.normal(0, 3, graph.tensors["x"].shape).astype(np.float32) * (turn != 2)
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
            interpreter.invoke()
            want = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
            np.testing.assert_array_equal(interpret(graph, [x], states)[0], want)


def test_it_needs_float(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(model)]) == 2
    assert "--float" in capsys.readouterr().err


def test_a_quantised_range_holds_its_ends_and_zero() -> None:
    rng = np.random.default_rng(2)
    for chosen in Range:
        for _ in range(200):
            values = rng.normal(rng.uniform(-3, 3), 1, 40).astype(np.float32)
            stored, scale, zero_point = quantised(values, chosen)
            assert (
                stored.min() >= (-127 if chosen is Range.SYMMETRIC else -128)
                and stored.max() <= 127
            )
            assert chosen is not Range.SYMMETRIC or zero_point == 0
            assert abs((stored - zero_point) * scale - values).max() <= 0.51 * scale * 2
    stored, scale, zero_point = quantised(np.zeros(5, np.float32), Range.ASYMMETRIC)
    assert (stored.tolist(), float(scale), zero_point) == ([0] * 5, 1.0, 0)


def _changed(graph: Graph, name: str, **fields: object) -> bytes:
    tensors = [replace(t, **fields) if t.name == name else t for t in graph.tensors.values()]
    return tflite_bytes(Graph.build("x", tensors, graph.ops, graph.inputs, graph.outputs))


@pytest.mark.parametrize(
    ("tensor", "fields", "why"),
    [
        ("w5", {"quantisation": Quantisation((0.01,), (3,))}, "a zero point beside float32"),
        (
            "b5",
            {"dtype": DType.INT32, "constant": np.zeros(21, np.int32)},
            "its bias is int32 beside float32",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, tensor: str, fields: dict[str, object], why: str) -> None:
    path = tmp_path / "hybrid.tflite"
    path.write_bytes(_changed(hybrid_network(), tensor, **fields))
    with pytest.raises(UnsupportedError, match=why):
        load_model(path)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"adjoint_x": True}, "its float operand is transposed"),
        ({"batch": (2, 3)}, "several batch dimensions"),
        ({"zero_point": 4}, "a zero point"),
    ],
)
def test_products_that_are_refused(tmp_path: Path, fields: dict[str, Any], why: str) -> None:
    batch, zero_point = fields.get("batch", ()), fields.get("zero_point", 0)
    rng = np.random.default_rng(3)
    q = Quantisation((0.01,), (zero_point,))
    data = rng.integers(-127, 128, (4, 4)).astype(np.int8)
    tensors = [
        Tensor("x", (*batch, 4, 4), DType.FLOAT32),
        Tensor("y", (4, 4), DType.INT8, q, data),
        Tensor("z", (*batch, 4, 4), DType.FLOAT32),
    ]
    attributes = HybridMatMul(adjoint_x=bool(fields.get("adjoint_x")))
    op = Op("batch_matmul", "product", ("x", "y"), ("z",), attributes)
    path = tmp_path / "product.tflite"
    path.write_bytes(tflite_bytes(Graph.build("product", tensors, [op], ["x"], ["z"])))
    with pytest.raises(UnsupportedError, match=why):
        load_model(path)
