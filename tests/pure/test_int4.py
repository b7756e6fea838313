"""Weights stored as int4: read as int8, exact against LiteRT."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.pure.test_ops_litert import evaluate, random_value
from tests.support.litert import run_litert
from tests.support.tflite_writer import tflite_bytes
from tests.support.weights import sample_with_constant_weights
from toolchain.errors import InputError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir import DType, Graph

KINDS = ("conv2d", "depthwise_conv2d", "fully_connected")


def _sample(kind: str, rng: np.random.Generator) -> Graph:
    """A sample with weights of 4 bits."""
    graph = sample_with_constant_weights(kind, rng)
    weights = graph.tensors["weights"]
    few = replace(weights, constant=rng.integers(-8, 8, weights.shape).astype(np.int8))
    tensors = [few if t is weights else t for t in graph.tensors.values()]
    return Graph.build(graph.name, tensors, graph.ops, graph.inputs, graph.outputs)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_read_and_exact(kind: str, litert_runs: int) -> None:
    rng = np.random.default_rng(len(kind))
    for _ in range(litert_runs):
        sample = _sample(kind, rng)
        data = tflite_bytes(sample, int4=("weights",))
        graph = FRONT_END.read(data, Path("m.tflite"))
        weights = graph.tensors["weights"]
        assert weights.dtype is DType.INT8
        np.testing.assert_array_equal(weights.constant, sample.tensors["weights"].constant)
        values = {name: random_value(graph.tensors[name], rng) for name in graph.inputs}
        (expected,) = run_litert(data, list(values.values()))
        np.testing.assert_array_equal(evaluate(graph, values)[0], expected, str(graph.ops))


def test_a_short_buffer_is_refused() -> None:
    sample = _sample("fully_connected", np.random.default_rng(1))
    weights = sample.tensors["weights"]
    assert weights.constant is not None
    short = replace(weights, constant=weights.constant[:, :-8])
    tensors = [short if t is weights else t for t in sample.tensors.values()]
    graph = Graph.build("short", tensors, sample.ops, sample.inputs, sample.outputs)
    with pytest.raises(InputError, match="corrupt: tensor 'weights'"):
        FRONT_END.read(tflite_bytes(graph, int4=("weights",)), Path("m.tflite"))
