"""The placement checker, and every allocator against it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.support.long import examples
from tests.support.problems import arena_problems, memory_problems
from toolchain import arena, schedule
from toolchain.ir import ArenaProblem, Block, MemoryProblem, Placement, SharedPair
from toolchain.ir.arena import arena_problem, check_placement

TWO = ArenaProblem((Block("a", 0, 2, 8, 4), Block("b", 1, 3, 8, 4)))


@pytest.mark.parametrize(
    ("offsets", "size", "reason"),
    [
        ((0, 4), 16, "overlap"),
        ((0, 9), 20, "misaligned"),
        ((0, 8), 12, "out of bounds"),
        ((-4, 8), 16, "negative offset"),
        ((0,), 16, "wrong count"),
    ],
)
def test_the_checker_names_what_is_wrong(offsets: tuple[int, ...], size: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_placement(TWO, Placement("test", offsets, size, 0))


def test_a_sharing_pair_may_overlap_only_from_its_lead_on() -> None:
    shared = ArenaProblem(TWO.blocks, (SharedPair(dying=0, born=1, step=1, lead_bytes=4),))
    check_placement(shared, Placement("test", (4, 0), 12, 0))
    with pytest.raises(ValueError, match="overlap"):
        check_placement(shared, Placement("test", (0, 0), 8, 0))


def test_an_exact_pair_may_overlap_at_its_lead_only() -> None:
    shared = ArenaProblem(TWO.blocks, (SharedPair(0, 1, 1, lead_bytes=-4, exact=True),))
    check_placement(shared, Placement("test", (0, 4), 12, 0))
    check_placement(shared, Placement("test", (8, 0), 16, 0))
    with pytest.raises(ValueError, match="overlap"):
        check_placement(shared, Placement("test", (0, 0), 8, 0))


@pytest.mark.slow
@pytest.mark.parametrize("name", arena.names())
@settings(max_examples=examples(25), deadline=None)
@given(problem=arena_problems())
def test_every_allocator_is_valid(name: str, problem: ArenaProblem) -> None:
    """The examples are others in every run."""
    placement = arena.allocator(name).place(problem)
    check_placement(problem, placement)
    assert placement.lower_bound_bytes <= placement.size_bytes
    assert arena.allocator(name).place(problem).offsets == placement.offsets


@settings(max_examples=100, deadline=None)
@given(problem=memory_problems())
def test_a_schedule_places_within_its_own_lifetimes(problem: MemoryProblem) -> None:
    order = schedule.scheduler("rpo").schedule(problem).order
    blocks = arena_problem(problem, order)
    placement = arena.allocator("greedy-size").place(blocks)
    check_placement(blocks, placement)
    assert placement.size_bytes >= placement.lower_bound_bytes


def test_in_place_chains_share_their_bytes() -> None:
    blocks = tuple(Block(f"t{i}", i, i + 2, 100, 4) for i in range(5))
    pairs = tuple(SharedPair(i, i + 1, i + 1) for i in range(4))
    placement = arena.allocator("greedy-size").place(ArenaProblem(blocks, pairs))
    assert placement.size_bytes == 100
    assert placement.proved_optimal
