"""Whole networks with every overlap made use of: right, and no operator touches bytes of others."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import model_of, plan_of, random_inputs, reference_outputs
from tests.support.long import mostly_long
from tests.support.random_networks import random_network
from toolchain import arena
from toolchain.device.host import HostProgram, build
from toolchain.kernels import cmsis_nn

NETWORKS = 30


@pytest.mark.parametrize("allocator", mostly_long(arena.names(), ["exact", "greedy-size"]))
def test_random_networks_equal_their_references(allocator: str) -> None:
    rng = np.random.default_rng(11)
    plans = [plan_of(random_network(rng), allocator=allocator) for _ in range(NETWORKS)]
    without = [plan_of(plan.graph, spread=True).arena.size_bytes for plan in plans]
    assert sum(plan.arena.size_bytes for plan in plans) < 0.6 * sum(without)
    models = [model_of(plan, f"m{index}") for index, plan in enumerate(plans)]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, model in enumerate(models):
                inputs = random_inputs(model.graph, rng)
                got = running.run(inputs, index)
                wanted = reference_outputs(model.graph, inputs)
                for name, want, have in zip(model.graph.outputs, wanted, got, strict=True):
                    np.testing.assert_array_equal(have, want, f"{name} of {model.graph.ops}")
