"""Which tensors share a buffer, and which operator has to copy."""

from __future__ import annotations

import numpy as np
import pytest

from toolchain.boards import HOST
from toolchain.errors import UnsupportedError
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ir.memory import applied_overlaps, peak_bytes
from toolchain.memory.problem import memory_problem
from toolchain.memory.views import View, optional_views
from toolchain.ops.lowering import lower
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.pad import Pad
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.movement.slice import Slice
from toolchain.ops.movement.split import Split
from toolchain.ops.movement.transpose import Transpose
from toolchain.ops.resize.common import Resize
from toolchain.ops.unary.leaky_relu import LeakyRelu
from toolchain.planning.ordering import choose_views

Q = Quantisation((0.5,), (0,))


def tensor(name: str, *shape: int, dtype: DType = DType.INT8) -> Tensor:
    return Tensor(name, shape, dtype, Q if dtype is DType.INT8 else None)


def op(kind: str, attributes: Attributes, inputs: str, outputs: str) -> Op:
    names = tuple(outputs.split())
    return Op(kind, f"make {names[0]}", tuple(inputs.split()), names, attributes)


def relu(source: str, target: str) -> Op:
    return op("leaky_relu", LeakyRelu(), source, target)


def places(graph: Graph, copying: frozenset[View] = frozenset()) -> dict[str, tuple[str, int]]:
    """Each tensor's buffer and its offset in it."""
    problem = memory_problem(lower(graph, HOST), copying)
    return {m.tensor: (b.name, m.offset_bytes) for b in problem.buffers for m in b.members}


def graph(tensors: list[Tensor], ops: list[Op], inputs: str, outputs: str) -> Graph:
    return Graph.build("g", tensors, ops, inputs.split(), outputs.split())


def test_reshape_and_idle_transpose_are_views() -> None:
    made = graph(
        [tensor("x", 1, 2, 3), tensor("y", 6), tensor("z", 2, 1, 3)],
        [
            op("reshape", Reshape((6,)), "x", "y"),
            op("transpose", Transpose((1, 0, 2)), "x", "z"),
        ],
        "x",
        "y z",
    )
    assert places(made) == {"x": ("x", 0), "y": ("x", 0), "z": ("x", 0)}


def test_parts_along_the_first_axis_are_views_and_others_are_not() -> None:
    made = graph(
        [tensor("x", 4, 6), tensor("a", 1, 6), tensor("b", 3, 6), tensor("c", 3, 2)],
        [
            op("split", Split(0, (1, 3)), "x", "a b"),
            op("slice", Slice((0, 1), (3, 2), (1, 1), (3, 2)), "b", "c"),
        ],
        "x",
        "a c",
    )
    assert places(made) == {"x": ("x", 0), "a": ("x", 0), "b": ("x", 6), "c": ("c", 0)}


def concat_graph(operands: str, tail: list[Op] | None = None, outputs: str = "z") -> Graph:
    """x -> a [2, 4], b [1, 4]; r reshapes a; z joins the operands along the first axis."""
    sizes = {"a": 2, "b": 1, "r": 2, "x": 2}
    rows = sum(sizes[name] for name in operands.split())
    tensors = [
        tensor("x", 2, 4),
        tensor("y", 1, 4),
        tensor("a", 2, 4),
        tensor("b", 1, 4),
        tensor("r", 2, 4),
        tensor("z", rows, 4),
    ]
    ops = [
        relu("x", "a"),
        relu("y", "b"),
        op("reshape", Reshape((2, 4)), "a", "r"),
        op("concat", Concat(0), operands, "z"),
    ]
    return graph(tensors, ops, "x y", outputs)


def test_operands_are_laid_in_the_concat() -> None:
    found = places(concat_graph("b a"))
    assert (found["b"], found["a"], found["r"]) == (("z", 0), ("z", 4), ("z", 4))


def test_a_reshaped_operand_takes_its_source_along() -> None:
    found = places(concat_graph("b r"))
    assert (found["a"], found["r"]) == (("z", 4), ("z", 4))


