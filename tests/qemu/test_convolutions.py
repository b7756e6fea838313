"""The convolution family on every core that differs: assembly and Helium against NumPy."""

from __future__ import annotations

import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.qemu.test_operators import QUICK, compare
from tests.support.convolutions import (
    above_zero,
    convolutions,
    depthwise_lines,
    depthwise_windows,
    first_layers,
    in_whole_words,
    mixed_pairs,
    of_four_bits,
    of_many_taps,
    rounded_as_onnx,
    with_weight_zero_point,
)
from tests.support.host import plan_of, with_room
from tests.support.long import mostly_long
from tests.support.split_graphs import tiled_convolutions
from toolchain.boards import board
from toolchain.ir.merged import merged
from toolchain.ops import forms, kernel_of
from toolchain.planner import plan_graph

BOARDS = ("netduinoplus2", "mps2-an385", "mps2-an385-v6m", "mps2-an500", "mps3-an547")
DSP = ("mps2-an386", "mps2-an505", "mps2-an500")
KINDS = ("conv2d", "depthwise_conv2d", "fully_connected", "transpose_conv2d", "batch_matmul")
PARTS = ("partial_conv2d", "partial_fully_connected", "requantise_sums")

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize(
    "board_name", mostly_long(BOARDS, ["netduinoplus2", "mps2-an385-v6m", "mps3-an547"])
)
def test_convolutions_equal_their_references(board_name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(zlib.crc32(board_name.encode()))
    graphs = [graph for kind in KINDS for graph in convolutions(kind, 9, rng)]
    graphs += [g for kind in KINDS[:2] for g in in_whole_words(kind, 12, rng)]
    graphs += depthwise_lines(24, rng)
    graphs += [rounded_as_onnx(forms()[kind].sample(rng)) for kind in KINDS[:2] for _ in range(12)]
    graphs += [above_zero(forms()[kind].sample(rng)) for kind in KINDS[:2] for _ in range(4)]
    graphs += depthwise_windows(16, rng)
    compare(plan_graph(merged(graphs), board(board_name), QUICK), rng, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("board_name", (*DSP, "mps2-an385", "mps2-an385-v6m", "mps3-an547"))
def test_rows_of_any_depthwise_window_equal_their_references(
    board_name: str, tmp_path: Path
) -> None:
    """Short rows, and those of many fours; with the least scratch and with the most."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        graphs = depthwise_lines(48, rng, most=60)
        graphs += [with_weight_zero_point(graph, rng) for graph in depthwise_lines(12, rng)]
        graphs += [rounded_as_onnx(graph) for graph in depthwise_lines(12, rng)]
        plan = plan_graph(merged(graphs), board(board_name), QUICK)
        assert "thimble_depthwise_conv_s8" in {k.functions[0] for k in plan.lowered.kernels}
        for form in (plan, with_room(plan, 1 << 14)):
            compare(form, rng, tmp_path)


def test_vectors_of_partial_sums_and_of_weights_with_a_zero_point(tmp_path: Path) -> None:
    rng = np.random.default_rng(29)
    graphs = [forms()[kind].sample(rng) for kind in PARTS for _ in range(8)]
    graphs += [with_weight_zero_point(graph, rng) for graph in convolutions("conv2d", 9, rng)]
    plan = plan_graph(merged(graphs), board("mps3-an547"), QUICK)
    called = {kernel.functions[0] for kernel in plan.lowered.kernels}
    assert called >= {
        "thimble_partial_conv_lanes_s8",
        "thimble_partial_fully_connected_lanes_s8",
        "thimble_convolve_offset_lanes_s8",
    }
    compare(plan, rng, tmp_path)


@pytest.mark.parametrize("board_name", mostly_long(DSP, ["mps2-an500"]))
def test_first_layers_and_mixed_pairs_equal_their_references(
    board_name: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(zlib.crc32(board_name.encode()))
    graphs = [*first_layers(14, rng), *mixed_pairs(rng), *in_whole_words("conv2d", 8, rng)]
    compare(plan_graph(merged(graphs), board(board_name), QUICK), rng, tmp_path)


@pytest.mark.parametrize(("board_name", "room"), (("mps2-an386", 0), ("mps2-an505", 400)))
def test_depthwise_kernels_with_little_scratch(board_name: str, room: int, tmp_path: Path) -> None:
    """Alone, so that no other operator's tensors leave them room."""
    rng = np.random.default_rng(zlib.crc32(board_name.encode()) + room)
    target = board(board_name)
    plan = plan_of(merged(depthwise_lines(24, rng)), target.core, spread=True)
    compare(replace(with_room(plan, room), board=board_name), rng, tmp_path)


@pytest.mark.parametrize("board_name", mostly_long(DSP, ["mps2-an386"]))
def test_weights_of_four_bits_give_the_same_bytes(board_name: str, tmp_path: Path) -> None:
    """Two windows at once and four, alone and in odd numbers; channels in fours and not."""
    rng = np.random.default_rng(zlib.crc32(board_name.encode()))
    graphs = of_many_taps(16, rng)
    graphs += [rounded_as_onnx(graph) for graph in graphs[::4]]
    graphs += [g for kind in ("conv2d", "fully_connected") for g in convolutions(kind, 6, rng)]
    graphs = [of_four_bits(graph, rng) for graph in graphs]
    plan = plan_graph(merged(graphs), board(board_name), QUICK)
    calls = [call for kernel in plan.lowered.kernels for call in kernel.calls]
    called = {call.function for call in calls}
    assert {f"thimble_convolve{walk}_s4" for walk in ("", "_1x1", "_inside")} <= called
    assert "thimble_fully_connected_s4" in called
    assert {call.get("shape.at_once") or call.get("at_once") for call in calls} >= {2, 4}
    compare(plan, rng, tmp_path)


def test_vectors_of_weights_of_four_bits_give_the_same_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    graphs = [of_four_bits(graph, rng) for graph in convolutions("fully_connected", 12, rng)]
    plan = plan_graph(merged(graphs), board("mps3-an547"), QUICK)
    called = [kernel.functions[0] for kernel in plan.lowered.kernels]
    assert "thimble_fully_connected_lanes_s4" in called
    compare(plan, rng, tmp_path)


@pytest.mark.parametrize(
    "board_name", mostly_long(("mps2-an385-v6m", "mps2-an386", "mps3-an547"), ["mps2-an386"])
)
def test_tiles_of_images_equal_their_references(board_name: str, tmp_path: Path) -> None:
    """Lines apart, and odd pixels alone; most of the Helium kernels want dense images: copies."""
    rng = np.random.default_rng(zlib.crc32(board_name.encode()))
    kinds = ("convolutions", "pointwise_convolutions", "depthwise_convolutions")
    tiled = [tile for kind in kinds for _, tile in tiled_convolutions(kind, 12, rng)]
    plan = plan_graph(merged(tiled), board(board_name), QUICK)
    assert plan.arena.pitches
    compare(plan, rng, tmp_path)


def test_both_channels_of_a_pair_are_rounded_once_or_neither() -> None:
    """What `mixed_pairs` makes, and the cores are given above, is what it says."""
    for graph, once in zip(mixed_pairs(np.random.default_rng(3)), (True, False), strict=True):
        kernel = kernel_of(graph.ops[0], graph, board("mps2-an386").core)
        pairs = np.asarray(kernel.constants[0].data).reshape(5, -1)[:, -3]
        assert all((int(codes) & 0xFFFF >= 256) == once for codes in pairs[:4])
