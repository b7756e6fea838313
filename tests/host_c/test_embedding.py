"""Token indices as an input: embeddings from a constant table, out-of-range indices refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import run_graph_on_host
from tests.support.tflite_writer import tflite_bytes
from toolchain import verify_model
from toolchain.cli import run
from toolchain.deployment.run import deployed
from toolchain.errors import LinkError
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.movement.gather import Gather, as_indices, index_limits
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.unary.cast import Cast

Q = Quantisation((0.02,), (3,))


def _embedding() -> Graph:
    """Five tokens, as the model's input has them, to five rows of a table of 17."""
    table = np.random.default_rng(0).integers(-128, 128, (17, 6)).astype(np.int8)
    tensors = [
        Tensor("tokens", (1, 5), DType.INT32),
        Tensor("row", (5,), DType.INT32),
        Tensor("table", (17, 6), DType.INT8, Q, table),
        Tensor("y", (5, 6), DType.INT8, Q),
    ]
    ops = [
        Op("reshape", "flat", ("tokens",), ("row",), Reshape((5,))),
        Op("gather", "embedding", ("table", "row"), ("y",), Gather()),
    ]
    return Graph.build("embedding", tensors, ops, ["tokens"], ["y"])


def test_rows_of_the_table_are_picked() -> None:
    graph = _embedding()
    tokens = np.array([[0, 16, 3, 3, 9]], np.int32)
    (got,) = run_graph_on_host(graph, (tokens,), sanitize=True)
    table = graph.tensors["table"].constant
    assert table is not None
    np.testing.assert_array_equal(got, table[tokens[0]])


@pytest.mark.parametrize("wrong", [-1, 17, 2**31 - 1])
def test_an_index_out_of_range_is_an_error(wrong: int) -> None:
    with pytest.raises(LinkError, match="embedding"):
        run_graph_on_host(_embedding(), (np.array([[0, 1, wrong, 2, 3]], np.int32),))


def test_reals_that_a_cast_makes_indices_are_drawn_from_the_table() -> None:
    """As Keras has the words of a text; what a function of reals makes is no index."""
    graph = _embedding()
    words = Tensor("words", (1, 5), DType.FLOAT32)
    cast = Op("cast", "whole", ("words",), ("tokens",), Cast(DType.INT32))
    tensors = [words, *graph.tensors.values()]
    of_reals = Graph.build("words", tensors, [cast, *graph.ops], ["words"], ["y"])
    assert index_limits(of_reals) == {"words": 17}
    least = Op("arg_max", "least", ("words",), ("tokens",), cast.attributes)
    assert index_limits(replace(of_reals, ops=(least, *graph.ops))) == {}
    drawn = as_indices(np.random.default_rng(1).standard_normal(1000).astype(np.float32), 17)
    assert (drawn.dtype, sorted(set(drawn.tolist()))) == (np.float32, list(range(17)))


def test_verification_draws_indices_that_exist(tmp_path: Path) -> None:
    graph = _embedding()
    assert index_limits(graph) == {"tokens": 17}
    file = tmp_path / "embedding.tflite"
    file.write_bytes(tflite_bytes(graph))
    result = verify_model(file, "host", runs=5)
    assert result.elements == 150 and result.differing == 0


def test_run_and_profile_draw_indices_that_exist(tmp_path: Path) -> None:
    file, out = tmp_path / "embedding.tflite", tmp_path / "out"
    file.write_bytes(tflite_bytes(_embedding()))
    assert run(["compile", str(file), "--board", "host", "-o", str(out)]) == 0
    assert json.loads((out / "plan.json").read_text())["index_limits"] == {"tokens": 17}
    assert run(["run", str(out)]) == 0
    with deployed(out) as deployment:
        drawn = [deployment.random(np.random.default_rng(seed))["tokens"] for seed in range(99)]
    assert set(np.unique(drawn)) == set(range(17))
