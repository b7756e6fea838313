"""Every operator kind on emulated boards, where CMSIS-NN takes its DSP and Helium paths."""

from __future__ import annotations

import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.grids import (
    convolutions,
    depthwise_convolutions,
    many_channels,
    pointwise_convolutions,
)
from tests.support.host import random_tensor
from tests.support.long import mostly_long
from tests.support.overlaps import allowed_overlaps, overlapping_samples, tight_plan
from toolchain.boards import board
from toolchain.codegen import generate
from toolchain.device.build import build
from toolchain.device.session import open_board, pattern_inputs
from toolchain.ir import Op
from toolchain.ir.merged import merged
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan
from toolchain.ops import forms
from toolchain.ops.forms import Choice
from toolchain.ops.interpret import interpret
from toolchain.ops.preference import Preference
from toolchain.ops.spec import Array
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions

BOARDS = ("mps2-an386", "mps3-an547")
SAMPLES, MANY = 3, 8
GROUP = 8

GRIDS = {"conv2d": convolutions, "depthwise_conv2d": depthwise_convolutions}
LARGE = {"conv2d": pointwise_convolutions, "depthwise_conv2d": many_channels}

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)

KINDS = sorted(forms())
GROUPS = [KINDS[i : i + GROUP] for i in range(0, len(KINDS), GROUP)]


def _differs(kinds: list[str]) -> bool:
    """Whether any has kernels to choose from: the others are the same C on each core."""
    return any(isinstance(forms()[kind].select, Choice) for kind in kinds)


ON_BOARDS = [
    pytest.param(
        name,
        kinds,
        id=f"{kinds[0]}..{kinds[-1]}-{name}",
        marks=() if name == BOARDS[-1] or _differs(kinds) else pytest.mark.long,
    )
    for name in BOARDS
    for kinds in GROUPS
]


@pytest.mark.parametrize("samples", mostly_long([SAMPLES, MANY], [SAMPLES]))
@pytest.mark.parametrize(("board_name", "kinds"), ON_BOARDS)
def test_operators_equal_their_references(
    board_name: str, kinds: list[str], samples: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(zlib.crc32(kinds[0].encode()))
    graph = merged([forms()[kind].sample(rng) for kind in kinds for _ in range(samples)])
    compare(plan_graph(graph, board(board_name), QUICK), rng, tmp_path)


@pytest.mark.parametrize("board_name", BOARDS)
@pytest.mark.parametrize(
    "kind",
    [
        "average_pool2d",
        "max_pool2d",
        "add",
        "fully_connected",
        "conv2d.int16",
        "depthwise_conv2d.int16",
        "average_pool2d.int16",
        "max_pool2d.int16",
    ],
)
def test_kernels_bear_their_overlaps(board_name: str, kind: str, tmp_path: Path) -> None:
    """The kinds whose kernel differs from core to core; `host_c` tries all."""
    rng = np.random.default_rng(5)
    core = board(board_name).core
    graph, overlaps = overlapping_samples([kind], core, 12)
    compare(replace(tight_plan(graph, overlaps, core), board=board_name), rng, tmp_path)


@pytest.mark.parametrize("board_name", BOARDS)
@pytest.mark.parametrize("kind", ["conv2d", "depthwise_conv2d"])
def test_convolutions_bear_their_overlaps(board_name: str, kind: str, tmp_path: Path) -> None:
    """Samples, some of the grid, and images that take each Helium kernel through all its loops."""
    rng = np.random.default_rng(6)
    core = board(board_name).core
    grid = GRIDS[kind]()
    graphs = [forms()[kind].sample(rng) for _ in range(20)]
    graphs += [grid[i] for i in rng.permutation(len(grid))[:60]] + LARGE[kind]()
    cases = [(g, o) for g in graphs for o in allowed_overlaps(g.ops[0], g, core)]
    graph, overlaps = merged([g for g, _ in cases]), [o for _, o in cases]
    compare(replace(tight_plan(graph, overlaps, core), board=board_name), rng, tmp_path)


@pytest.mark.parametrize(
    ("board_name", "preference"),
    [
        ("mps2-an386", Preference.CMSIS_NN),
        ("mps3-an547", Preference.CMSIS_NN),
        ("mps3-an547", Preference.THIMBLE),
    ],
)
def test_each_kernel_that_can_be_asked_for(
    board_name: str, preference: Preference, tmp_path: Path
) -> None:
    """CMSIS-NN's DSP and Helium paths, and Thimble's kernels where Helium takes CMSIS-NN's."""
    rng = np.random.default_rng(11)
    kinds = [kind for kind, spec in forms().items() if isinstance(spec.select, Choice)]
    graphs = [forms()[kind].sample(rng) for kind in kinds for _ in range(3)]
    for made in GRIDS.values():
        grid = made()
        graphs += [grid[i] for i in rng.permutation(len(grid))[:6]]
    plan = plan_graph(merged(graphs), board(board_name), replace(QUICK, kernels=preference))
    asked = [op for op in plan.operators if not op.instead]
    assert len(asked) > len(plan.operators) // 2
    compare(plan, rng, tmp_path)


QUICK = PlanOptions(scheduler="kahn", allocator="greedy-size")
"""For graphs of many operators whose kernels are tested: no search for the smallest arena."""


def compare(plan: Plan, rng: np.random.Generator, folder: Path) -> None:
    """Build, run on two sets of random inputs, and compare with the references: byte for byte,
    within 1 where the plan says that a kernel is not exact.

    The board itself makes those of which any bytes will do: they take long over the line. A third
    run, where the model keeps state, begins anew.
    """
    target, graph = board(plan.board), plan.graph
    sources = generate(plan, plan.lowered.core, cmsis_nn.find(), name="m")
    firmware = build([(plan, sources)], target, folder)
    memory: dict[str, Array] = {}
    with open_board(firmware) as session:
        for turn in range(3 if graph.states else 2):
            if turn == 2:
                session.clear_state()
                memory.clear()
            inputs = pattern_inputs(firmware, turn)
            written = {
                name: random_tensor(graph.tensors[name], rng)
                for name in inputs
                if graph.tensors[name].dtype.numpy.kind not in "iu"
            }
            inputs |= written
            expected = interpret(graph, [inputs[name] for name in graph.inputs], memory)
            got = session.run_pattern(turn, written).outputs
            for name, want in zip(graph.outputs, expected, strict=True):
                ops = [op for op in graph.ops if name in op.outputs]
                if any(name in op.outputs for op in _inexact(plan)):
                    assert np.abs(got[name].astype(int) - want.astype(int)).max() <= 1, ops
                else:
                    np.testing.assert_array_equal(got[name], want, err_msg=f"{name}: {ops}")


def _inexact(plan: Plan) -> list[Op]:
    return [o for o, p in zip(plan.graph.ops, plan.operators, strict=True) if p.inexact]
