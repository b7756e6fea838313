"""CAST between every two types: C, NumPy and LiteRT agree, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.host import reference_outputs, run_graphs_on_host
from tests.support.litert import run_litert
from tests.support.pairs import SPECIALS
from tests.support.tflite_writer import tflite_bytes
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import forms
from toolchain.ops.spec import Array
from toolchain.ops.unary.cast import Cast

TYPES = tuple(sorted(forms()["cast"].types, key=lambda dtype: dtype.value))
_UNIT = {DType.INT8: Quantisation((1.0,), (0,))}


def values(dtype: DType) -> Array:
    """The ends of a type and small numbers; of float32 the special values and fractions too."""
    if dtype is DType.BOOL:
        return np.array([False, True])
    if dtype is DType.FLOAT32:
        return np.concatenate([SPECIALS, np.array([0.5, -2.75, 254.9, 1e-30, 3e9], np.float32)])
    info = np.iinfo(dtype.value)
    middle = [v for v in (-129, -128, -2, -1, 0, 1, 2, 127, 128, 255, 256) if info.min <= v]
    return np.array([info.min, info.max, *(v for v in middle if v <= info.max)], dtype.numpy)


def cast(source: DType, target: DType, count: int) -> Graph:
    ends = [Tensor(n, (count,), t, _UNIT.get(t)) for n, t in (("x", source), ("y", target))]
    op = Op("cast", "cast", ("x",), ("y",), Cast(target))
    return Graph.build("cast", ends, [op], ["x"], ["y"])


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("source", TYPES)
def test_every_type_becomes_every_other(source: DType) -> None:
    x = values(source)
    graphs = [cast(source, target, len(x)) for target in TYPES]
    wanted = [reference_outputs(graph, (x,))[0] for graph in graphs]
    results = run_graphs_on_host([(graph, (x,)) for graph in graphs])
    for target, graph, want, (got,) in zip(TYPES, graphs, wanted, results, strict=True):
        assert got.tobytes() == want.tobytes(), (source, target, got, want)
        if source is not DType.FLOAT32 or target in (DType.FLOAT32, DType.BOOL):
            (theirs,) = run_litert(tflite_bytes(graph), (x,))  # of floats out of range: undefined
            assert got.tobytes() == theirs.reshape(want.shape).tobytes(), (source, target)
