"""Runs made in steps: the bytes of whole runs, whatever the steps; what misuse is told."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.host_c.test_banks import two_banks
from tests.host_c.test_generated import compile_with
from tests.pure.test_block_code import small_network
from tests.support.graphs import dense_chain
from tests.support.host import host_model, plan_of, random_inputs, reference_outputs
from tests.support.random_networks import random_network
from tests.support.states import GRAPHS
from toolchain.codegen.steps import Costs, Steps, steps_of
from toolchain.device.host import HostModel, HostProgram, build
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.ops.check import check
from toolchain.ops.interpret import interpret

NETWORKS = 5
BUDGETS = st.one_of(st.integers(0, 5000), st.integers(0, 2**32 - 2), st.none())


@pytest.fixture(scope="module")
def models() -> list[HostModel]:
    """Random networks, one in blocks, one over several banks, and one without operators."""
    rng = np.random.default_rng(20)
    graphs = [check(random_network(rng)) for _ in range(NETWORKS)]
    graphs += [small_network()[1]]
    empty = Graph.build("none", [graphs[0].tensors[graphs[0].inputs[0]]], [], *[["t0"]] * 2)
    return [host_model(graph, f"m{i}") for i, graph in enumerate([*graphs, empty])]


@pytest.fixture(scope="module")
def program(
    models: list[HostModel], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HostProgram]:
    folder = tmp_path_factory.mktemp("steps")
    built = build(models, cmsis_nn.find(), folder, sanitize=True)
    with HostProgram(built, models) as running:
        yield running


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(index=st.integers(0, NETWORKS + 1), budget=BUDGETS, seed=st.integers(0, 99))
def test_the_bytes_are_those_of_the_reference_whatever_the_steps(
    program: HostProgram, models: list[HostModel], index: int, budget: int | None, seed: int
) -> None:
    graph = models[index].graph
    inputs = random_inputs(graph, np.random.default_rng(seed))
    got = program.run(inputs, index, step_cycles=budget)
    for one, want in zip(got, reference_outputs(graph, inputs), strict=True):
        np.testing.assert_array_equal(one, want)


def test_the_split_model_has_blocks_that_are_steps(models: list[HostModel]) -> None:
    sources = models[NETWORKS].sources
    assert len(sources.calls) > len(sources.operators)
    assert f"_STEPS {len(sources.calls)}\n" in sources.files[f"{sources.name}.h"]


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_frames_in_steps_keep_the_state(name: str, tmp_path: Path) -> None:
    graph = check(GRAPHS[name])
    rng = np.random.default_rng(1)
    model = host_model(graph, "m")
    built = build([model], cmsis_nn.find(), tmp_path, sanitize=True)
    memory: dict[str, np.ndarray] = {}
    with HostProgram(built, [model]) as running:
        for number, budget in enumerate((0, None, 20, 10**6, 0)):
            inputs = random_inputs(graph, rng)
            want = interpret(graph, inputs, memory)
            got = running.run(inputs, restart=number == 0, step_cycles=budget)
            for one, other in zip(got, want, strict=True):
                np.testing.assert_array_equal(one, other)


def test_misuse_is_told_and_two_runs_at_once_are_apart(tmp_path: Path) -> None:
    graph = dense_chain("net", (24, 16, 12, 9, 8, 7))
    program = compile_with("steps.c", [host_model(graph, "net").sources], tmp_path)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    misuse, run, same = done.stdout.splitlines()
    assert misuse.split() == [*["NOT_STARTED"] * 3, "ARENA", "NOT_STARTED", "ARENA", "NOT_STARTED"]
    assert run.split() == [*["OK", "OK", "AGAIN", "1", "AGAIN"], "3", "1", "OK", "DONE", "DONE"]
    assert same == "0"


def test_an_arena_over_several_banks(tmp_path: Path) -> None:
    plan, model = two_banks()
    inputs = random_inputs(plan.graph, np.random.default_rng(4))
    with HostProgram(build([model], cmsis_nn.find(), tmp_path, sanitize=True), [model]) as running:
        for budget in (0, 300, None):
            got = running.run(inputs, step_cycles=budget)
            for one, want in zip(got, reference_outputs(plan.graph, inputs), strict=True):
                np.testing.assert_array_equal(one, want)


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=9))
def test_the_table_says_no_less_than_the_prediction(counts: list[int]) -> None:
    steps = Steps(tuple(counts), "cycles", "predicted")
    for count, scaled in zip(counts, steps.scaled, strict=True):
        assert 0 <= int(scaled) * steps.scale - count < steps.scale
    assert steps.scaled.dtype == (np.uint8 if max(counts) < 256 else np.uint16)
    assert steps.scale == 1 or steps.scale * 0xFFFF < 2 * max(counts)
    assert max(counts) <= steps.longest < 2**32


def test_the_longest_call_is_named_and_counted() -> None:
    plan = plan_of(dense_chain("net", (24, 16, 12)))
    made = steps_of(Costs((7, 9), "cycles", "predicted"), (0, 1), plan.graph)
    assert made is not None
    assert (made.longest, made.total, made.longest_kind) == (9, 16, "fully_connected")
    assert steps_of(None, (0, 1), plan.graph) is None
