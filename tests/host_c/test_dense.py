"""Fully connected layers of joined units: the portable C under sanitizers, on random shapes."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.dense import layer, layers
from tests.support.host import model_of, plan_of, random_inputs, reference_outputs
from toolchain.boards import HOST
from toolchain.device.host import HostProgram, build
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.ops import kernel_of

JOINED = "thimble_fully_connected_joined_s8"


def kernel(graph: Graph) -> str:
    (op,) = graph.ops
    return kernel_of(op, graph, HOST).functions[0]


def check(graphs: list[Graph], rng: np.random.Generator) -> None:
    models = [model_of(plan_of(graph, HOST), f"m{index}") for index, graph in enumerate(graphs)]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, graph in enumerate(graphs):
                for _ in range(3):
                    inputs = random_inputs(graph, rng)
                    want = reference_outputs(graph, inputs)[0]
                    have = running.run(inputs, index)[0]
                    np.testing.assert_array_equal(have, want, err_msg=f"{index} {graph}")


def test_joined_units_equal_the_reference() -> None:
    rng = np.random.default_rng(9)
    graphs = layers(60, rng)
    assert all(kernel(graph) == JOINED for graph in graphs)
    check(graphs, rng)


@pytest.mark.parametrize("weight", (-127, -128))
def test_filters_that_cannot_be_joined(weight: int) -> None:
    """Two weights in an int16 do not hold -128 beside what is below 0."""
    rng = np.random.default_rng(11)
    graph = layer(2, 12, 8, rng)
    weights = graph.tensors["weights"]
    assert weights.constant is not None
    data = weights.constant.copy()
    data[:2, 0] = -1, weight
    tensors = dict(graph.tensors) | {"weights": replace(weights, constant=data)}
    made = replace(graph, tensors=tensors)
    assert (kernel(made) == JOINED) is (weight > -128)
    check([made], rng)
