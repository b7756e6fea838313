"""Winograd's convolutions as portable C under sanitizers: equal to the plain sums, bit by bit."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import model_of, plan_of, random_inputs, reference_outputs
from tests.support.overlaps import tight_plan
from tests.support.split_graphs import in_tiles
from tests.support.winograd import (
    all_by,
    convolution,
    convolutions,
    extreme_inputs,
    roomiest,
)
from toolchain.boards import HOST
from toolchain.device.host import HostProgram, build
from toolchain.ir import Graph
from toolchain.ir.merged import merged
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan
from toolchain.ops.convolution.kernels.thimble_convolve_winograd_s8 import (
    FORMS,
)
from toolchain.ops.convolution.kernels.thimble_convolve_winograd_s8 import (
    kernel as winograd_conv2d,
)
from toolchain.ops.operator import operator_of
from toolchain.ops.window import Padding

TILES = tuple(FORMS)


def _check(plans: list[Plan], rng: np.random.Generator) -> None:
    models = [model_of(plan, f"m{index}") for index, plan in enumerate(plans)]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, plan in enumerate(plans):
                graph = plan.graph
                given = [random_inputs(graph, rng)]
                if len(graph.inputs) == 1:
                    given = [(x,) for x in extreme_inputs(graph, rng)]
                for inputs in given:
                    wanted = reference_outputs(graph, inputs)
                    for want, have in zip(wanted, running.run(inputs, index), strict=True):
                        np.testing.assert_array_equal(have, want, err_msg=f"{graph.ops[0]}")


def _plan(graph: Graph, tile: int) -> Plan:
    return plan_of(graph, spread=True, forms=all_by(graph, tile))


@pytest.mark.parametrize("tile", TILES)
def test_any_size_padding_and_value(tile: int) -> None:
    rng = np.random.default_rng(tile)
    plans = [_plan(graph, tile) for graph in convolutions(18, rng, tile)]
    for plan in plans:
        assert plan.lowered.kernels[0].functions == (FORMS[tile].function,)
    _check(plans, rng)


@pytest.mark.parametrize("tile", TILES)
def test_three_tiles_at_a_time_take_more_scratch(tile: int) -> None:
    rng = np.random.default_rng(tile)
    two = [_plan(graph, tile) for graph in convolutions(9, rng, tile)]
    three = [roomiest(plan) for plan in two]
    assert (
        sum(
            one.operators[0].scratch_bytes < other.operators[0].scratch_bytes
            for one, other in zip(two, three, strict=True)
        )
        > 4
    )
    _check(three, rng)


@pytest.mark.parametrize("tile", TILES)
def test_tiles_of_images_whose_lines_lie_apart(tile: int) -> None:
    rng = np.random.default_rng(tile)
    padding = Padding(1, 1, 1, 1)
    graphs = [convolution((h, w), 8, 6, rng, padding=padding) for h, w in ((9, 11), (12, 13))]
    tiled = [in_tiles(graph, 2, 2) for graph in graphs]
    plans = [plan_of(graph, forms=all_by(graph, tile)) for graph in tiled]
    for plan in plans:
        assert plan.arena.pitches
        assert FORMS[tile].function in {f for k in plan.lowered.kernels for f in k.functions}
    _check(plans, rng)


@pytest.mark.parametrize("most", [2, 3])
@pytest.mark.parametrize("tile", TILES)
def test_the_output_may_follow_the_input_as_near_as_claimed(tile: int, most: int) -> None:
    rng = np.random.default_rng(tile)
    graphs = convolutions(12, rng, tile)
    kernels = [winograd_conv2d(operator_of(graph.ops[0], graph), tile, most) for graph in graphs]
    overlaps = [claim for kernel in kernels if kernel is not None for claim in kernel.overlaps]
    assert len(overlaps) == len(graphs)
    sizes = [
        (claim.lead_bytes, g.tensors["y"].size_bytes)
        for claim, g in zip(overlaps, graphs, strict=True)
    ]
    assert any(0 < lead < size for lead, size in sizes)
    whole = merged(graphs)
    plan = tight_plan(whole, overlaps, HOST, all_by(whole, tile))
    _check([plan if most == 2 else roomiest(plan)], rng)
