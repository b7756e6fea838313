"""Models that keep state, on the host under sanitizers, against their NumPy references."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import host_model
from toolchain import cmsis_nn
from toolchain.boards import HOST
from toolchain.device.host import HostModel, HostProgram, build
from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op, Quantisation, State, Tensor
from toolchain.ops.assign import Assign
from toolchain.ops.check import check
from toolchain.ops.concat import Concat
from toolchain.ops.interpret import interpret
from toolchain.ops.relu import Relu
from toolchain.ops.reshape import Reshape
from toolchain.ops.slice import Slice
from toolchain.ops.spec import Array
from toolchain.ops.storage import memory_problem

Q = Quantisation((0.1,), (3,))


def _tensor(name: str, *shape: int) -> Tensor:
    return Tensor(name, shape, DType.INT8, Q)


def _slice(source: str, target: str, begin: int, rows: int) -> Op:
    attributes = Slice((0, begin, 0), (1, rows, 4), (1, 1, 1), (1, rows, 4))
    return Op("slice", f"slice_{target}", (source,), (target,), attributes)


def _assign(value: str, state: str) -> Op:
    return Op("assign", f"assign_{state}", (value, state), (f"{state}_next",), Assign())


def _state(name: str, rows: int, seed: int = 0) -> State:
    rng = np.random.default_rng(seed)
    return State(name, f"{name}_next", rng.integers(-128, 128, (1, rows, 4)).astype(np.int8))


def window(rows: int, frame: int) -> Graph:
    """The last rows of a window move down into the state that the window begins with."""
    tensors = [
        *(_tensor(n, 1, rows, 4) for n in ("s", "s_next", "v")),
        *(_tensor(n, 1, frame, 4) for n in ("x", "r")),
        *(_tensor(n, 1, rows + frame, 4) for n in ("w", "y")),
    ]
    ops = [
        Op("relu", "relu_x", ("x",), ("r",), Relu()),
        Op("concat", "concat", ("s", "r"), ("w",), Concat(1)),
        _slice("w", "v", frame, rows),
        Op("relu", "relu_y", ("w",), ("y",), Relu()),
        _assign("v", "s"),
    ]
    return Graph.build("window", tensors, ops, ["x"], ["y"], [_state("s", rows)])


def window_is_output() -> Graph:
    """The window itself is the output, which moving the state would spoil."""
    tensors = [
        *(_tensor(n, 1, 5, 4) for n in ("s", "s_next", "v")),
        *(_tensor(n, 1, 2, 4) for n in ("x", "r")),
        _tensor("w", 1, 7, 4),
    ]
    ops = [
        Op("relu", "relu_x", ("x",), ("r",), Relu()),
        Op("concat", "concat", ("s", "r"), ("w",), Concat(1)),
        _slice("w", "v", 2, 5),
        _assign("v", "s"),
    ]
    return Graph.build("window_is_output", tensors, ops, ["x"], ["w"], [_state("s", 5)])


def delay_line() -> Graph:
    """Each state takes the other's old value, and an output shows a state."""
    names = ("a", "a_next", "b", "b_next", "x", "y")
    tensors = [*(_tensor(n, 1, 3, 4) for n in names), _tensor("flat", 12)]
    ops = [
        Op("reshape", "show", ("b",), ("flat",), Reshape((12,))),
        Op("relu", "relu", ("x",), ("y",), Relu()),
        _assign("y", "a"),
        _assign("a", "b"),
    ]
    states = [_state("a", 3, 1), _state("b", 3, 2)]
    return Graph.build("delay_line", tensors, ops, ["x"], ["flat", "y"], states)


def filled_in_place() -> Graph:
    """Nothing reads the state once its next value is computed: it is computed right there."""
    tensors = [_tensor(n, 1, 3, 4) for n in ("s", "s_next", "x", "y", "z")]
    ops = [
        Op("relu", "first", ("s",), ("y",), Relu()),
        Op("relu", "second", ("y",), ("z",), Relu()),
        _assign("z", "s"),
    ]
    return Graph.build("filled", tensors, ops, ["x"], ["y", "x"], [_state("s", 3)])


GRAPHS = {
    "shorter frame": window(5, 2),
    "longer frame": window(2, 5),
    "window is output": window_is_output(),
    "delay line": delay_line(),
    "filled in place": filled_in_place(),
}


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


def test_a_window_owns_the_state_that_it_begins_with() -> None:
    problem = memory_problem(window(5, 2), HOST)
    held = [{m.tensor for m in buffer.members} for buffer in problem.buffers]
    assert {"s", "s_next", "w", "v", "r"} in held
    buffer = problem.buffers[held.index({"s", "s_next", "w", "v", "r"})]
    assert buffer.from_start
    assert buffer.to_end
    assert buffer.size_bytes == 28


def test_a_state_is_updated_when_everything_of_its_buffer_is_read() -> None:
    graph = window(5, 2)
    problem = memory_problem(graph, HOST)
    assert set(problem.predecessors[graph.producers["s_next"]]) >= {1, 2, 3}


def test_a_value_is_computed_in_the_state_where_nothing_reads_it_later() -> None:
    problem = memory_problem(filled_in_place(), HOST)
    assert {"s", "s_next", "z"} in [{m.tensor for m in b.members} for b in problem.buffers]


def test_states_that_exchange_their_values_are_refused() -> None:
    tensors = [_tensor(n, 1, 3, 4) for n in ("a", "a_next", "b", "b_next", "x")]
    ops = [_assign("a", "b"), _assign("b", "a")]
    graph = Graph.build("swap", tensors, ops, ["x"], ["x"], [_state("a", 3), _state("b", 3)])
    with pytest.raises(UnsupportedError, match="exchange"):
        memory_problem(check(graph), HOST)
