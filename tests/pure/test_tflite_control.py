"""Control flow of TFLite files: gone after reading where its way is known, else operators that hold
graphs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import pytest
from flatbuffers import flexbuffers

from tests.support.host import run_graph_on_host
from tests.support.litert import run_litert
from tests.support.tflite_subgraphs import File, Subgraph
from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir import Graph, Quantisation
from toolchain.ops.interpret import interpret
from toolchain.passes import prepare

SHAPE = (1, 5)


def read(data: bytes) -> Graph:
    return FRONT_END.read(data, Path("model.tflite"))


def agree(data: bytes, *ends: int) -> Graph:
    """Interpreter, host C and LiteRT give the same bits. `ends`: values of the last inputs."""
    graph = prepare(read(data)).graph
    rng = np.random.default_rng(1)
    shapes = [graph.tensors[name] for name in graph.inputs]
    values = [rng.normal(0, 2, tensor.shape).astype(tensor.dtype.numpy) for tensor in shapes]
    for place, value in enumerate(ends, len(values) - len(ends)):
        values[place] = np.full_like(values[place], value)
    wanted = run_litert(data, values)
    for got in (interpret(graph, values), run_graph_on_host(graph, tuple(values))):
        for want, have in zip(wanted, got, strict=True):
            np.testing.assert_array_equal(have, want)
    return graph


def scaling(graph: Subgraph, factor: float) -> None:
    """x times a factor."""
    x, y = graph.tensor(SHAPE), graph.tensor(SHAPE)
    graph.inputs.append(x)
    graph.op("MUL", [x, graph.constant([factor], "float32")], [y], schema.MulOptionsT())
    graph.outputs.append(y)


def branching(condition: bool | None) -> bytes:
    """x + x, then times 2 or 3. A condition of None is an input."""
    file = File()
    main, *branches = (file.subgraph() for _ in range(3))
    x, twice, y = (main.tensor(SHAPE) for _ in range(3))
    data = None if condition is None else condition
    taken = main.tensor([1], "bool", data)
    main.inputs.extend([x, taken] if condition is None else [x])
    main.op("ADD", [x, x], [twice], schema.AddOptionsT())
    options = schema.IfOptionsT()
    options.thenSubgraphIndex, options.elseSubgraphIndex = 1, 2
    main.op("IF", [taken, twice], [y], options)
    main.outputs.append(y)
    for branch, factor in zip(branches, (2.0, 3.0), strict=True):
        scaling(branch, factor)
    return file.data()


@pytest.mark.parametrize("condition", [True, False])
def test_the_branch_of_a_constant_condition_takes_the_place_of_if(condition: bool) -> None:
    graph = agree(branching(condition))
    assert [op.kind for op in graph.ops] == ["add", "mul"]


@pytest.mark.parametrize("taken", [0, 1])
def test_a_condition_that_is_computed_makes_a_branch(taken: int) -> None:
    graph = agree(branching(None), taken)
    assert [op.kind for op in graph.ops] == ["add", "branch"]


def looping(turns: int | None) -> bytes:
    """As a recurrent layer's loop: step, rows [5, 3], and their running sum [1, 3] times 0.5.

    `turns` of None makes the limit an input.
    """
    file = File()
    main, condition, body = (file.subgraph() for _ in range(3))
    rows = main.tensor([5, 3])
    start = main.constant(0)
    state = main.constant(np.zeros((1, 3)), "float32")
    limit = main.tensor([], "int32", turns)
    main.inputs.extend([rows] if turns is not None else [rows, limit])
    ends = [main.tensor([], "int32"), main.tensor([], "int32"), main.tensor([1, 3])]
    ends.append(main.tensor([5, 3]))
    options = schema.WhileOptionsT()
    options.condSubgraphIndex, options.bodySubgraphIndex = 1, 2
    main.op("WHILE", [start, limit, state, rows], ends, options)
    main.outputs.append(ends[2])

    def enter(graph: Subgraph) -> list[int]:
        found = [graph.tensor([], "int32"), graph.tensor([], "int32"), graph.tensor([1, 3])]
        found.append(graph.tensor([5, 3]))
        graph.inputs.extend(found)
        return found

    step, last, _, _ = enter(condition)
    goes_on = condition.tensor([], "bool")
    condition.op("LESS", [step, last], [goes_on], schema.LessOptionsT())
    condition.outputs.append(goes_on)

    step, last, state, rows = enter(body)
    after = body.tensor([], "int32")
    body.op("ADD", [step, body.constant(1)], [after], schema.AddOptionsT())
    at, row, half, total = body.tensor([1], "int32"), *(body.tensor([1, 3]) for _ in range(3))
    options = schema.ReshapeOptionsT()
    options.newShape = [1]
    body.op("RESHAPE", [step, body.constant([1])], [at], options)
    body.op("GATHER", [rows, at], [row], schema.GatherOptionsT())
    body.op("MUL", [state, body.constant([0.5], "float32")], [half], schema.MulOptionsT())
    body.op("ADD", [half, row], [total], schema.AddOptionsT())
    body.outputs.extend([after, last, total, rows])
    return file.data()


@pytest.mark.parametrize("turns", [1, 4])
def test_a_loop_with_a_known_number_of_turns_is_unrolled(turns: int) -> None:
    graph = agree(looping(turns))
    assert sum(op.kind == "add" for op in graph.ops) == turns
    constants = [t for t in graph.tensors.values() if t.is_constant and t.elements == 1]
    assert len({id(t.constant) for t in constants}) == len(constants)


@pytest.mark.parametrize("taken", [0, 1])
def test_a_branch_of_legacy_uint8(taken: int) -> None:
    """Lowered to int8 in the subgraphs too."""
    quantised = Quantisation((0.5,), (100,))

    def tensor(graph: Subgraph, data: Any = None) -> int:
        return graph.tensor(SHAPE, "uint8", data, quantised)

    file = File()
    main, *branches = (file.subgraph() for _ in range(3))
    x, y, flag = tensor(main), tensor(main), main.tensor([1], "bool")
    main.inputs.extend([x, flag])
    main.outputs.append(y)
    options = schema.IfOptionsT()
    options.thenSubgraphIndex, options.elseSubgraphIndex = 1, 2
    main.op("IF", [flag, x], [y], options)
    for branch, builtin in zip(branches, ("ADD", "SUB"), strict=True):
        branch.inputs.append(tensor(branch))
        branch.outputs.append(tensor(branch))
        operands = [*branch.inputs, tensor(branch, [150, 20, 90, 128, 7])]
        kind = getattr(schema, f"{builtin.capitalize()}OptionsT")
        branch.op(builtin, operands, branch.outputs, kind())
    graph = read(file.data())
    assert [op.kind for op in graph.ops] == ["quantize", "branch", "quantize"]
    values = [np.array([[0, 99, 130, 200, 255]], np.uint8), np.array([taken], bool)]
    (want,) = run_litert(file.data(), values)
    np.testing.assert_array_equal(interpret(graph, values)[0], want)


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_a_loop_whose_turns_depend_on_data_stays_one(turns: int) -> None:
    """The limit and the rows, which no turn changes, are operands behind the carried values."""
    (op,) = agree(looping(None), turns).ops
    assert (op.kind, len(op.inputs), len(op.outputs)) == ("while_loop", 4, 2)


def test_a_call_is_inlined() -> None:
    file = File()
    main, called = file.subgraph(), file.subgraph()
    x, y = main.tensor(SHAPE), main.tensor(SHAPE)
    main.inputs.append(x)
    options: Any = schema.StableHLOCompositeOptionsT()
    options.name, options.decompositionSubgraphIndex = "twice", 1
    options.compositeAttributes = np.frombuffer(flexbuffers.Dumps({}), np.uint8)
    main.op("STABLEHLO_COMPOSITE", [x], [y], options)
    main.outputs.append(y)
    scaling(called, 2.0)
    assert [op.kind for op in agree(file.data()).ops] == ["mul"]


def test_a_subgraph_that_nothing_calls_is_refused() -> None:
    file = File()
    scaling(file.subgraph(), 1.0)
    scaling(file.subgraph(), 2.0)
    with pytest.raises(UnsupportedError, match="holds 2 subgraphs"):
        read(file.data())


def test_a_subgraph_that_calls_itself_is_refused() -> None:
    file = File()
    main, called = file.subgraph(), file.subgraph()
    for graph in (main, called):
        x, y = graph.tensor(SHAPE), graph.tensor(SHAPE)
        graph.inputs.append(x)
        options: Any = schema.StableHLOCompositeOptionsT()
        options.decompositionSubgraphIndex = 1
        graph.op("STABLEHLO_COMPOSITE", [x], [y], options)
        graph.outputs.append(y)
    with pytest.raises(InputError, match="calls itself"):
        read(file.data())


def test_a_subgraph_that_does_not_exist_is_refused() -> None:
    file = File()
    main = file.subgraph()
    x, y = main.tensor(SHAPE), main.tensor(SHAPE)
    main.inputs.append(x)
    options: Any = schema.StableHLOCompositeOptionsT()
    options.decompositionSubgraphIndex = 3
    main.op("STABLEHLO_COMPOSITE", [x], [y], options)
    main.outputs.append(y)
    with pytest.raises(InputError, match="calls subgraph 3, which does not exist"):
        read(file.data())


def test_a_loop_that_never_ends_is_refused() -> None:
    file = File()
    main, condition, body = (file.subgraph() for _ in range(3))
    x, y = main.tensor(SHAPE), main.tensor(SHAPE)
    main.inputs.append(x)
    options: Any = schema.WhileOptionsT()
    options.condSubgraphIndex, options.bodySubgraphIndex = 1, 2
    main.op("WHILE", [x], [y], options)
    main.outputs.append(y)
    condition.inputs.append(condition.tensor(SHAPE))
    truth, same = condition.constant([True], "bool"), condition.tensor([1], "bool")
    condition.op("LOGICAL_NOT", [truth], [same])
    again = condition.tensor([1], "bool")
    condition.op("LOGICAL_NOT", [same], [again])
    condition.outputs.append(again)
    scaling(body, 1.0)
    with pytest.raises(UnsupportedError, match="it never ends"):
        read(file.data())
