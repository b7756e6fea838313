"""Random graphs as TFLite files: front end, passes and generated C against LiteRT, whole."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from tests.support.host import host_model, random_inputs
from tests.support.litert import run_litert
from tests.support.random_graphs import random_movement_graph
from tests.support.tflite_writer import tflite_bytes
from toolchain import passes
from toolchain.device.host import HostProgram, build
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn

MODELS = 40


def test_compiled_files_equal_litert() -> None:
    rng = np.random.default_rng(3)
    written: list[tuple[Graph, bytes]] = []
    for _ in range(MODELS):
        graph = random_movement_graph(rng)
        written.append((graph, tflite_bytes(graph)))
    prepared = [passes.prepare(FRONT_END.read(data, Path("m.tflite"))).graph for _, data in written]
    models = [host_model(graph, f"m{index}") for index, graph in enumerate(prepared)]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, (graph, data) in enumerate(written):
                inputs = random_inputs(graph, rng)
                got = running.run(inputs, index)
                wanted = run_litert(data, inputs)
                for name, want, have in zip(graph.outputs, wanted, got, strict=True):
                    message = f"{name} of {graph.ops}"
                    np.testing.assert_array_equal(have, want, err_msg=message)
