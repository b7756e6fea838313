"""Blocks of a graph: cells between cuts, runs of one resolution."""

from __future__ import annotations

from tests.support.graph_builder import Builder
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.elementwise.addition import Sum
from toolchain.report.blocks import blocks, moved_bytes


def test_a_residual_cell_is_one_block_and_chains_join_by_resolution() -> None:
    build = Builder()
    x = build.input((1, 8, 8, 4))
    plain = build.conv(x, 1, 4, Conv2D())
    again = build.conv(plain, 1, 6, Conv2D())
    inner = build.conv(again, 1, 6, Conv2D())
    cell = build.op("add", [again, inner], Sum())
    small = build.conv(cell, 1, 8, Conv2D(stride=(2, 2)))
    last = build.conv(small, 1, 8, Conv2D())
    graph = build.graph([last])
    found = blocks(graph, range(len(graph.ops)))
    assert [found[i] for i in range(6)] == [
        *["0-1 8x8x6"] * 2,
        *["2-3 8x8x6"] * 2,
        *["4-5 4x4x8"] * 2,
    ]


def test_moved_bytes_count_each_tensor_once() -> None:
    build = Builder()
    x = build.input((1, 4, 4, 2))
    doubled = build.op("add", [x, x], Sum())
    conv = build.conv(doubled, 1, 3, Conv2D())
    graph = build.graph([conv])
    assert moved_bytes(graph, 0) == 32 + 32
    assert moved_bytes(graph, 1) == 32 + 3 * 2 + 3 * 4 + 16 * 3
