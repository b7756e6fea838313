"""The published methods: exact ones equal brute force, all pass the checker, ablations included."""

from __future__ import annotations

import pytest

from benchmarks.random_graphs import FAMILIES
from tests.support.orders import hard_problem, least_peak
from toolchain.errors import InputError
from toolchain.ir.memory import check_order, peak_bytes
from toolchain.schedule import DEFAULT, names, scheduler
from toolchain.schedule._exact.compiled import unread_bytes
from toolchain.schedule._ilp.fusion import fuse
from toolchain.schedule._sets import bits, least_peak_order
from toolchain.schedule._steps import Steps
from toolchain.schedule.hmcos import Hmcos
from toolchain.schedule.ilp import Ilp
from toolchain.schedule.serenity import Serenity
from toolchain.search import Work


def test_the_methods_are_found_by_their_files() -> None:
    assert {"auto", "hmcos", "ilp", "kahn", "rpo", "serenity"} == set(names())
    assert DEFAULT == "auto"
    with pytest.raises(InputError, match="no scheduler is called 'magic'; there are: auto"):
        scheduler("magic")


@pytest.mark.parametrize("divide", [True, False])
@pytest.mark.parametrize("budgeting", [True, False])
def test_serenity_equals_brute_force(divide: bool, budgeting: bool) -> None:
    method = Serenity(divide=divide, budgeting=budgeting)
    for seed in range(150):
        problem = hard_problem(seed)
        found = method.schedule(problem)
        assert found.peak_bytes == least_peak(problem), f"seed {seed}"
        assert found.proved_optimal, f"seed {seed}"


@pytest.mark.parametrize(
    "method",
    [
        Ilp(),
        Ilp(pruning=False),
        Ilp(fusion=False),
        Ilp(partition=False),
        Ilp(pruning=False, fusion=False, partition=False),
    ],
    ids=["all", "no pruning", "no fusion", "no partition", "plain"],
)
def test_the_integer_program_equals_brute_force(method: Ilp) -> None:
    for seed in range(60):
        problem = hard_problem(seed, most_ops=8)
        found = method.schedule(problem)
        assert found.peak_bytes == least_peak(problem), f"seed {seed}"
        assert found.proved_optimal or unread_bytes(problem), f"seed {seed}"


@pytest.mark.slow
def test_every_fusion_keeps_the_optimum() -> None:
    fused = 0
    for seed in range(1500):
        problem = hard_problem(seed)
        if unread_bytes(problem):
            continue
        steps = Steps(problem)
        units = fuse(steps.resolved)
        assert sorted(op for unit in units for op in unit) == list(range(len(problem.ops)))
        fused += len(problem.ops) - len(units)
        order = _order_units(steps, units)
        check_order(problem, order)
        assert peak_bytes(problem, order) == least_peak(problem), f"seed {seed}"
    assert fused > 1000


def _order_units(steps: Steps, units: list[tuple[int, ...]]) -> list[int]:
    """The best order that keeps every unit together."""
    masks = [sum(1 << op for op in unit) for unit in units]
    before = []
    for unit, mask in zip(units, masks, strict=True):
        needed = {p for op in unit for p in steps.resolved.predecessors[op]}
        before.append(sum(1 << p for p in needed) & ~mask)

    def run(unit: int, done: int, live: int) -> tuple[int, int, tuple[int, ...]]:
        _, peak, after = steps.run(done, live, units[unit])
        return peak, after, units[unit]

    return least_peak_order(masks, before, run, 0, steps.start_bytes, 1 << 60, Work())[0]


def test_every_cut_is_passed_by_every_order() -> None:
    for seed in range(200):
        problem = hard_problem(seed)
        steps = Steps(problem)
        for name in ("kahn", "rpo", "auto"):
            order = scheduler(name).schedule(problem).order
            sets = {sum(1 << op for op in order[:i]) for i in range(len(order) + 1)}
            assert sets.issuperset(steps.cuts()), f"seed {seed}"
    assert bits(0b1011) == [0, 1, 3]


@pytest.mark.parametrize("grouping", [True, False])
def test_hmcos_is_between_the_optimum_and_reverse_post_order(grouping: bool) -> None:
    method = Hmcos(grouping=grouping)
    reached = 0
    for seed in range(300):
        problem = hard_problem(seed)
        best = least_peak(problem)
        found = method.schedule(problem)
        assert best <= found.peak_bytes <= scheduler("rpo").schedule(problem).peak_bytes
        reached += found.peak_bytes == best
    assert reached > 250


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("name", ["hmcos", "serenity", "ilp"])
def test_methods_stop_in_time_and_never_beat_auto(name: str, family: str) -> None:
    problem = FAMILIES[family](60, 5)
    least = scheduler("auto").schedule(problem, 30)
    found = scheduler(name).schedule(problem, 0.5)
    check_order(problem, found.order)
    assert found.lower_bound_bytes <= least.peak_bytes <= found.peak_bytes
    assert found.seconds < 20
