"""Elementwise kernels that random samples seldom or never reach."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import host_model, random_inputs, reference_outputs
from toolchain.boards import HOST
from toolchain.device.host import HostProgram, build
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms, kernel_of
from toolchain.ops.elementwise import addition
from toolchain.ops.elementwise.common import scalar_constant
from toolchain.ops.normalisation.softmax_s8 import Softmax
from toolchain.ops.operator import operator_of
from toolchain.ops.spec import Array
from toolchain.ops.unary.quantize import Quantize


def _run(graphs: list[Graph], inputs: list[tuple[Array, ...]]) -> list[Array]:
    models = [host_model(graph, f"m{index}") for index, graph in enumerate(graphs)]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            return [running.run(given, index)[0] for index, given in enumerate(inputs)]


def test_sum_without_an_exact_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """TFLite's own steps, which the search for a form has always spared so far."""
    monkeypatch.setattr(addition, "_form", lambda arithmetic: None)
    rng = np.random.default_rng(1)
    samples = [forms()[kind].sample(rng) for kind in ("add", "sub") for _ in range(20)]
    graphs = [g for g in samples if scalar_constant(operator_of(g.ops[0], g)) is None]
    inputs = [random_inputs(graph, rng) for graph in graphs]
    for graph, given, got in zip(graphs, inputs, _run(graphs, inputs), strict=True):
        assert kernel_of(graph.ops[0], graph, HOST).functions == ("thimble_add_s8",)
        np.testing.assert_array_equal(got, reference_outputs(graph, given)[0])


def test_all_pairs_of_operands() -> None:
    """Every int8 by every int8, with ties on both sides of zero."""
    levels = np.arange(-128, 128).astype(np.int8)
    a, b = (np.ascontiguousarray(x) for x in np.meshgrid(levels, levels))
    rng = np.random.default_rng(2)
    graphs = []
    for kind in ("add", "sub", "mul", "minimum", "maximum", "prelu"):
        for scales in ((0.5, 0.25, 1.0), (0.5, 0.5, 4.0), (0.013, 0.0071, 0.0152)):
            graph = forms()[kind].sample(rng)
            while any(t.is_constant for t in graph.tensors.values()):
                graph = forms()[kind].sample(rng)
            quants = [
                Quantisation((float(np.float32(s)),), (int(z),))
                for s, z in zip(scales, rng.choice((-128, 0, 3, 127), 3), strict=True)
            ]
            op = graph.ops[0]
            names = (*op.inputs, *op.outputs)
            tensors = [
                Tensor(n, a.shape, DType.INT8, q) for n, q in zip(names, quants, strict=True)
            ]
            graphs.append(Graph.build("pairs", tensors, [op], op.inputs, op.outputs))
    results = _run(graphs, [(a, b)] * len(graphs))
    for graph, got in zip(graphs, results, strict=True):
        (want,) = reference_outputs(graph, (a, b))
        np.testing.assert_array_equal(got, want, err_msg=f"{graph.ops} {graph.tensors}")


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
def test_quantize_of_odd_floats(dtype: DType) -> None:
    """Halves, denormals, infinities, values beyond int32; NaN becomes the zero point."""
    scale, zero = 0.25, 7
    halves = (np.arange(-600, 600) + 0.5) * scale
    odd = [0.0, -0.0, 1e-45, -1e-45, 1e30, -1e30, np.inf, -np.inf, 3e38, -3e38, 2.0**31, np.nan]
    near = np.nextafter(halves.astype(np.float32), np.float32(0))
    data = np.concatenate([halves, near, odd]).astype(np.float32)
    x = Tensor("x", data.shape, DType.FLOAT32)
    y = Tensor("y", data.shape, dtype, Quantisation((scale,), (zero,)))
    op = Op("quantize", "quantize", ("x",), ("y",), Quantize(dtype))
    graph = Graph.build("odd", [x, y], [op], ["x"], ["y"])
    (got,) = _run([graph], [(data,)])
    (want,) = reference_outputs(graph, (data,))
    np.testing.assert_array_equal(got, want)
    assert got[-1] == zero


def test_one_tensor_as_both_operands() -> None:
    rng = np.random.default_rng(4)
    graphs, inputs = [], []
    for kind in ("add", "mul", "maximum"):
        sample = forms()[kind].sample(rng).ops[0]
        quants = [Quantisation((float(np.float32(s)),), (5,)) for s in (0.02, 0.03)]
        x, y = (Tensor(n, (33,), DType.INT8, q) for n, q in zip("xy", quants, strict=True))
        op = replace(sample, inputs=("x", "x"), outputs=("y",))
        graphs.append(Graph.build("twice", [x, y], [op], ["x"], ["y"]))
        inputs.append(random_inputs(graphs[-1], rng))
    for graph, given, got in zip(graphs, inputs, _run(graphs, inputs), strict=True):
        np.testing.assert_array_equal(got, reference_outputs(graph, given)[0])


@pytest.mark.parametrize("columns", [1, 2, 511, 512, 1000, 5000, 9000])
def test_softmax_of_equal_inputs(columns: int) -> None:
    """From 512 terms of 1 on LiteRT aborts; every quotient rounds to 0."""
    x = Tensor("x", (2, columns), DType.INT8, Quantisation((0.05,), (0,)))
    y = Tensor("y", (2, columns), DType.INT8, Quantisation((1 / 256,), (-128,)))
    op = Op("softmax", "softmax", ("x",), ("y",), Softmax())
    graph = Graph.build("equal", [x, y], [op], ["x"], ["y"])
    data = np.full(x.shape, 5, np.int8)
    (got,) = _run([graph], [(data,)])
    np.testing.assert_array_equal(got, reference_outputs(graph, (data,))[0])
    expected = min(math.ceil(256 / columns - 0.5), 255) - 128
    assert (got == expected).all()
