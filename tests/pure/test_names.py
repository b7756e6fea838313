"""Models whose tensors and operators are called as the toolchain itself would call what it makes.

Each case is rewritten once to learn which names it invents. Then the original tensors and operators
get such names, and the result must compute the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.support.concat_cells import cell
from tests.support.graph_builder import Builder
from tests.support.host import random_inputs, reference_outputs
from tests.support.onnx_models import model_of
from tests.support.split_graphs import random_network, random_scheme
from tests.support.tflite_writer import tflite_bytes
from toolchain.boards import board
from toolchain.codegen.memory_map import memory_map
from toolchain.frontends.front_end import Reading
from toolchain.frontends.onnx.reader import read as read_onnx
from toolchain.frontends.tflite.reader import read as read_tflite
from toolchain.ir import Graph, Op, Quantisation, State
from toolchain.ir.names import GraphNames, Names
from toolchain.ops import forms
from toolchain.ops.check import check
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.interpret import interpret
from toolchain.ops.movement.split import Split
from toolchain.ops.unary.relu import Relu
from toolchain.partition import CannotSplitError, single_outputs, split
from toolchain.passes import prepare
from toolchain.passes.identity_rewriting import partition, sites
from toolchain.passes.remove_dead_channels import RemoveDeadChannels
from toolchain.planner import plan_graph
from toolchain.planning.rows import stream_input

Change = Callable[[Graph, "Renaming"], Graph | None]
"""Rewrites a graph whose names are changed so; None where it cannot."""


class Renaming:
    """Other names of tensors and of operators; both are one to one."""

    def __init__(self, tensors: Mapping[str, str], ops: Mapping[str, str]) -> None:
        self._tensors, self._ops = tensors, ops

    def tensor(self, name: str) -> str:
        return self._tensors.get(name, name)

    def op(self, name: str) -> str:
        return self._ops.get(name, name)

    def tensors(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(self.tensor, names))

    def graph(self, graph: Graph) -> Graph:
        table = {self.tensor(n): replace(t, name=self.tensor(n)) for n, t in graph.tensors.items()}
        assert len(table) == len(graph.tensors)
        return Graph(
            graph.name,
            MappingProxyType(table),
            tuple(
                replace(
                    op,
                    name=self.op(op.name),
                    inputs=self.tensors(op.inputs),
                    outputs=self.tensors(op.outputs),
                )
                for op in graph.ops
            ),
            self.tensors(graph.inputs),
            self.tensors(graph.outputs),
            tuple(
                State(self.tensor(s.input), self.tensor(s.output), s.initial) for s in graph.states
            ),
        )

    def then(self, other: Renaming, graph: Graph) -> Renaming:
        """Both, one after the other, of a graph in its first names."""
        return Renaming(
            {name: other.tensor(self.tensor(name)) for name in graph.tensors},
            {op.name: other.op(self.op(op.name)) for op in graph.ops},
        )


PLAIN = Renaming({}, {})


def adversarial(graph: Graph, invented: Graph, rng: random.Random) -> Renaming:
    """Gives some of the tensors, and of the operators, names that the toolchain invented; operators
    also those of tensors. What is invented from the others is then called as they are.
    """

    def some(own: list[str], wanted: Iterable[str]) -> dict[str, str]:
        free = sorted(set(wanted) - set(own))
        rng.shuffle(free)
        chosen = rng.sample(own, min(len(own), len(free), rng.randint(1, 1 + len(own))))
        return dict(zip(chosen, free, strict=False))

    names = [op.name for op in invented.ops]
    return Renaming(
        some(list(graph.tensors), invented.tensors),
        some([op.name for op in graph.ops], [*names, *names, *graph.inputs]),
    )


def check_names_do_not_matter(graph: Graph, change: Change, seed: int, rounds: int = 2) -> int:
    """Changes the graph under ever more adversarial names; how many names were given."""
    rng = random.Random(seed)
    made = change(graph, PLAIN)
    if made is None:
        return 0
    inputs = random_inputs(graph, np.random.default_rng(seed))
    wanted, renaming, given_names = reference_outputs(graph, inputs), PLAIN, 0
    counted = len({op.counted_as for op in made.ops})
    invented = made
    for _ in range(rounds):
        before = renaming.graph(graph)
        more = adversarial(before, invented, rng)
        renaming = renaming.then(more, graph)
        renamed = check(renaming.graph(graph))
        given_names += sum(a != b for a, b in zip(before.tensors, renamed.tensors, strict=True))
        found = change(renamed, renaming)
        assert found is not None
        check(found)
        assert len(found.ops) == len(made.ops)
        assert len({op.counted_as for op in found.ops}) == counted
        for want, have in zip(wanted, reference_outputs(found, inputs), strict=True):
            np.testing.assert_array_equal(have, want)
        invented = found
    return given_names


def test_a_fresh_name_is_the_wished_one_or_the_next_free_one() -> None:
    names = Names(["y", "y/2", "y/4"])
    assert [names.fresh(wished) for wished in ("x", "y", "y", "x", "y/2")] == [
        *("x", "y/3", "y/5", "x/2", "y/2/2")
    ]
    names.take(["z"])
    assert "z" in names and names.fresh("z") == "z/2"


def test_an_operator_may_be_called_as_a_tensor_and_not_as_what_another_is_part_of() -> None:
    graph = cell(1, depthwise=False)
    blocks = graph.with_ops([replace(op, part_of="whole") for op in graph.ops])
    names = GraphNames.of(blocks)
    assert names.ops.fresh("x") == "x" and names.tensors.fresh("x") == "x/2"
    assert names.ops.fresh("whole") == "whole/2" and names.ops.fresh("join") == "join/2"


@given(st.integers(0, 2**32 - 1))
def test_splits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_network(rng)
    scheme = random_scheme(graph, rng)

    def change(graph: Graph, renaming: Renaming) -> Graph | None:
        seed_tensor, axis = scheme.seed
        ops = tuple(map(renaming.op, scheme.ops))
        try:
            return split(graph, replace(scheme, ops=ops, seed=(renaming.tensor(seed_tensor), axis)))
        except CannotSplitError:
            return None

    check_names_do_not_matter(graph, change, seed)


def with_silent_channels(rng: np.random.Generator) -> Graph:
    """Two convolutions with one between them by channels; half of the channels are zero."""
    build = Builder(rng)
    first = build.conv(build.input((1, 5, 5, 4)), 1, 16, Conv2D())
    weights = build.constant((1, 3, 3, 16), quantisation=Quantisation((0.01,), (0,)))
    second = build.op("depthwise_conv2d", [first, weights], DepthwiseConv2D())
    graph = build.graph([build.conv(second, 1, 8, Conv2D())])
    tensors = []
    for tensor in graph.tensors.values():
        if tensor.constant is not None and tensor.shape == (16, 1, 1, 4):
            data = tensor.constant.copy()
            data[rng.random(16) < 0.5] = 0
            tensor = replace(tensor, constant=data)
        tensors.append(tensor)
    return check(graph.with_ops(graph.ops, tensors))


@pytest.mark.parametrize("seed", range(6))
def test_dead_channels(seed: int) -> None:
    graph = with_silent_channels(np.random.default_rng(seed))

    def change(graph: Graph, renaming: Renaming) -> Graph:
        return prepare(graph, (RemoveDeadChannels(),)).graph

    assert check_names_do_not_matter(graph, change, seed)


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_partitioned_concatenations(seed: int, depthwise: bool) -> None:
    def change(graph: Graph, renaming: Renaming) -> Graph:
        while sites(graph):
            graph = partition(graph, sites(graph)[0])
        return graph

    assert check_names_do_not_matter(cell(seed, depthwise), change, seed)


def two_slices() -> Graph:
    """An image in two halves, of which one is sliced again, and their sum along the rows."""
    build = Builder()
    x = build.input((1, 6, 4, 2))
    build.tensors |= {n: replace(build.tensors[x], name=n, shape=(1, 3, 4, 2)) for n in "ab"}
    build.ops.append(Op("split", "halves", (x,), ("a", "b"), Split(1, (3, 3))))
    return check(build.graph([build.op("relu", ["a"], Relu()), build.op("relu", ["b"], Relu())]))


@pytest.mark.parametrize("seed", range(4))
def test_single_outputs(seed: int) -> None:
    def change(graph: Graph, renaming: Renaming) -> Graph:
        return single_outputs(graph, tuple(range(len(graph.ops))))

    graph = two_slices()
    check_names_do_not_matter(graph, change, seed)
    part = single_outputs(graph, (0, 1, 2)).ops[0].name
    named = Renaming({}, {graph.ops[1].name: part}).graph(graph)
    check(single_outputs(named, (0, 1, 2)))


@pytest.mark.parametrize("seed", range(4))
def test_inputs_that_arrive_by_rows(seed: int) -> None:
    build = Builder()
    x = build.input((1, 6, 4, 2))
    first = build.conv(x, 3, 4, Conv2D())
    graph = check(build.graph([build.conv(first, 1, 2, Conv2D())]))

    def change(graph: Graph, renaming: Renaming) -> Graph:
        made = stream_input(graph)
        assert made.pushed is not None and made.pushed.progress not in graph.tensors
        return made

    rng, invented = random.Random(seed), change(graph, PLAIN)
    inputs = random_inputs(graph, np.random.default_rng(seed))
    renamed = adversarial(graph, invented, rng).graph(graph)
    for want, have in zip(
        interpret(graph, inputs), interpret(check(change(renamed, PLAIN)), inputs), strict=True
    ):
        np.testing.assert_array_equal(have, want)


def test_rows_of_the_memory_map_are_apart_from_tensors_of_their_names() -> None:
    graph = cell(3, depthwise=True)
    plan = plan_graph(graph, board("netduinoplus2"))
    wanted = len(memory_map(plan, plan.schedule.order))
    scratch = [f"scratch of {name}" for name in plan.arena.scratch_offsets]
    own = [n for n in graph.tensors if n in plan.arena.offsets]
    assert scratch
    renamed = Renaming(dict(zip(own, scratch, strict=False)), {}).graph(graph)
    again = plan_graph(renamed, board("netduinoplus2"))
    rows = memory_map(again, again.schedule.order)
    assert len({row.what for row in rows}) == len(rows) == wanted


def read_of(graph: Graph) -> Graph:
    return read_tflite(tflite_bytes(graph), Path("model.tflite"))


def tflite_graphs() -> list[Graph]:
    """Kinds of which the reader makes tensors that the file does not have."""
    found = []
    for kind, form in sorted(forms().items()):
        if form.tflite is None:
            continue
        graph = form.sample(np.random.default_rng(3))
        if graph.states and len(read_of(graph).tensors) >= len(graph.tensors):
            found.append(replace(graph, name=kind))
    return found


def test_tensors_that_the_tflite_reader_adds() -> None:
    rng, met = random.Random(5), 0
    for graph in tflite_graphs():
        plain = read_of(graph)
        known = {*graph.tensors} - {name for s in graph.states for name in (s.input, s.output)}
        extra = sorted({*plain.tensors} - known)
        own = sorted({t for t in known if graph.tensors[t].is_constant or t in graph.inputs})
        if not extra or not own:
            continue
        rng.shuffle(extra)
        names = dict(zip(own, extra, strict=False))
        clash = {name: f"{name} of the state" for name in extra if name in graph.tensors}
        renamed = Renaming({**clash, **names}, {}).graph(graph)
        again = read_of(renamed)
        met += 1
        inputs = random_inputs(graph, np.random.default_rng(1))
        for want, have in zip(interpret(plain, inputs), interpret(again, inputs), strict=True):
            np.testing.assert_array_equal(have, want, err_msg=graph.name)
    assert met > 3


def onnx_models() -> Iterable[tuple[str, onnx.ModelProto]]:
    """Operators that become several others, by recipe, by ONNX's own function, by unrolling."""
    c, d = (np.full(4, value, np.float32) for value in (2, 3))

    def whole(*nodes: onnx.NodeProto, **constants: np.ndarray) -> onnx.ModelProto:
        return model_of(nodes, {"x": (1, 4)}, ["y"], {"c": c, "d": d, **constants})

    body = helper.make_graph(
        [
            helper.make_node("Mul", ["carried", "c"], ["t"]),
            helper.make_node("Less", ["turn", "first"], ["early"]),
            helper.make_node(
                "If",
                ["early"],
                ["after"],
                then_branch=branch("Add"),
                else_branch=branch("Sub"),
            ),
            helper.make_node("Identity", ["on"], ["still"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("turn", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("on", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("carried", onnx.TensorProto.FLOAT, [1, 4]),
        ],
        [
            helper.make_tensor_value_info("still", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("after", onnx.TensorProto.FLOAT, [1, 4]),
        ],
    )
    add = helper.make_node("Add", ["s", "d"], ["y"])
    counts = {"n": np.array(3), "go": np.array(True), "first": np.array(1)}
    yield "mean", whole(helper.make_node("Mean", ["x", "c", "d"], ["s"]), add)
    yield "norm", whole(helper.make_node("LpNormalization", ["x"], ["s"], axis=1), add)
    yield "function", whole(helper.make_node("Celu", ["x"], ["s"]), add)
    yield "loop", whole(helper.make_node("Loop", ["n", "go", "x"], ["s"], body=body), add, **counts)


def branch(operator: str) -> onnx.GraphProto:
    given_back = helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, [1, 4])
    return helper.make_graph([helper.make_node(operator, ["t", "d"], ["r"])], "b", [], [given_back])


def renamed_onnx(model: onnx.ModelProto, names: Mapping[str, str]) -> onnx.ModelProto:
    """The model with other names, in the graphs of its operators, too."""
    made = onnx.ModelProto.FromString(model.SerializeToString())
    graphs = [made.graph]
    while graphs:
        graph = graphs.pop()
        for value in (*graph.input, *graph.output, *graph.initializer):
            value.name = names.get(value.name, value.name)
        for node in graph.node:
            node.input[:] = [names.get(name, name) for name in node.input]
            node.output[:] = [names.get(name, name) for name in node.output]
            graphs += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return made


@pytest.mark.parametrize(("kind", "model"), [*onnx_models()])
def test_operators_of_onnx_that_are_written_as_others(kind: str, model: onnx.ModelProto) -> None:
    def read(model: onnx.ModelProto) -> Graph:
        wanted = Reading(allow_float=True)
        return read_onnx(model.SerializeToString(), Path("model.onnx"), wanted)

    plain, rng = read(model), random.Random(len(kind))
    x = np.array([[-2, -0.5, 0.25, 3]], np.float32)
    (want,) = interpret(plain, [x])
    for _ in range(6):
        extra = sorted(name for name in plain.tensors if name.startswith("s/"))
        chosen = rng.sample(["c", "d", "x", "y"], rng.randint(1, 4))
        rng.shuffle(extra)
        names = dict(zip(chosen, extra, strict=False))
        assert names
        (have,) = interpret(read(renamed_onnx(model, names)), [x])
        np.testing.assert_array_equal(have, want)


def test_an_onnx_input_that_is_called_as_another_in_int8() -> None:
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["a"]),
        helper.make_node("DequantizeLinear", ["x/int8", "scale", "zero"], ["b"]),
        helper.make_node("Sub", ["a", "b"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "scale", "zero"], ["y"]),
    ]
    constants = {"scale": np.array(0.5, np.float32), "zero": np.array(128, np.uint8)}
    ends = {"x": (1, 4), "x/int8": (1, 4)}
    uint8 = onnx.TensorProto.UINT8
    model = model_of(nodes, ends, ["y"], constants, dtype=uint8, output_dtype=uint8)
    graph = read_onnx(model.SerializeToString(), Path("model.onnx"))
    assert graph.inputs == ("x", "x/int8")
    x, other = (np.array([[v, v + 1, v + 2, v]], np.uint8) for v in (150, 140))
    (y,) = interpret(graph, [x, other])
    np.testing.assert_array_equal(y, 128 + x - other)
