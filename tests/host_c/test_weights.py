"""Weights outside of the code: the same bytes, other weights in the same code, refusals."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.host_c.test_banks import two_banks
from tests.host_c.test_generated import compile_with
from tests.pure.test_block_code import small_network
from tests.support.graphs import activation, dense_chain
from tests.support.host import (
    model_of,
    plan_of,
    random_inputs,
    reference_outputs,
)
from tests.support.random_networks import random_network
from tests.support.retrained import retrained
from tests.support.states import GRAPHS
from toolchain.boards import HOST
from toolchain.codegen import generate
from toolchain.codegen.blob import HEADER_BYTES, Layout, is_intact, read_head
from toolchain.device.host import HostModel, HostProgram, build
from toolchain.ir import DType, Graph, Sources, Status
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms
from toolchain.ops.check import check
from toolchain.ops.interpret import interpret
from toolchain.resources import RUNTIME_C

FLOAT = DType.FLOAT32


def external(graph: Graph, name: str = "net") -> HostModel:
    return model_of(plan_of(graph), name, external=True)


def blob_of(sources: Sources) -> bytes:
    assert sources.weights is not None
    return sources.weights.data


def check_runs(models: list[HostModel], graphs: list[Graph], folder: Path) -> None:
    """Each model's program computes what the graph of its weights does."""
    program = build(models, cmsis_nn.find(), folder, sanitize=True)
    with HostProgram(program, models) as running:
        for index, graph in enumerate(graphs):
            inputs = random_inputs(graph, np.random.default_rng(index))
            for budget in (None, 0):
                got = running.run(inputs, index, step_cycles=budget)
                for one, want in zip(got, reference_outputs(graph, inputs), strict=True):
                    np.testing.assert_array_equal(one, want, err_msg=str(graph.ops))


def test_the_bytes_are_those_of_the_reference(tmp_path: Path) -> None:
    """Random networks, one in blocks, one over banks, and a sample of each operator."""
    rng = np.random.default_rng(21)
    graphs = [check(random_network(rng)) for _ in range(4)] + [small_network()[1]]
    models = [external(graph, f"m{index}") for index, graph in enumerate(graphs)]
    plan = two_banks()[0]
    check_runs(
        [*models, model_of(plan, "banked", external=True)], [*graphs, plan.graph], tmp_path / "a"
    )
    samples = [check(spec.sample(rng)) for spec in forms().values()]
    exact = [one for one in samples if not any(t.dtype is FLOAT for t in one.tensors.values())]
    assert len(exact) > len(samples) // 2
    models = [external(graph, f"m{index}") for index, graph in enumerate(exact)]
    program = build(models, cmsis_nn.find(), tmp_path / "b", once=True)
    with HostProgram(program, models) as running:
        for index, graph in enumerate(exact):
            inputs = random_inputs(graph, np.random.default_rng(index))
            want = interpret(graph, inputs, {})
            for one, other in zip(running.run(inputs, index), want, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=str(graph.ops))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6))
@example(11057)  # joined units, whose sums leave 16 bits with the other weights
def test_the_layout_of_a_retrained_network_is_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = check(random_network(rng))
    again = check(retrained(graph, rng))
    one, two = (external(g).sources for g in (graph, again))
    assert one.weights is not None and two.weights is not None
    differences = Layout(one.weights.layout).differences(Layout(two.weights.layout))
    if any(
        "_joined_" in what for what in differences
    ):  # the choice that values make (docs/weights.md)
        assert any("fully_connected), its code" in what for what in differences)
        return
    assert differences == ()
    assert one.files["net.c"] == two.files["net.c"]
    assert blob_of(one) != blob_of(two)


