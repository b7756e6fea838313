"""Inputs that arrive by rows: the generated C under sanitizers, against the whole graph."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tests.host_c.test_cpp import library, program
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
        host = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(host, models) as running:
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
    plan = plan_of(_in_blocks(), progressive=True)
    sources = generate(plan, HOST, cmsis_nn.find(), name="net")
    built = compile_with("rows.c", [sources], tmp_path)
    done = subprocess.run([str(built)], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [
        *("ARENA", "0", "ARENA", "ROWS"),
        *("AGAIN", "ROWS", "OK", "ROWS"),
        *("AGAIN", "AGAIN", "AGAIN", "AGAIN", "10", "AGAIN", "AGAIN", "ROWS", "1"),
        *("OK", "0", "same"),
    ], done.stderr


def _in_blocks() -> Graph:
    streamed = check(stream_input(_two_convolutions()))
    names = tuple(op.name for op in streamed.ops)
    return check(split(streamed, Scheme(names, (streamed.outputs[0], 1), 4)))


def test_the_cpp_header_and_the_info_push_rows(tmp_path: Path) -> None:
    """Rows of 18 elements: seven by the member function, three by `net_info`."""
    fine = _in_blocks()
    values = ((np.arange(180) * 7) & 0xFF).astype(np.uint8).view(np.int8).reshape(1, 10, 6, 3)
    main = """
    static thimble::net::arena network;
    static std::int8_t rows[NET_INPUT_IN0_ELEMENTS];
    fill(thimble::span<std::int8_t, NET_INPUT_IN0_ELEMENTS>(rows, NET_INPUT_IN0_ELEMENTS));
    const auto begun = network.push_begin();
    auto status = network.push_rows(rows, 7);
    std::printf("%s %s %u\\n", begun.name(), status.name(), unsigned(network.rows_left()));
    alignas(8) static std::uint8_t memory[NET_ARENA_BYTES];
    const thimble_info &info = thimble::net::info();
    std::printf("%d %u ", info.run == nullptr, unsigned(info.inputs[0].rows));
    std::printf("%d ", thimble_input(&info, 0, memory) == nullptr);
    info.push_begin(memory);
    const int32_t code = info.push_rows(memory, rows, 10);
    std::printf("%s\\n", info.error_name(code));
    status = network.push_rows(rows + 7 * NET_INPUT_IN0_ROW_ELEMENTS, 3);
    std::printf("%s\\n", status.name());
    print(network.output_t1());"""
    plan = plan_of(fine, progressive=True)
    first, second, third, printed = program(library(plan, tmp_path), "c++17", main)
    assert (first, second, third) == ("AGAIN AGAIN 3", "1 10 1 OK", "OK")
    (wanted,) = reference_outputs(fine, (values,))
    assert [int(word) for word in printed.split()] == wanted.reshape(-1).tolist()
