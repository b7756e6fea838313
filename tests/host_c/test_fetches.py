"""Constants that are fetched to the arena before the operator that reads them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.host_c.test_generated import compile_with
from tests.host_c.test_weights import check_runs
from tests.support.graphs import activation, dense_chain
from tests.support.host import model_of, plan_of
from tests.support.random_networks import random_network
from tests.support.states import GRAPHS
from toolchain.codegen.blob import HEADER_BYTES
from toolchain.deployment.weights import external_options, external_plan
from toolchain.errors import InputError, UnsupportedError
from toolchain.ir import External, Graph, Status
from toolchain.memory.plan import Plan
from toolchain.ops.check import check
from toolchain.planning.fetches import with_fetches
from toolchain.planning.options import Optimise, PlanOptions


def needed(plan: Plan, step: int) -> set[int]:
    """The bytes of the arena that hold tensors, or scratch, at a step."""
    arena, found = plan.arena, set()
    for name, offset in arena.offsets.items():
        first, last = arena.lifetimes[name]
        if first <= step < last:
            found |= set(range(offset, offset + plan.graph.tensors[name].size_bytes))
    op = plan.graph.ops[plan.schedule.order[step]].name
    if op in arena.scratch_offsets:
        size = next(planned.scratch_bytes for planned in plan.operators if planned.name == op)
        found |= set(range(arena.scratch_offsets[op], arena.scratch_offsets[op] + size))
    return found


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6))
def test_nothing_else_lies_where_constants_are_fetched_to(seed: int) -> None:
    plan = with_fetches(plan_of(check(random_network(np.random.default_rng(seed)))))
    arena, order = plan.arena, plan.schedule.order
    assert arena.fetch_offsets.keys() == arena.fetch_bytes.keys()
    coded = [s for s, number in enumerate(order) if not plan.operators[number].is_view]
    for step in range(len(order)):
        taken = needed(plan, step)
        for name, at in arena.fetch_offsets.items():
            own = next(s for s, number in enumerate(order) if plan.graph.ops[number].name == name)
            before = max((s for s in coded if s < own), default=0)
            if before <= step <= own:
                held = set(range(at, at + arena.fetch_bytes[name]))
                assert at % 8 == 0 and max(held) < arena.size_bytes
                assert not held & taken, name
                taken |= held


def test_the_bytes_are_those_of_the_reference(tmp_path: Path) -> None:
    rng = np.random.default_rng(31)
    graphs = [check(random_network(rng)) for _ in range(5)] + [dense_chain("d", (9, 70, 8, 3))]
    plans = [with_fetches(plan_of(graph)) for graph in graphs]
    models = [model_of(plan, f"m{i}", external=True) for i, plan in enumerate(plans)]
    assert all(model.sources.weights and model.sources.weights.fetched for model in models)
    check_runs(models, graphs, tmp_path)


def test_the_arena_grows_by_less_than_all_constants() -> None:
    plan = plan_of(dense_chain("net", (60, 60, 60, 60, 60, 60, 60, 60)))
    fetched = with_fetches(plan)
    each = max(fetched.arena.fetch_bytes.values())
    assert fetched.arena.size_bytes <= plan.arena.size_bytes + 2 * each + 16
    assert fetched.arena.size_bytes < sum(fetched.arena.fetch_bytes.values()) / 2


def test_a_small_arena_has_room_for_the_header() -> None:
    small = with_fetches(plan_of(dense_chain("net", (2, 2))))
    assert small.arena.size_bytes >= HEADER_BYTES


def test_a_fetch_that_fails_ends_the_run(tmp_path: Path) -> None:
    plan = with_fetches(plan_of(dense_chain("net", (24, 16, 12, 9))))
    sources = model_of(plan, "net", external=True).sources
    assert sources.weights is not None
    blob = tmp_path / "net.bin"
    blob.write_bytes(sources.weights.data)
    program = compile_with("fetch.c", [sources], tmp_path)
    done = subprocess.run([str(program), str(blob)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = [Status(int(c)).name.removeprefix("ERROR_WEIGHTS_") for c in done.stdout.split()]
    before = "MISSING MISSING ERROR_ARENA FETCH MISSING DAMAGED OK OK"
    assert said == [*before.split(), "FETCH", "OK", "AGAIN", "FETCH", "ERROR_DONE", "OK"]


def test_what_cannot_be_fetched_is_refused() -> None:
    fetched = External(fetched=True)
    with pytest.raises(InputError, match="--max-slowdown"):
        external_options(PlanOptions(max_slowdown=0.1), fetched)
    with pytest.raises(InputError, match="--optimise speed"):
        external_options(PlanOptions(optimise=Optimise.SPEED), fetched)
    options = external_options(PlanOptions(), fetched)
    assert options.one_bank and not options.splits_nearly_free and not options.copy_constants
    with pytest.raises(UnsupportedError, match="keeps state"):
        external_plan(plan_of(check(GRAPHS["delay line"])), fetched)
    constant = activation("c", (8,))
    data = np.arange(8, dtype=np.int8)
    graph = Graph.build(
        "flash",
        [activation("x", (8,)), type(constant)("c", (8,), constant.dtype, constant.q, data)],
        [],
        ["x"],
        ["x", "c"],
    )
    with pytest.raises(UnsupportedError, match="an output that is a constant"):
        external_plan(plan_of(graph), fetched)