def test_old_code_computes_a_retrained_network_from_its_blob(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    graphs, models = [], []
    for index, graph in enumerate([check(random_network(rng)) for _ in range(4)]):
        again = check(retrained(graph, rng))
        old, new = external(graph, f"m{index}"), external(again, f"m{index}")
        models.append(replace(old, sources=replace(old.sources, weights=new.sources.weights)))
        graphs.append(again)
        inputs = random_inputs(graph, rng)
        changed = zip(
            reference_outputs(graph, inputs), reference_outputs(again, inputs), strict=True
        )
        assert any((a != b).any() for a, b in changed)
    check_runs(models, graphs, tmp_path)


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_a_state_begins_with_what_the_blob_has(name: str, tmp_path: Path) -> None:
    graph = check(GRAPHS[name])
    rng = np.random.default_rng(1)
    model = external(graph)
    memory: dict[str, np.ndarray] = {}
    program = build([model], cmsis_nn.find(), tmp_path, sanitize=True)
    with HostProgram(program, [model]) as running:
        for number in range(3):
            inputs = random_inputs(graph, rng)
            want = interpret(graph, inputs, memory)
            for one, other in zip(running.run(inputs, restart=number == 0), want, strict=True):
                np.testing.assert_array_equal(one, other)


def test_a_constant_that_is_an_output_lies_in_the_blob(tmp_path: Path) -> None:
    data = np.arange(-4, 4, dtype=np.int8)
    constant = replace(activation("c", (8,)), constant=data)
    graph = Graph.build("flash", [activation("x", (8,)), constant], [], ["x"], ["x", "c"])
    check_runs([external(graph)], [graph], tmp_path)


def test_what_is_wrong_with_a_blob_has_a_name(tmp_path: Path) -> None:
    model = external(dense_chain("net", (4, 3, 2)))
    blob = tmp_path / "net.bin"
    blob.write_bytes(blob_of(model.sources))
    program = compile_with("weights.c", [model.sources], tmp_path)
    done = subprocess.run([str(program), str(blob)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, flipped = (
        [Status(int(code)).name.removeprefix("ERROR_WEIGHTS_") for code in line.split()]
        for line in done.stdout.splitlines()
    )
    expected = "MISSING MISSING MISSING OK MISSING SHORT NO_BLOB MISALIGNED OK OK"
    assert first == expected.split()
    assert flipped[:4] == ["NO_BLOB"] * 4
    assert flipped[4:8] == ["VERSION"] * 4
    assert flipped[8:16] == ["DAMAGED"] * 8
    assert flipped[16:32] == ["MODEL"] * 16
    assert set(flipped[32:]) == {"DAMAGED"} and len(flipped) == len(blob.read_bytes())


def test_the_header_is_read_as_it_was_written() -> None:
    data = blob_of(external(dense_chain("net", (4, 3, 2))).sources)
    head = read_head(data)
    assert head is not None and is_intact(data)
    assert head.size_bytes == len(data) and len(data) % 8 == 0 and HEADER_BYTES == 64
    assert read_head(b"x" * 64) is None and read_head(data[:40]) is None
    assert not is_intact(data[:-1] + bytes([data[-1] ^ 1])) and not is_intact(b"")


def test_the_codes_of_the_check_are_those_of_the_model() -> None:
    text = (RUNTIME_C / "include" / "thimble_weights.h").read_text()
    codes = {name: int(code) for name, code in re.findall(r"THIMBLE_WEIGHTS_(\w+) = (-\d+)", text)}
    named = {s.name.removeprefix("ERROR_WEIGHTS_"): s.value for s in Status if "WEIGHTS" in s.name}
    assert codes == named and len(codes) == 8


@pytest.mark.parametrize(
    ("widths", "what"),
    [((4, 5, 2), "arena"), ((4, 3, 3), "output 'y', type"), ((4, 3, 4, 2), "order of the calls")],
)
def test_another_network_is_refused_by_what_differs(widths: tuple[int, ...], what: str) -> None:
    one, two = (external(dense_chain("net", w)).sources.weights for w in ((4, 3, 2), widths))
    assert one is not None and two is not None
    found = Layout(one.layout).differences(Layout(two.layout))
    assert any(difference.startswith(what) for difference in found), found


def test_another_scale_of_an_output_is_said_with_both() -> None:
    graph = dense_chain("net", (4, 3, 2))
    q = graph.tensors["y"].q
    tensors = [
        replace(t, quantisation=replace(q, scales=(0.25,))) if t.name == "y" else t
        for t in graph.tensors.values()
    ]
    other = Graph.build("net", tensors, graph.ops, graph.inputs, graph.outputs)
    one, two = (external(g).sources.weights for g in (graph, other))
    assert one is not None and two is not None
    (found,) = Layout(one.layout).differences(Layout(two.layout))
    assert found == (
        "output 'y', quantisation: scale [0.05], zero point [-3] in the code, "
        "scale [0.25], zero point [-3] here"
    )


def test_code_with_its_weights_inside_names_none_of_this() -> None:
    sources = generate(plan_of(dense_chain("net", (4, 3, 2))), HOST, cmsis_nn.find(), name="net")
    assert sources.weights is None
    assert not any("WEIGHTS_MISSING" in text for text in sources.files.values())
