"""Quotients of two computed operands, zero divisors among them: LiteRT stops at those."""

from __future__ import annotations

import numpy as np

from tests.support.host import reference_outputs, run_graph_on_host
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.elementwise.div import Div


def _quotient(zero_points: tuple[int, int, int], output_scale: float) -> Graph:
    scales = (0.0123, 0.034, output_scale)
    tensors = [
        Tensor(name, (256, 256), DType.INT8, Quantisation((scale,), (zero,)))
        for name, scale, zero in zip("aby", scales, zero_points, strict=True)
    ]
    return Graph.build("div", tensors, [Op("div", "div", ("a", "b"), ("y",), Div())], "ab", "y")


def test_every_pair_of_operands() -> None:
    levels = np.arange(-128, 128, dtype=np.int8)
    a, b = np.meshgrid(levels, levels, indexing="ij")
    for zero_points, scale in (((-128, 127, 5), 0.0625), ((3, -7, -128), 0.001), ((0, 0, 0), 0.9)):
        graph = _quotient(zero_points, scale)
        (got,) = run_graph_on_host(graph, (a, b), sanitize=True)
        (want,) = reference_outputs(graph, (a, b))
        np.testing.assert_array_equal(got, want)
        dividend, divisor = a - np.int64(zero_points[0]), b - np.int64(zero_points[1])
        np.testing.assert_array_equal(got[(divisor == 0) & (dividend > 0)], 127)
        np.testing.assert_array_equal(got[(divisor == 0) & (dividend < 0)], -128)
        np.testing.assert_array_equal(got[(divisor == 0) & (dividend == 0)], zero_points[2])
