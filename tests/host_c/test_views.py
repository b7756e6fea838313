"""Views, concats laid in place and in-place kernels: what the arena shares stays right."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.host import random_inputs, reference_outputs, run_graphs_on_host
from tests.support.random_graphs import random_movement_graph

GRAPHS = 60


@pytest.mark.parametrize("seed", [1, 2])
def test_random_graphs_equal_their_references(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cases = []
    for _ in range(GRAPHS):
        graph = random_movement_graph(rng)
        cases.append((graph, random_inputs(graph, rng)))
    for (graph, inputs), got in zip(cases, run_graphs_on_host(cases, sanitize=True), strict=True):
        for name, want, have in zip(
            graph.outputs, reference_outputs(graph, inputs), got, strict=True
        ):
            np.testing.assert_array_equal(have, want, err_msg=f"{name} of {graph.ops}")
