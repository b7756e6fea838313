"""The footprint model, its checker, and every scheduler against it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings

from tests.support.problems import memory_problems
from toolchain import schedule
from toolchain.ir import Buffer, Member, MemoryProblem, Overlap
from toolchain.ir.memory import check_order, footprint, peak_bytes


def chain(**changes: object) -> MemoryProblem:
    """in(10) -> a -> t(10) -> b -> out(4)."""
    base = {
        "ops": ("a", "b"),
        "predecessors": ((), (0,)),
        "uses": ((0, 1), (1, 2)),
        "scratch_bytes": (0, 7),
        "buffers": (
            Buffer("in", 10, (Member("in"),), from_start=True),
            Buffer("t", 10, (Member("t"),)),
            Buffer("out", 4, (Member("out"),), to_end=True),
        ),
    }
    return MemoryProblem(**{**base, **changes})  # type: ignore[arg-type]


def test_footprint_counts_inputs_outputs_and_scratch_of_the_running_operator() -> None:
    assert footprint(chain(), (0, 1)) == (20, 21)


def test_an_overlap_saves_where_the_input_dies() -> None:
    assert footprint(chain(overlaps=(Overlap(0, 0, 1, 0),)), (0, 1)) == (10, 21)
    assert footprint(chain(overlaps=(Overlap(0, 0, 1, 3),)), (0, 1)) == (13, 21)


def test_an_exact_overlap_cannot_move_closer() -> None:
    """4 bytes over 10: wherever an exact pair must lie, what sticks out is not saved."""
    assert footprint(chain(overlaps=(Overlap(1, 1, 2, -6),)), (0, 1)) == (20, 17)
    assert footprint(chain(overlaps=(Overlap(1, 1, 2, -6, exact=True),)), (0, 1)) == (20, 17)
    assert footprint(chain(overlaps=(Overlap(1, 1, 2, -8, exact=True),)), (0, 1)) == (20, 19)
    assert footprint(chain(overlaps=(Overlap(1, 1, 2, 3, exact=True),)), (0, 1)) == (20, 20)


def test_an_overlap_saves_nothing_where_the_input_lives_on() -> None:
    problem = chain(uses=((0, 1), (0, 1, 2)), overlaps=(Overlap(0, 0, 1, 0),))
    assert footprint(problem, (0, 1)) == (20, 31)


def test_outputs_live_to_the_end_and_inputs_from_the_start() -> None:
    problem = chain(uses=((1,), (0, 2)), predecessors=((), ()))
    assert footprint(problem, (0, 1)) == (20, 21)
    assert footprint(problem, (1, 0)) == (21, 14)


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        ((1, 0), "'b' runs before its predecessor 'a'"),
        ((0, 0), "'a' is scheduled twice"),
        ((0,), "'b' is never scheduled"),
        ((0, 5), "operator 5, which does not exist"),
    ],
)
def test_the_checker_names_what_is_wrong(order: tuple[int, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_order(chain(), order)


@pytest.mark.slow
@pytest.mark.parametrize("name", schedule.names())
@settings(max_examples=100, deadline=None)
@given(problem=memory_problems(max_ops=6))
def test_every_scheduler_is_valid_and_its_bound_holds(name: str, problem: MemoryProblem) -> None:
    result = schedule.scheduler(name).schedule(problem)
    check_order(problem, result.order)
    assert result.peak_bytes == peak_bytes(problem, result.order)
    best = min(peak_bytes(problem, order) for order in _orders(problem))
    assert result.lower_bound_bytes <= best <= result.peak_bytes
    assert schedule.scheduler(name).schedule(problem).order == result.order


def _orders(problem: MemoryProblem) -> list[tuple[int, ...]]:
    def valid(order: tuple[int, ...]) -> bool:
        seen: set[int] = set()
        for op in order:
            if not seen.issuperset(problem.predecessors[op]):
                return False
            seen.add(op)
        return True

    return [o for o in itertools.permutations(range(len(problem.ops))) if valid(o)]