def test_an_operand_used_twice_is_laid_once() -> None:
    found = places(concat_graph("a b a"))
    assert (found["a"], found["b"]) == (("z", 0), ("z", 8))


def test_a_graph_input_stays_where_it_is() -> None:
    found = places(concat_graph("x b"))
    assert (found["x"], found["b"]) == (("x", 0), ("z", 8))


def test_copying_can_be_asked_for() -> None:
    found = places(concat_graph("b a"), frozenset({("make z", "b")}))
    assert (found["b"], found["a"]) == (("b", 0), ("z", 4))


def test_an_operand_of_two_concats_is_laid_in_the_first() -> None:
    first = concat_graph("a b")
    second = op("concat", Concat(0), "a b", "w")
    both = Graph.build(
        "g",
        [*first.tensors.values(), tensor("w", 3, 4)],
        [*first.ops, second],
        first.inputs,
        ["z", "w"],
    )
    found = places(both)
    assert found["a"] == ("z", 0)
    assert found["w"] == ("w", 0)


def test_a_constant_operand_is_copied() -> None:
    constant = Tensor("k", (1, 4), DType.INT8, Q, np.zeros((1, 4), np.int8))
    made = graph(
        [tensor("x", 1, 4), tensor("a", 1, 4), constant, tensor("z", 2, 4)],
        [relu("x", "a"), op("concat", Concat(0), "k a", "z")],
        "x",
        "z",
    )
    assert places(made) == {"x": ("x", 0), "a": ("z", 4), "z": ("z", 0)}


def test_nothing_overwrites_a_graph_output() -> None:
    made = graph(
        [tensor("x", 4), tensor("y", 4), tensor("z", 4)],
        [relu("x", "y"), relu("y", "z")],
        "x",
        "y z",
    )
    problem = memory_problem(lower(made, HOST))
    assert [(o.op, o.input) for o in applied_overlaps(problem, (0, 1))] == [(0, 0)]


def test_wide_elements_are_aligned() -> None:
    wide = {"dtype": DType.INT64}
    made = graph(
        [tensor("x", 2, 3, **wide), tensor("y", 6, **wide)],
        [op("reshape", Reshape((6,)), "x", "y")],
        "x",
        "y",
    )
    assert [b.alignment_bytes for b in memory_problem(lower(made, HOST)).buffers] == [8]


def test_a_view_that_costs_more_than_it_saves_is_copied() -> None:
    """A small operand waits for a large one, whose room it must not hold meanwhile."""
    names = ["x", "s", "a", "b", "c", "t", "z"]
    rows = dict(zip(names, [1, 1, 60, 60, 60, 20, 21], strict=True))
    made = graph(
        [tensor(n, rows[n], 4) for n in names],
        [
            relu("x", "s"),
            op("pad", Pad(((0, 59), (0, 0))), "x", "a"),
            relu("a", "b"),
            relu("b", "c"),
            op("slice", Slice((0, 0), (20, 4), (3, 1), (20, 4)), "c", "t"),
            op("concat", Concat(0), "s t", "z"),
        ],
        "x",
        "z",
    )
    assert optional_views(made) == (("make z", "s"), ("make z", "t"))
    in_place = memory_problem(lower(made, HOST))
    chosen = choose_views(lower(made, HOST))
    members = {m.tensor: b.name for b in chosen.buffers for m in b.members}
    assert members["s"] == "s"
    order = tuple(range(len(made.ops)))
    assert peak_bytes(chosen, order) < peak_bytes(in_place, order)


def test_every_operator_without_a_kernel_is_named() -> None:
    long, short = (1, 40000, 1, 1), (1, 20000, 1, 1)
    tensors = [tensor("x", *long), tensor("y", *short), tensor("z", *long)]
    ops = [
        op("resize_nearest", Resize(20000, 1), "x", "y"),
        op("resize_nearest", Resize(40000, 1), "y", "z"),
    ]
    with pytest.raises(UnsupportedError) as caught:
        memory_problem(lower(graph(tensors, ops, "x", "z"), HOST))
    assert "'make y'" in str(caught.value) and "'make z'" in str(caught.value)
