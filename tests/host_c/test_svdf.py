"""SVDF run after run, against tflite-micro."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import host_model
from tests.support.tflite_writer import tflite_bytes
from toolchain.device.host import HostProgram, build
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array

RUNS = 5


@pytest.mark.parametrize("kind", ["svdf", "svdf.int8"])
def test_runs_equal_tflite_micro(kind: str) -> None:
    runtime = pytest.importorskip("tflite_micro.python.tflite_micro.runtime")
    rng = np.random.default_rng(5)
    samples = [forms()[kind].sample(rng) for _ in range(16)]
    graphs = [graph for graph in samples if graph.ops[0].inputs[3]]  # tflite-micro wants a bias
    models = [host_model(graph, f"m{index}") for index, graph in enumerate(graphs)]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, graph in enumerate(graphs):
                micro = runtime.Interpreter.from_bytes(tflite_bytes(graph))
                memory: dict[str, Array] = {}
                for run in range(RUNS):
                    x = rng.integers(-128, 128, graph.tensors["x"].shape).astype(np.int8)
                    micro.set_input(x, 0)
                    micro.invoke()
                    wanted = micro.get_output(0)
                    (reference,) = interpret(graph, [x], memory)
                    np.testing.assert_array_equal(reference, wanted, f"{index}, {run}")
                    (got,) = running.run([x], index, restart=run == 0)
                    np.testing.assert_array_equal(got, wanted, f"{index}, {run}")
