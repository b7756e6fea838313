"""Generated C of split graphs against the unsplit ones, under ASan and UBSan."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from tests.support.host import host_model, random_inputs, reference_outputs
from tests.support.split_graphs import random_network, random_scheme
from toolchain import cmsis_nn
from toolchain.device.host import HostProgram, build
from toolchain.ir import Graph
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
