"""SVDF run after run, against tflite-micro."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.support import wrapping
from tests.support.host import host_model
from tests.support.tflite_writer import tflite_bytes
from toolchain.boards import HOST
from toolchain.device.host import HostProgram, build
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms, kernel_of
from toolchain.ops.interpret import interpret
from toolchain.ops.lowering import lower
from toolchain.ops.preference import Preference
from toolchain.ops.spec import Array

RUNS = 5


def test_cmsis_nn_is_called_where_no_sum_may_wrap() -> None:
    rng = np.random.default_rng(6)
    graphs = [*(forms()["svdf"].sample(rng) for _ in range(4)), wrapping.svdf(rng)]
    called = [kernel_of(graph.ops[0], graph, HOST).functions[0] for graph in graphs]
    assert called == ["arm_svdf_state_s16_s8"] * 4 + ["thimble_svdf_s16_s8"]
    (kernel,) = lower(graphs[-1], HOST, Preference.CMSIS_NN).kernels
    assert "may wrap" in kernel.instead


@pytest.mark.parametrize("kind", ["svdf", "svdf.int8", "wrapping"])
def test_runs_equal_tflite_micro(kind: str) -> None:
    """`wrapping`: biases at the ends of int32, and large time filters."""
    runtime = pytest.importorskip("tflite_micro.python.tflite_micro.runtime")
    rng = np.random.default_rng(5)
    make = wrapping.svdf if kind == "wrapping" else forms()[kind].sample
    samples = [make(rng) for _ in range(16)]
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
