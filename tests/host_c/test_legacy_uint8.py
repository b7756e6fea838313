"""Generated C of legacy uint8 operators against their references, on the host under sanitizers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.host import random_inputs, reference_outputs, run_graphs_on_host
from tests.support.legacy import joined, legacy_sample
from tests.support.tflite_writer import tflite_bytes
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.passes import prepare

SAMPLES = 24


def _compare(graphs: list[Graph], rng: np.random.Generator) -> None:
    cases = [(graph, random_inputs(graph, rng)) for graph in graphs]
    results = run_graphs_on_host(cases, sanitize=True)
    for (graph, inputs), got in zip(cases, results, strict=True):
        expected = reference_outputs(graph, inputs)
        for want, have in zip(expected, got, strict=True):
            np.testing.assert_array_equal(have, want, err_msg=str(graph.ops))


@pytest.mark.parametrize(
    "kind",
    ["conv2d", "depthwise_conv2d", "fully_connected", "average_pool2d", "resize_bilinear"],
)
def test_c_equals_reference(kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    files = [tflite_bytes(legacy_sample(kind, rng)) for _ in range(SAMPLES)]
    graphs = [prepare(FRONT_END.read(data, Path("m.tflite"))).graph for data in files]
    _compare(graphs, rng)


def test_concatenation_of_other_scales() -> None:
    rng = np.random.default_rng(22)
    files = [tflite_bytes(joined(rng)) for _ in range(SAMPLES)]
    _compare([prepare(FRONT_END.read(data, Path("m.tflite"))).graph for data in files], rng)


def test_windows_of_many_taps() -> None:
    """The sum of a window takes several lanes, and several words of them."""
    rng = np.random.default_rng(3)
    graphs = []
    for depth, zero in ((251, 127), (252, -128), (253, 5), (1009, 77), (3001, -128)):
        tensors = [
            Tensor("x", (1, 1, 3, depth), DType.INT8, Quantisation((0.1,), (-128,))),
            Tensor(
                "weights",
                (3, 1, 1, depth),
                DType.INT8,
                Quantisation((0.1,), (zero,)),
                rng.integers(-128, 128, (3, 1, 1, depth)).astype(np.int8),
            ),
            Tensor("y", (1, 1, 3, 3), DType.INT8, Quantisation((depth / 2.0,), (0,))),
        ]
        op = Op("conv2d", "conv", ("x", "weights"), ("y",), Conv2D())
        graphs.append(Graph.build("many", tensors, [op], ["x"], ["y"]))
    _compare(graphs, rng)
