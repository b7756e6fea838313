"""The verifier refuses every way in which a graph can be wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.graph_builder import Builder
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ir.verify import InvalidGraphError
from toolchain.ops.check import check
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.unary.relu import Relu


def two_ops() -> Graph:
    build = Builder()
    x = build.input((1, 4))
    y = build.op("relu", [x], Relu())
    return build.graph([build.op("reshape", [y], Reshape((2, 2)))])


def retyped(graph: Graph, name: str, **changes: object) -> Graph:
    tensors = [
        replace(t, **changes) if t.name == name else t  # type: ignore[arg-type]
        for t in graph.tensors.values()
    ]
    return Graph.build(graph.name, tensors, graph.ops, graph.inputs, graph.outputs)


def test_a_good_graph_passes() -> None:
    graph = two_ops()
    assert check(graph) is graph


def broken() -> list[tuple[str, Graph]]:
    graph = two_ops()
    relu, reshape = graph.ops
    tensors = list(graph.tensors.values())

    def with_ops(*ops: Op) -> Graph:
        return replace(graph, ops=ops)

    return [
        ("before it exists", with_ops(reshape, relu)),
        ("which is unknown", with_ops(replace(relu, inputs=("absent",)), reshape)),
        ("which has a value", with_ops(relu, replace(reshape, outputs=relu.outputs))),
        ("which has a value", with_ops(replace(relu, outputs=graph.inputs), reshape)),
        ("are both called 'relu_0'", with_ops(relu, replace(reshape, name=relu.name))),
        ("has no name", with_ops(replace(relu, name=""), reshape)),
        ("no operator kind", with_ops(replace(relu, kind="unheard_of"), reshape)),
        ("attributes are", with_ops(replace(relu, attributes=Reshape((4,))), reshape)),
        ("do not fill", with_ops(relu, replace(reshape, attributes=Reshape((3, 2))))),
        ("makes", retyped(graph, reshape.outputs[0], shape=(4, 1))),
        ("no quantisation", retyped(graph, relu.outputs[0], quantisation=None)),
        ("not a positive", retyped(graph, "in0", quantisation=Quantisation((0.0,), (0,)))),
        ("outside its type", retyped(graph, "in0", quantisation=Quantisation((1.0,), (200,)))),
        ("along no axis", retyped(graph, "in0", quantisation=Quantisation((1.0, 2.0), (0, 0)))),
        ("along axis 1", retyped(graph, "in0", quantisation=Quantisation((1.0, 2.0), (0, 0), 1))),
        ("zero points", retyped(graph, "in0", quantisation=Quantisation((1.0,), (0, 0)))),
        ("negative dimension", retyped(graph, "in0", shape=(1, -4))),
        ("is empty", retyped(graph, "in0", shape=(1, 0))),
        ("is a constant", retyped(graph, "in0", constant=np.zeros((1, 4), np.int8))),
        ("does not exist", replace(graph, outputs=("absent",))),
        ("an output twice", replace(graph, outputs=graph.outputs * 2)),
        ("no outputs", replace(graph, outputs=())),
        (
            "nothing computes",
            Graph.build(
                "g",
                [*tensors, Tensor("loose", (1,), DType.INT32)],
                graph.ops,
                graph.inputs,
                ["loose"],
            ),
        ),
    ]


def test_two_tensors_or_operators_of_one_name_are_refused_where_they_meet() -> None:
    graph = two_ops()
    relu, reshape = graph.ops
    given = graph.tensors["in0"]
    table = list(graph.tensors.values())
    assert graph.with_ops(graph.ops, [*table, given]).tensors == graph.tensors  # the very same one
    other = replace(given, shape=(4,))
    for made in (
        lambda: graph.with_ops(graph.ops, [*table, other]),
        lambda: Graph.build("g", [*table, other], graph.ops, graph.inputs, graph.outputs),
    ):
        with pytest.raises(InvalidGraphError) as caught:
            made()
        assert str(caught.value) == (
            "two tensors are called 'in0': in0: int8[1x4], which comes as number 0, and in0: "
            "int8[4], as number 3"
        )
    twice = [relu, replace(reshape, name=relu.name)]
    with pytest.raises(InvalidGraphError, match="'relu_0': number 0, relu, and number 1, reshape"):
        graph.with_ops(twice)


@pytest.mark.parametrize(("reason", "graph"), broken())
def test_a_broken_graph_is_refused(reason: str, graph: Graph) -> None:
    with pytest.raises(InvalidGraphError, match=reason):
        check(graph)


def test_a_constant_of_another_shape_is_refused() -> None:
    build = Builder()
    x = build.input((1, 4))
    constant = build.constant((1, 4))
    build.tensors[constant] = replace(build.tensors[constant], constant=np.zeros((4, 1), np.int8))
    y = build.op("relu", [x], Relu())
    with pytest.raises(InvalidGraphError, match="holds int8"):
        check(build.graph([y]))
