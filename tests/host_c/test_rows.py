"""Inputs that arrive by rows: the generated C under sanitizers, against the whole graph."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tests.host_c.test_generated import compile_with
from tests.support.graph_builder import Builder
from tests.support.host import model_of, plan_of, random_inputs, reference_outputs
from tests.support.split_graphs import random_network, random_scheme
from toolchain.boards import HOST
from toolchain.codegen import generate
from toolchain.device.host import HostProgram, build
from toolchain.errors import InputError
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.ops.check import check
from toolchain.ops.convolution.conv2d_s8 import Conv2D
from toolchain.ops.window import Padding
from toolchain.partition import CannotSplitError, Scheme, split
from toolchain.planning.rows import stream_input

MODELS = 24
FRAMES = 7
"""One more than the host program has numbers of rows to push at a time."""


def _takers(graph: Graph) -> int:
    return sum(op.kind == "input_rows" for op in graph.ops)


def _streamed(rng: np.random.Generator) -> tuple[Graph, Graph] | None:
    graph = check(random_network(rng))
    try:
        streamed = check(stream_input(graph))
        return graph, check(split(streamed, random_scheme(streamed, rng)))
    except (InputError, CannotSplitError):
        return None


def test_rows_in_any_number_give_what_the_whole_input_gives() -> None:
    rng = np.random.default_rng(11)
    pairs: list[tuple[Graph, Graph]] = []
    while len(pairs) < MODELS:
        pair = _streamed(rng)
        if pair is not None and (_takers(pair[1]) > 1 or len(pairs) % 4 == 0):
            pairs.append(pair)
    assert sum(_takers(fine) > 1 for _, fine in pairs) > MODELS // 2
    models = [
        model_of(plan_of(fine, spread=i % 4 == 1, progressive=True), f"m{i}")
        for i, (_, fine) in enumerate(pairs)
    ]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, (graph, fine) in enumerate(pairs):
                for frame in range(FRAMES):
                    inputs = random_inputs(graph, rng)
                    wanted = reference_outputs(graph, inputs)
                    for want, have in zip(wanted, running.run(inputs, index), strict=True):
                        np.testing.assert_array_equal(have, want, f"{frame}: {fine.ops}")


def _two_convolutions() -> Graph:
    builder = Builder()
    x = builder.input((1, 10, 6, 3))
    y = builder.conv(x, 3, 4, Conv2D(padding=Padding(1, 1, 1, 1)))
    y = builder.conv(y, 3, 2, Conv2D(stride=(2, 2), padding=Padding(1, 1, 1, 1)))
    return builder.graph([y])


def test_errors_have_names_and_a_frame_can_be_begun_anew(tmp_path: Path) -> None:
    streamed = check(stream_input(_two_convolutions()))
    names = tuple(op.name for op in streamed.ops)
    fine = check(split(streamed, Scheme(names, (streamed.outputs[0], 1), 4)))
    plan = plan_of(fine, progressive=True)
    program = compile_with("rows.c", [generate(plan, HOST, cmsis_nn.find(), name="net")], tmp_path)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [
        *("ARENA", "0", "ARENA", "ROWS"),
        *("AGAIN", "ROWS", "OK", "ROWS"),
        *("AGAIN", "AGAIN", "AGAIN", "AGAIN", "10", "AGAIN", "AGAIN", "ROWS", "1"),
        *("OK", "0", "same"),
    ], done.stderr
