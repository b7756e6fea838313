"""GATHER_ND and SCATTER_ND with coordinates that are computed at run time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.host import run_graph_on_host
from tests.support.litert import run_litert
from tests.support.tflite_writer import tflite_bytes
from toolchain.errors import ThimbleError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.movement.reverse_sequence import ReverseSequence
from toolchain.ops.movement.scatter_nd import ScatterNd

SHAPE = (3, 4, 5)


def gathering(dtype: DType) -> Graph:
    tensors = [
        Tensor("x", SHAPE, DType.FLOAT32),
        Tensor("rows", (6, 2), dtype),
        Tensor("y", (6, 5), DType.FLOAT32),
    ]
    op = Op("gather_nd", "gather", ("x", "rows"), ("y",))
    return Graph.build("gathering", tensors, [op], ["x", "rows"], ["y"])


def scattering(
    dtype: DType, stored: DType = DType.FLOAT32, quantisation: Quantisation | None = None
) -> Graph:
    tensors = [
        Tensor("rows", (6, 2), dtype),
        Tensor("updates", (6, 5), stored, quantisation),
        Tensor("y", SHAPE, stored, quantisation),
    ]
    op = Op("scatter_nd", "scatter", ("rows", "updates"), ("y",), ScatterNd(SHAPE))
    return Graph.build("scattering", tensors, [op], ["rows", "updates"], ["y"])


def reversing(dtype: DType, sequence: int, batch: int) -> Graph:
    tensors = [
        Tensor("x", SHAPE, DType.FLOAT32),
        Tensor("lengths", (SHAPE[batch],), dtype),
        Tensor("y", SHAPE, DType.FLOAT32),
    ]
    attributes = ReverseSequence(sequence, batch)
    op = Op("reverse_sequence", "reverse", ("x", "lengths"), ("y",), attributes)
    return Graph.build("reversing", tensors, [op], ["x", "lengths"], ["y"])


@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64])
@pytest.mark.parametrize(("sequence", "batch"), [(1, 0), (0, 1), (2, 0), (0, 2)])
def test_lengths_say_how_much_is_reversed(dtype: DType, sequence: int, batch: int) -> None:
    rng = np.random.default_rng(3)
    graph = reversing(dtype, sequence, batch)
    lengths = rng.integers(0, SHAPE[sequence] + 1, SHAPE[batch]).astype(dtype.numpy)
    given = (rng.normal(0, 1, SHAPE).astype(np.float32), lengths)
    (want,) = run_litert(tflite_bytes(graph), given)
    np.testing.assert_array_equal(run_graph_on_host(graph, given)[0], want)


@pytest.mark.parametrize("length", [-1, SHAPE[1] + 1])
def test_a_length_beyond_the_sequence_stops(length: int) -> None:
    lengths = np.array([1, length, 0], np.int32)
    with pytest.raises(ThimbleError):
        run_graph_on_host(reversing(DType.INT32, 1, 0), (np.zeros(SHAPE, np.float32), lengths))


@pytest.mark.parametrize("make", [gathering, scattering])
def test_rows_name_slices(make: object) -> None:
    assert callable(make)
    rng = np.random.default_rng(3)
    for dtype in (DType.INT32, DType.INT64) if make is gathering else (DType.INT32,):
        graph = make(dtype)
        rows = rng.integers(0, SHAPE[:2], (6, 2)).astype(dtype.numpy)
        floats = {name: rng.normal(0, 1, t.shape) for name, t in graph.tensors.items()}
        given = [
            rows if name == "rows" else floats[name].astype(np.float32) for name in graph.inputs
        ]
        (want,) = run_litert(tflite_bytes(graph), given)
        np.testing.assert_array_equal(run_graph_on_host(graph, tuple(given))[0], want)


@pytest.mark.parametrize(
    ("stored", "zero"),
    [("int8", 3), ("uint8", None), ("uint8", 7), ("bool", None), ("int32", None), ("int64", None)],
)
def test_bytes_and_integers_are_added_as_litert_adds_them(stored: str, zero: int | None) -> None:
    """Rows that meet wrap around; bools that meet are true where one is."""
    rng = np.random.default_rng(5)
    quantisation = None if zero is None else Quantisation((0.5,), (zero,))
    data = tflite_bytes(scattering(DType.INT32, DType(stored), quantisation))
    graph = FRONT_END.read(data, Path("m.tflite"))
    rows = rng.integers(0, (2, 2), (6, 2)).astype(np.int32)
    most = 2 if stored == "bool" else 128
    updates = rng.integers(0, most, (6, 5)).astype(stored)
    (want,) = run_litert(data, [rows, updates])
    np.testing.assert_array_equal(run_graph_on_host(graph, (rows, updates))[0], want)


@pytest.mark.parametrize("make", [gathering, scattering])
@pytest.mark.parametrize("wrong", [-1, 4])
def test_a_row_outside_ends_the_run(make: object, wrong: int) -> None:
    assert callable(make)
    graph = make(DType.INT32)
    rows = np.ones((6, 2), np.int32)
    rows[3, 1] = wrong
    given = [
        rows if name == "rows" else np.zeros(graph.tensors[name].shape, np.float32)
        for name in graph.inputs
    ]
    with pytest.raises(ThimbleError):
        run_graph_on_host(graph, tuple(given))
