"""Small models that keep state, in each way that a state's next value can lie."""

from __future__ import annotations

import numpy as np

from toolchain.ir import DType, Graph, Op, Quantisation, State, Tensor
from toolchain.ops.movement.assign import Assign
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.movement.slice import Slice
from toolchain.ops.unary.relu import Relu

Q = Quantisation((0.1,), (3,))


def tensor(name: str, *shape: int) -> Tensor:
    return Tensor(name, shape, DType.INT8, Q)


def _slice(source: str, target: str, begin: int, rows: int) -> Op:
    attributes = Slice((0, begin, 0), (1, rows, 4), (1, 1, 1), (1, rows, 4))
    return Op("slice", f"slice_{target}", (source,), (target,), attributes)


def assign(value: str, state: str) -> Op:
    return Op("assign", f"assign_{state}", (value, state), (f"{state}_next",), Assign())


def state(name: str, rows: int, seed: int = 0) -> State:
    rng = np.random.default_rng(seed)
    return State(name, f"{name}_next", rng.integers(-128, 128, (1, rows, 4)).astype(np.int8))


def window(rows: int, frame: int) -> Graph:
    """The last rows of a window move down into the state that the window begins with."""
    tensors = [
        *(tensor(n, 1, rows, 4) for n in ("s", "s_next", "v")),
        *(tensor(n, 1, frame, 4) for n in ("x", "r")),
        *(tensor(n, 1, rows + frame, 4) for n in ("w", "y")),
    ]
    ops = [
        Op("relu", "relu_x", ("x",), ("r",), Relu()),
        Op("concat", "concat", ("s", "r"), ("w",), Concat(1)),
        _slice("w", "v", frame, rows),
        Op("relu", "relu_y", ("w",), ("y",), Relu()),
        assign("v", "s"),
    ]
    return Graph.build("window", tensors, ops, ["x"], ["y"], [state("s", rows)])


def window_is_output() -> Graph:
    """The window itself is the output, which moving the state would spoil."""
    tensors = [
        *(tensor(n, 1, 5, 4) for n in ("s", "s_next", "v")),
        *(tensor(n, 1, 2, 4) for n in ("x", "r")),
        tensor("w", 1, 7, 4),
    ]
    ops = [
        Op("relu", "relu_x", ("x",), ("r",), Relu()),
        Op("concat", "concat", ("s", "r"), ("w",), Concat(1)),
        _slice("w", "v", 2, 5),
        assign("v", "s"),
    ]
    return Graph.build("window_is_output", tensors, ops, ["x"], ["w"], [state("s", 5)])


def delay_line() -> Graph:
    """Each state takes the other's old value, and an output shows a state."""
    names = ("a", "a_next", "b", "b_next", "x", "y")
    tensors = [*(tensor(n, 1, 3, 4) for n in names), tensor("flat", 12)]
    ops = [
        Op("reshape", "show", ("b",), ("flat",), Reshape((12,))),
        Op("relu", "relu", ("x",), ("y",), Relu()),
        assign("y", "a"),
        assign("a", "b"),
    ]
    states = [state("a", 3, 1), state("b", 3, 2)]
    return Graph.build("delay_line", tensors, ops, ["x"], ["flat", "y"], states)


def filled_in_place() -> Graph:
    """Nothing reads the state once its next value is computed: it is computed right there."""
    tensors = [tensor(n, 1, 3, 4) for n in ("s", "s_next", "x", "y", "z")]
    ops = [
        Op("relu", "first", ("s",), ("y",), Relu()),
        Op("relu", "second", ("y",), ("z",), Relu()),
        assign("z", "s"),
    ]
    return Graph.build("filled", tensors, ops, ["x"], ["y", "x"], [state("s", 3)])


GRAPHS = {
    "shorter frame": window(5, 2),
    "longer frame": window(2, 5),
    "window is output": window_is_output(),
    "delay line": delay_line(),
    "filled in place": filled_in_place(),
}
