"""Split graphs on emulated boards: int32 sums in the kernels of the DSP extension and of Helium."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from benchmarks.zoo_mobile import mobilenet_v2
from tests.qemu.test_operators import QUICK, compare
from tests.support.long import mostly_long
from tests.support.split_graphs import inverted_bottleneck, random_network, random_scheme
from tests.support.tflite_writer import tflite_bytes
from toolchain.boards import board
from toolchain.deployment.verification import verify_model
from toolchain.errors import DoesNotFitError
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ir.merged import merged
from toolchain.memory.firmware_size import check_fit
from toolchain.ops.check import check
from toolchain.ops.movement.block_concat import BlockConcat
from toolchain.partition import CannotSplitError, Mode, Scheme, split
from toolchain.planner import plan_graph, plan_model
from toolchain.planning.options import PlanOptions

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


def _sums_in_parts(rng: np.random.Generator, count: int) -> list[Graph]:
    found: list[Graph] = []
    while len(found) < count:
        graph = check(random_network(rng))
        try:
            fine = split(graph, random_scheme(graph, rng))
        except CannotSplitError:
            continue
        if any(op.kind == "requantise_sums" for op in fine.ops):
            found.append(fine)
    return found


@pytest.mark.parametrize("board_name", mostly_long(["mps2-an500", "mps3-an547"], ["mps3-an547"]))
def test_sums_in_parts(board_name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    whole = inverted_bottleneck(rng, 7, 12, 40, 10)
    names, seed = tuple(op.name for op in whole.ops), (whole.ops[0].outputs[0], 3)
    graphs = [split(whole, Scheme(names, seed, count, Mode.SLIDING)) for count in (3, 5)]
    graph = merged([*graphs, *_sums_in_parts(rng, 10)])
    compare(plan_graph(graph, board(board_name), QUICK), rng, tmp_path)


@pytest.mark.long
def test_a_network_that_needs_two_boards_of_ram_runs_in_96_kib(tmp_path: Path) -> None:
    """MobileNetV2 0.35 at 160x160, ten classes: 301 KiB of arena where the board has 128."""
    model = tmp_path / "mobilenet.tflite"
    model.write_bytes(tflite_bytes(mobilenet_v2("mobilenet", 0.35, 160, classes=10)))
    with pytest.raises(DoesNotFitError, match="RAM"):
        check_fit(plan_model(model, "netduinoplus2", PlanOptions(one_bank=True).unsplit))
    options = PlanOptions(ram_bytes=96 * 1024, one_bank=True)
    result = verify_model(model, "netduinoplus2", runs=1, options=options)
    assert (result.differing, result.elements) == (0, 10)
    assert result.compiled.sizes is not None
    assert result.compiled.sizes.ram_bytes <= 96 * 1024


@pytest.mark.parametrize("board_name", ["mps2-an500", "mps3-an547"])
def test_runs_of_bytes_move_up_and_down(board_name: str, tmp_path: Path) -> None:
    """Any length, any distance, aligned or not: of one run of bytes over itself."""
    rng = np.random.default_rng(2)
    lengths = [1, 3, 16, 31, 32, 33, 64, 100, 128, 135, *map(int, rng.integers(1, 200, 30))]
    shifts = [4, -4, 1, -1, 32, -32, 100, -100, *map(int, rng.integers(-70, 70, 32))]
    tensors, ops, offsets, free = [], [], {}, 0
    for index, (length, shift) in enumerate(zip(lengths, shifts, strict=True)):
        ends = tuple(Tensor(f"{n}{index}", (length,), DType.INT8) for n in "xy")
        tensors += ends
        names = ((ends[0].name,), (ends[1].name,))
        attributes = BlockConcat(0, ((0, length),))
        ops.append(Op("block_concat", f"move{index}", *names, attributes))
        offsets[ends[0].name], offsets[ends[1].name] = free + 112, free + 112 + shift
        free += 448
    inputs, outputs = ([op.inputs[0] for op in ops], [op.outputs[0] for op in ops])
    plan = plan_graph(
        Graph.build("moves", tensors, ops, inputs, outputs),
        board(board_name),
        PlanOptions().unsplit,
    )
    arena = replace(plan.arena, size_bytes=free, offsets=MappingProxyType(offsets))
    compare(replace(plan, arena=arena), rng, tmp_path)
