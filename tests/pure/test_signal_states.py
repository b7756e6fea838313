"""Signal operators that keep samples from run to run, over several runs, and their judge."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from tests.pure.test_ops_litert import random_value
from tests.support.tflite_writer import tflite_bytes
from toolchain.frontends.tflite.file import read_file
from toolchain.ir import Graph
from toolchain.ops import forms
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array
from toolchain.reference.process import Runtime, RuntimeProcess, open_model
from toolchain.reference.unwritten import filled

KINDS = sorted(
    kind
    for kind in forms()
    if kind.startswith("signal_") and forms()[kind].sample(np.random.default_rng(0)).states
)
RUNS = 7


@pytest.fixture(scope="module")
def process() -> RuntimeProcess:
    pytest.importorskip("tflite_micro")
    return RuntimeProcess()


def _runs(graph: Graph, runs: list[list[Array]]) -> list[tuple[Array, ...]]:
    memory: dict[str, Array] = {}
    return [interpret(graph, inputs, memory) for inputs in runs]


@pytest.mark.parametrize("kind", KINDS)
def test_runs_follow_each_other_as_in_tflite_micro(kind: str, process: RuntimeProcess) -> None:
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    for _ in range(12):
        graph = forms()[kind].sample(rng)
        data = tflite_bytes(graph)
        (op,) = read_file(data).ops
        runs = [[random_value(graph.tensors[n], rng) for n in graph.inputs] for _ in range(RUNS)]
        opened = open_model(process, Runtime.TFLITE_MICRO, data, len(graph.outputs))
        for run, (inputs, got) in enumerate(zip(runs, _runs(graph, runs), strict=True)):
            theirs = dict(zip(op.outputs, opened.run(inputs), strict=True))
            for mine, want in zip(got, (theirs | filled(op, theirs)).values(), strict=True):
                message = f"run {run}, {graph.ops[0].attributes}"
                np.testing.assert_array_equal(mine, want.reshape(mine.shape), err_msg=message)
