"""`auto` against brute force, its theorems against random states, and its determinism."""

from __future__ import annotations

import random

import pytest

from benchmarks.random_graphs import FAMILIES
from tests.support.orders import hard_problem, least_peak, step_bytes
from toolchain.ir import Buffer, Member, MemoryProblem
from toolchain.ir.memory import check_order, footprint
from toolchain.schedule import auto, scheduler
from toolchain.schedule._exact.compiled import compiled, unread_bytes
from toolchain.schedule._exact.machine import Machine
from toolchain.schedule.kahn import kahn_order

AUTO = scheduler("auto")


@pytest.mark.slow
@pytest.mark.parametrize("block", range(5))
def test_equals_brute_force(block: int) -> None:
    for seed in range(block * 500, block * 500 + 500):
        problem = hard_problem(seed)
        found = AUTO.schedule(problem, time_limit_seconds=20)
        check_order(problem, found.order)
        assert found.proved_optimal, f"seed {seed}"
        assert found.peak_bytes == least_peak(problem), f"seed {seed}"


def test_the_brute_force_counts_as_the_checker_does() -> None:
    for seed in range(300):
        problem = hard_problem(seed)
        order = kahn_order(problem)
        steps = [step_bytes(problem, frozenset(order[:i]), op) for i, op in enumerate(order)]
        assert tuple(steps) == footprint(problem, order), f"seed {seed}"


@pytest.mark.parametrize("backwards", [False, True])
def test_the_machine_counts_as_the_checker_does_and_takes_back(backwards: bool) -> None:
    for seed in range(300):
        problem = hard_problem(seed, most_ops=12)
        if unread_bytes(problem):
            continue
        resolved = compiled(problem)
        machine = Machine(resolved.reversed() if backwards else resolved)
        rng = random.Random(seed)
        steps: list[int] = []
        while machine.ready:
            if machine.trail and rng.random() < 0.3:
                machine.take_back()
                steps.pop()
            op = rng.choice(sorted(machine.ready))
            steps.append(machine.live_bytes + machine.rise[op])
            machine.run(op)
        order = machine.trail[::-1] if backwards else machine.trail
        expected = footprint(problem, order)
        assert tuple(steps[::-1] if backwards else steps) == expected, f"seed {seed}"


def test_a_settled_operator_and_a_lossless_detour_keep_the_optimum() -> None:
    """Theorems 1 and 2, on every state of random walks, against brute force from that state."""
    moves = 0
    for seed in range(250):
        problem = hard_problem(seed, most_ops=8)
        if unread_bytes(problem):
            continue
        machine = Machine(compiled(problem))
        rng = random.Random(seed)
        while machine.ready:
            start = len(machine.trail)
            least = _rest(problem, machine.trail)
            before = machine.live_bytes
            peak = 0
            for _ in range(rng.randint(1, 4)):
                if not machine.ready:
                    break
                op = rng.choice(sorted(machine.ready))
                peak = max(peak, machine.live_bytes + machine.rise[op])
                machine.run(op)
                lowest = min(machine.nets[start:]) <= 0 and machine.live_bytes <= before
                if lowest and peak <= least and machine.no_loss(start):
                    moves += 1
                    assert _rest(problem, machine.trail) <= least, f"seed {seed}"
    assert moves > 100


def _rest(problem: MemoryProblem, done: list[int]) -> int:
    """The least peak of the steps still to come after `done`."""
    everything = set(range(len(problem.ops)))
    memo: dict[frozenset[int], int] = {frozenset(everything): 0}

    def rest(now: frozenset[int]) -> int:
        if now not in memo:
            memo[now] = min(
                max(step_bytes(problem, now, op), rest(now | {op}))
                for op in everything - now
                if now.issuperset(problem.predecessors[op])
            )
        return memo[now]

    return rest(frozenset(done))


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_families_are_proved_and_repeatable(family: str) -> None:
    for seed in range(3):
        problem = FAMILIES[family](60 if family == "hrnet" else 200, seed)
        first = AUTO.schedule(problem, time_limit_seconds=60)
        assert first.proved_optimal
        assert AUTO.schedule(problem, time_limit_seconds=60).order == first.order


@pytest.mark.slow
def test_a_budget_ends_the_search_and_one_out_of_reach_gives_the_optimum() -> None:
    problem = FAMILIES["randwire"](300, 1)
    least = AUTO.schedule(problem).peak_bytes
    met = AUTO.schedule(problem, budget_bytes=least + 100)
    assert least <= met.peak_bytes <= least + 100
    refused = AUTO.schedule(problem, budget_bytes=least - 1)
    assert (refused.peak_bytes, refused.lower_bound_bytes) == (least, least)


def test_the_time_limit_ends_the_search_with_the_best_order_so_far() -> None:
    problem = FAMILIES["randwire"](1000, 0)
    found = AUTO.schedule(problem, time_limit_seconds=0.0)
    check_order(problem, found.order)
    assert found.lower_bound_bytes < found.peak_bytes


def test_an_unread_input_weighs_on_the_first_step_only() -> None:
    problem = MemoryProblem(
        ops=("big", "small"),
        predecessors=((), ()),
        uses=((1,), (2,)),
        scratch_bytes=(0, 0),
        buffers=(
            Buffer("unread", 10, (Member("unread"),), from_start=True),
            Buffer("a", 9, (Member("a"),), to_end=True),
            Buffer("b", 2, (Member("b"),), to_end=True),
        ),
    )
    found = AUTO.schedule(problem)
    assert (found.order, found.peak_bytes) == ((1, 0), 12)
    assert found.proved_optimal


def test_a_graph_too_large_to_search_gets_the_better_baseline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = FAMILIES["randwire"](300, 1)
    monkeypatch.setattr(auto, "LARGEST_SEARCHED", 299)
    found = AUTO.schedule(problem)
    baselines = [scheduler(name).schedule(problem) for name in ("rpo", "kahn")]
    assert found.peak_bytes == min(baseline.peak_bytes for baseline in baselines)
    assert not found.proved_optimal


def test_nothing_to_order() -> None:
    problem = MemoryProblem((), (), (), (), (Buffer("x", 5, (Member("x"),), from_start=True),))
    assert AUTO.schedule(problem).proved_optimal
