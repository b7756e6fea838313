"""Small files that stand for very many operators: counted by arithmetic, and refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import pytest

from tests.support.tflite_subgraphs import File, Subgraph
from toolchain.boards import board
from toolchain.errors import InputError
from toolchain.frontends import written_out
from toolchain.frontends.tflite import FRONT_END, expansion
from toolchain.ir import Graph
from toolchain.ops.interpret import interpret
from toolchain.passes import prepare
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions

SHAPE = (1, 4)


def read(file: File) -> Graph:
    return FRONT_END.read(file.data(), Path("bomb.tflite"))


def call(graph: Subgraph, x: int, number: int) -> int:
    y = graph.tensor(SHAPE)
    options: Any = schema.StableHLOCompositeOptionsT()
    options.decompositionSubgraphIndex = number
    graph.op("STABLEHLO_COMPOSITE", [x], [y], options)
    return y


def branch(graph: Subgraph, x: int, flag: int, then: int, otherwise: int) -> int:
    y = graph.tensor(SHAPE)
    options: Any = schema.IfOptionsT()
    options.thenSubgraphIndex, options.elseSubgraphIndex = then, otherwise
    graph.op("IF", [flag, x, flag], [y], options)
    return y


def chain(depth: int, calls: int, *, dependent: bool = False) -> File:
    """Each subgraph calls the next one `calls` times; the last one adds. So calls^depth additions.

    `dependent`: by an IF on an input, in both branches (but for one call in one of them).
    """
    file = File()
    graphs = [file.subgraph() for _ in range(depth + 1)]
    for number, graph in enumerate(graphs):
        x = graph.tensor(SHAPE)
        graph.inputs.append(x)
        if dependent:
            flag = graph.tensor([1], "bool")
            graph.inputs.append(flag)
        for _ in range(1 if number == depth else calls):
            if number == depth:
                y = graph.tensor(SHAPE)
                graph.op("ADD", [x, x], [y], schema.AddOptionsT())
            elif dependent:
                y = branch(graph, x, flag, number + 1, depth if calls == 1 else number + 1)
            else:
                y = call(graph, x, number + 1)
            x = y
        graph.outputs.append(x)
    return file


@pytest.mark.parametrize("dependent", [False, True])
@pytest.mark.parametrize("depth", [14, 30])
def test_calls_of_calls_are_counted_not_followed(depth: int, dependent: bool) -> None:
    with pytest.raises(InputError, match=r"\(operator 0\) calls subgraph 1, which is .* operators"):
        read(chain(depth, 4, dependent=dependent))


def test_the_count_is_that_of_the_whole_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 calls of 2 calls of 2 calls of an addition: 2 x (2 + 2 x (2 + 2 x 1)) operators."""
    file = chain(3, 2)
    monkeypatch.setattr(expansion, "MOST_CALLED", 20)
    assert len([op for op in read(file).ops if op.kind == "add"]) == 8
    monkeypatch.setattr(expansion, "MOST_CALLED", 19)
    with pytest.raises(InputError, match=r"which is 10 operators .* be 19 at most"):
        read(file)


def test_calls_nest_as_deep_as_is_allowed() -> None:
    for dependent in (False, True):
        graph = prepare(read(chain(expansion.MOST_DEPTH, 1, dependent=dependent))).graph
        plan = plan_graph(graph, board("netduinoplus2"), PlanOptions(allow_float=True, fast=True))
        x = np.ones(SHAPE, np.float32)
        given = [x, np.array([True])] if dependent else [x]
        np.testing.assert_array_equal(interpret(plan.graph, given)[0], 2 * x)
        with pytest.raises(InputError, match="calls nest deeper than 32"):
            read(chain(expansion.MOST_DEPTH + 1, 1, dependent=dependent))


@pytest.mark.parametrize("length", [1, 2, 500])
def test_a_ring_of_calls_is_refused(length: int) -> None:
    file = File()
    main, *ring = (file.subgraph() for _ in range(length + 1))
    for number, graph in enumerate((main, *ring)):
        x = graph.tensor(SHAPE)
        graph.inputs.append(x)
        graph.outputs.append(call(graph, x, 1 + number % length))
    with pytest.raises(InputError, match=r"calls subgraph 1, .*which calls itself"):
        read(file)


def counting(graph: Subgraph, turns: int, condition: Subgraph, body: Subgraph, inner: Any) -> None:
    """x, doubled in each of `turns` turns of a counted loop, with what `inner` adds to its body."""
    x, count, done = graph.tensor(SHAPE), graph.constant([0]), graph.tensor([1], "int32")
    y = graph.tensor(SHAPE)
    graph.inputs.append(x)
    options: Any = schema.WhileOptionsT()
    options.condSubgraphIndex, options.bodySubgraphIndex = condition.number, body.number
    graph.op("WHILE", [count, x], [done, y], options)
    graph.outputs.append(y)
    number = condition.tensor([1], "int32")
    condition.inputs.extend((number, condition.tensor(SHAPE)))
    goes_on = condition.tensor([1], "bool")
    condition.op("LESS", [number, condition.constant([turns])], [goes_on], schema.LessOptionsT())
    condition.outputs.append(goes_on)
    number, x = body.tensor([1], "int32"), body.tensor(SHAPE)
    body.inputs.extend((number, x))
    following = body.tensor([1], "int32")
    body.op("ADD", [number, body.constant([1])], [following], schema.AddOptionsT())
    body.outputs.extend((following, inner(body, x)))


def test_loops_in_loops_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each loop alone is short; 6^4 turns are not, nor is what is given up on the way."""
    file = File()
    graphs = [file.subgraph() for _ in range(13)]

    def nested(level: int) -> Any:
        def inner(body: Subgraph, x: int) -> int:
            if level == 3:
                y = body.tensor(SHAPE)
                body.op("ADD", [x, x], [y], schema.AddOptionsT())
                return y
            return call(body, x, 3 * level + 3)

        return inner

    for level in range(4):
        outer, condition, body = graphs[3 * level : 3 * level + 3]
        counting(outer, 6, condition, body, nested(level))
    del file.model.subgraphs[12:]
    assert sum(op.kind == "add" for op in read(file).ops) == 6**4
    monkeypatch.setattr(written_out, "MOST_WRITTEN", 4_000)
    with pytest.raises(InputError, match=r"WHILE .* calls subgraph \d+: with its loops written"):
        read(file)
