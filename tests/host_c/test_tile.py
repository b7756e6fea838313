"""Repeats along more axes than a copy has loops: several copies."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.host import random_inputs, run_graph_on_host
from toolchain.boards import HOST
from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import kernel_of
from toolchain.ops.movement.tile import Tile

Q = Quantisation((0.1,), (3,))


def _tiled(shape: tuple[int, ...], repeats: tuple[int, ...]) -> Graph:
    out = tuple(size * times for size, times in zip(shape, repeats, strict=True))
    tensors = [Tensor("x", shape, DType.INT8, Q), Tensor("y", out, DType.INT8, Q)]
    return Graph.build("t", tensors, [Op("tile", "t", ("x",), ("y",), Tile(repeats))], "x", "y")


@pytest.mark.parametrize(
    ("shape", "repeats"),
    [((2, 3, 2, 3), (3, 2, 2, 3)), ((2, 3, 2, 3, 2), (2, 2, 3, 2, 2)), ((3, 2), (2, 3))],
)
def test_every_axis_repeats(shape: tuple[int, ...], repeats: tuple[int, ...]) -> None:
    graph = _tiled(shape, repeats)
    (x,) = random_inputs(graph, np.random.default_rng(0))
    (got,) = run_graph_on_host(graph, (x,), sanitize=True)
    np.testing.assert_array_equal(got, np.tile(x, repeats))


def test_too_many_copies_are_refused() -> None:
    graph = _tiled((2, 3, 2, 3, 2), (9, 9, 9, 9, 9))
    with pytest.raises(UnsupportedError, match="in two steps"):
        kernel_of(graph.ops[0], graph, HOST)
