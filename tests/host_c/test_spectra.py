"""Fourier transforms of which several parts are kept, in C."""

from __future__ import annotations

import numpy as np

from tests.support.host import run_graph_on_host
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops.interpret import interpret
from toolchain.ops.signal.rfft2d import Kept, Rfft2d


def test_all_parts_of_an_image_in_c() -> None:
    shape = (2, 6, 9)
    tensors = [Tensor("x", shape, DType.FLOAT32)]
    tensors += [Tensor(kept.value, (2, 8, 5), DType.FLOAT32) for kept in Kept]
    names = tuple(kept.value for kept in Kept)
    op = Op("rfft2d", "rfft2d", ("x",), names, Rfft2d(8, 8, tuple(Kept)))
    graph = Graph.build("image", tensors, [op], ["x"], names)
    x = np.random.default_rng(3).normal(0, 9, shape).astype(np.float32)
    exact = np.fft.rfft2(x[:, :, :8].astype(np.float64), (8, 8))
    got = run_graph_on_host(graph, [x])
    for value, want in zip(got, (np.abs(exact), exact.real, exact.imag), strict=True):
        assert np.abs(value - want).max() <= 2.0**-21 * np.abs(want).max()
    for value, want in zip(got, interpret(graph, [x]), strict=True):
        np.testing.assert_array_equal(value, want)
