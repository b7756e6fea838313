"""Winograd's convolutions as portable C under sanitizers: equal to the plain sums, bit by bit."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import model_of, plan_of, random_inputs, reference_outputs
from tests.support.merge import merged
from tests.support.overlaps import allowed_overlaps, tight_plan
from tests.support.split_graphs import in_tiles
from tests.support.winograd import convolution, convolutions, extreme_inputs, with_winograd
from toolchain.boards import HOST
from toolchain.device.host import HostProgram, build
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan
from toolchain.ops.convolution.winograd import FORMS, winograd_conv2d
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


@pytest.mark.parametrize("tile", TILES)
def test_any_size_padding_and_value(tile: int) -> None:
    rng = np.random.default_rng(tile)
    core = with_winograd(HOST, tile)
    plans = [plan_of(graph, core, spread=True) for graph in convolutions(18, rng, tile)]
    for plan in plans:
        assert plan.lowered.kernels[0].functions == (FORMS[tile].function,)
    _check(plans, rng)


@pytest.mark.parametrize("tile", TILES)
def test_two_tiles_at_a_time_take_less_scratch(tile: int) -> None:
    rng = np.random.default_rng(tile)
    plans = []
    for graph in convolutions(9, rng, tile):
        plan = plan_of(graph, with_winograd(HOST, tile), spread=True)
        kernel = winograd_conv2d(graph.ops[0], graph, tile, 2)
        assert kernel is not None
        assert kernel.scratch_bytes <= plan.lowered.kernels[0].scratch_bytes
        plans.append(replace(plan, lowered=replace(plan.lowered, kernels=(kernel,))))
    _check(plans, rng)


@pytest.mark.parametrize("tile", TILES)
def test_tiles_of_images_whose_lines_lie_apart(tile: int) -> None:
    rng = np.random.default_rng(tile)
    padding = Padding(1, 1, 1, 1)
    graphs = [convolution((h, w), 8, 6, rng, padding=padding) for h, w in ((9, 11), (12, 13))]
    plans = [plan_of(in_tiles(graph, 2, 2), with_winograd(HOST, tile)) for graph in graphs]
    for plan in plans:
        assert plan.arena.pitches
        assert FORMS[tile].function in {f for k in plan.lowered.kernels for f in k.functions}
    _check(plans, rng)


@pytest.mark.parametrize("tile", TILES)
def test_the_output_may_follow_the_input_as_near_as_claimed(tile: int) -> None:
    rng = np.random.default_rng(tile)
    core = with_winograd(HOST, tile)
    graphs = convolutions(18, rng, tile)
    overlaps = [claim for g in graphs for claim in allowed_overlaps(g.ops[0], g, core)]
    assert len(overlaps) == len(graphs)
    sizes = [
        (claim.lead_bytes, g.tensors["y"].size_bytes)
        for claim, g in zip(overlaps, graphs, strict=True)
    ]
    assert any(0 < lead < size for lead, size in sizes)
    _check([tight_plan(merged(graphs), overlaps, core)], rng)
