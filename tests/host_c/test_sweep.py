"""The sweep over random operators: a few kinds whole, and that no kind can be left out of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import _cases, sweep
from benchmarks._cases import Case, Reference
from tests.support.host import run_graph_on_host
from tests.support.litert import run_litert
from tests.support.tflite_writer import tflite_bytes
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import forms
from toolchain.ops.normalisation.softmax_s8 import Softmax


@pytest.fixture
def reference() -> Iterator[Reference]:
    with Reference() as opened:
        yield opened


@pytest.mark.parametrize("kind", list(forms()))
def test_every_kind_gives_cases(kind: str) -> None:
    wild = 0
    for index in range(12):
        graph, _ = _cases.sample(kind, index, seed=1)
        again, _ = _cases.sample(kind, index, seed=1)
        assert [str(t) for t in graph.tensors.values()] == [str(t) for t in again.tensors.values()]
        wild += graph.tensors != forms()[kind].sample(_generator(kind, index)).tensors
    assert wild or not _quantised(kind)


def _generator(kind: str, index: int) -> np.random.Generator:
    return np.random.default_rng([1, _cases.zlib.crc32(kind.encode()), index])


def _quantised(kind: str) -> bool:
    graphs = [forms()[kind].sample(_generator(kind, index)) for index in range(12)]
    return all(t.quantisation for g in graphs for t in g.tensors.values())


def test_sweep_counts_what_it_compares() -> None:
    rows = sweep.sweep(["add", "lookup", "svdf"], 5)
    assert [row.kind for row in rows] == ["add", "lookup", "svdf"]
    for row in rows:
        assert not row.failed
        assert row.compiled + row.refused.total() == row.cases == 5
        assert row.places["host"].cases == row.compiled
        assert row.places["host"].bytes > 0
    assert [row.reference for row in rows] == ["LiteRT", "NumPy", "LiteRT"]


def test_kind_without_a_generator_is_missing(
    monkeypatch: pytest.MonkeyPatch, reference: Reference
) -> None:
    def none(rng: np.random.Generator) -> Graph:
        raise NotImplementedError

    without = {**forms(), "add": replace(forms()["add"], sample=none)}
    monkeypatch.setattr(_cases, "forms", lambda: without)
    row = sweep.Row("add", "LiteRT")
    assert sweep.read_cases(row, 3, 0, reference) == []
    assert row.missing
    assert row.failed


def test_difference_is_a_failure(reference: Reference) -> None:
    case = reference.case("add", 0, 0)
    wrong = tuple(tuple(values + np.int8(1) for values in turn) for turn in case.wanted)
    row = sweep.Row("add", "LiteRT")
    sweep.run_on_host(row, [case, Case("add", 1, case.graph, case.inputs, wrong)])
    assert row.failed
    assert len(row.differences) == len(wrong)
    assert "add case 1" in row.differences[0]


def test_softmax_s16_where_a_sum_or_quotient_reaches_one() -> None:
    """One column gives 1; eight maxima and 47 sum up to a unit below a power of two."""
    for columns, last in ((1, 32767), (9, 22592 - 32768)):
        shape = (1, columns)
        x = Tensor("x", shape, DType.INT16, Quantisation((float(np.float32(10 / 65535)),), (0,)))
        y = Tensor("y", shape, DType.INT16, Quantisation((1 / 32768,), (0,)))
        op = Op("softmax", "softmax", ("x",), ("y",), Softmax(1.0))
        graph = Graph.build("edge", [x, y], [op], ["x"], ["y"])
        data = np.full(shape, 32767, np.int16)
        data[0, -1] = last
        (wanted,) = run_litert(tflite_bytes(graph), [data])
        (got,) = run_graph_on_host(graph, [data])
        np.testing.assert_array_equal(got, wanted)
