"""Models that keep state, on the host under sanitizers, against their NumPy references."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import host_model
from tests.support.states import GRAPHS, assign, filled_in_place, state, tensor, window
from toolchain.boards import HOST
from toolchain.device.host import HostModel, HostProgram, build
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.memory.problem import memory_problem
from toolchain.ops import forms
from toolchain.ops.check import check
from toolchain.ops.interpret import interpret
from toolchain.ops.lowering import lower
from toolchain.ops.spec import Array


def _sequence(graph: Graph, model: HostModel, frames: list[tuple[Array, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = build([model], cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, [model]) as running:
            for begin in range(2):
                memory: dict[str, Array] = {}
                for number, inputs in enumerate(frames):
                    want = interpret(graph, inputs, memory)
                    got = running.run(inputs, restart=number == 0)
                    for name, one, other in zip(graph.outputs, want, got, strict=True):
                        np.testing.assert_array_equal(other, one, f"{name}, {begin}, {number}")


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_frames_and_resets_equal_the_reference(name: str, spread: bool) -> None:
    graph = check(GRAPHS[name])
    rng = np.random.default_rng(1)
    shape = graph.tensors["x"].shape
    frames = [(rng.integers(-128, 128, shape).astype(np.int8),) for _ in range(6)]
    _sequence(graph, host_model(graph, "m", spread=spread), frames)


@pytest.mark.parametrize("kind", ["lstm.float32", "lstm.hybrid", "svdf.float32", "svdf.hybrid"])
def test_float_layers_keep_their_state(kind: str) -> None:
    rng = np.random.default_rng(2)
    for number in range(3):
        graph = check(forms()[kind].sample(rng))
        shape = graph.tensors["x"].shape
        frames = [(rng.normal(0, 1, shape).astype(np.float32),) for _ in range(4)]
        _sequence(graph, host_model(graph, f"m{number}", spread=number == 1), frames)


def test_a_window_owns_the_state_that_it_begins_with() -> None:
    problem = memory_problem(lower(window(5, 2), HOST))
    held = [{m.tensor for m in buffer.members} for buffer in problem.buffers]
    assert {"s", "s_next", "w", "v", "r"} in held
    buffer = problem.buffers[held.index({"s", "s_next", "w", "v", "r"})]
    assert buffer.from_start
    assert buffer.to_end
    assert buffer.size_bytes == 28


def test_a_state_is_updated_when_everything_of_its_buffer_is_read() -> None:
    graph = window(5, 2)
    problem = memory_problem(lower(graph, HOST))
    assert set(problem.predecessors[graph.producers["s_next"]]) >= {1, 2, 3}


def test_a_value_is_computed_in_the_state_where_nothing_reads_it_later() -> None:
    problem = memory_problem(lower(filled_in_place(), HOST))
    assert {"s", "s_next", "z"} in [{m.tensor for m in b.members} for b in problem.buffers]


def test_states_that_exchange_their_values_are_refused() -> None:
    tensors = [tensor(n, 1, 3, 4) for n in ("a", "a_next", "b", "b_next", "x")]
    ops = [assign("a", "b"), assign("b", "a")]
    graph = Graph.build("swap", tensors, ops, ["x"], ["x"], [state("a", 3), state("b", 3)])
    with pytest.raises(UnsupportedError, match="exchange"):
        memory_problem(lower(check(graph), HOST))
