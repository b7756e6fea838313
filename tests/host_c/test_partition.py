"""Generated C of split graphs against the unsplit ones, under ASan and UBSan."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from tests.support.host import (
    host_model,
    model_of,
    plan_of,
    random_inputs,
    reference_outputs,
)
from tests.support.split_graphs import random_network, random_scheme, tiled_convolutions
from toolchain.device.host import HostProgram, build
from toolchain.ir import Graph
from toolchain.ir.merged import merged
from toolchain.kernels import cmsis_nn
from toolchain.ops.check import check
from toolchain.partition import CannotSplitError, split

MODELS = 40


def test_split_c_equals_the_unsplit_graph() -> None:
    rng = np.random.default_rng(5)
    coarse: list[Graph] = []
    fine: list[Graph] = []
    while len(fine) < MODELS:
        graph = check(random_network(rng))
        try:
            fine.append(check(split(graph, random_scheme(graph, rng))))
        except CannotSplitError:
            continue
        coarse.append(graph)
    assert sum(any(op.kind == "requantise_sums" for op in graph.ops) for graph in fine) > 3
    models = [
        host_model(g, f"m{i}", spread=i % 4 == 0, progressive=True) for i, g in enumerate(fine)
    ]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, graph in enumerate(coarse):
                inputs = random_inputs(graph, rng)
                wanted = reference_outputs(graph, inputs)
                for want, have in zip(wanted, running.run(inputs, index), strict=True):
                    np.testing.assert_array_equal(have, want, err_msg=f"{fine[index].ops}")


def test_tiles_lie_in_the_image_with_gaps_between_their_lines() -> None:
    """Nothing is copied to cut columns out of an image, nor to put them together."""
    rng = np.random.default_rng(6)
    kinds = ("convolutions", "pointwise_convolutions", "depthwise_convolutions")
    pairs = [pair for kind in kinds for pair in tiled_convolutions(kind, 40, rng)]
    coarse, fine = (merged([pair[side] for pair in pairs]) for side in (0, 1))
    plan = plan_of(check(fine))
    model = model_of(plan, "m")
    ran = {fine.ops[number].kind for number in model.sources.calls}
    assert len(plan.arena.pitches) > 2 * len(pairs)
    assert ran == {"conv2d", "depthwise_conv2d"}
    with tempfile.TemporaryDirectory() as folder:
        program = build([model], cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, [model]) as running:
            inputs = random_inputs(fine, rng)
            given = dict(zip(fine.inputs, inputs, strict=True))
            wanted = reference_outputs(coarse, [given[name] for name in coarse.inputs])
            have = dict(zip(fine.outputs, running.run(inputs), strict=True))
            for name, want in zip(coarse.outputs, wanted, strict=True):
                np.testing.assert_array_equal(have[name], want, err_msg=name)
