"""The exact allocator against brute force, and what its search concludes."""

from __future__ import annotations

from hypothesis import given, settings

from tests.support.placements import smallest_arena_bytes
from tests.support.problems import arena_problems
from toolchain import arena
from toolchain.arena._bounds import load_bound_bytes
from toolchain.ir import ArenaProblem, Block
from toolchain.ir.arena import check_placement


@settings(max_examples=150, deadline=None)
@given(problem=arena_problems(max_blocks=6))
def test_it_is_smallest(problem: ArenaProblem) -> None:
    placement = arena.allocator("exact").place(problem)
    check_placement(problem, placement)
    assert placement.proved_optimal
    assert placement.size_bytes == smallest_arena_bytes(problem)


@settings(max_examples=150, deadline=None)
@given(problem=arena_problems(max_blocks=6))
def test_no_placement_is_below_the_load_bound(problem: ArenaProblem) -> None:
    assert load_bound_bytes(problem) <= smallest_arena_bytes(problem)


def test_a_capacity_that_no_placement_meets_is_proved_so() -> None:
    """The load is 4 at every step, but these five fit only into 5 (Kierstead's kind of trap)."""
    blocks = (
        Block("a", 0, 2, 2),
        Block("b", 0, 1, 1),
        Block("c", 1, 3, 1),
        Block("d", 2, 4, 2),
        Block("e", 0, 4, 1),
    )
    placement = arena.allocator("exact").place(ArenaProblem(blocks), capacity_bytes=3)
    assert placement.lower_bound_bytes > 3


def test_thousands_of_blocks_need_no_deep_stack() -> None:
    blocks = tuple(Block(f"b{i}", i, i + 3, 1 + i * 7 % 5) for i in range(2000))
    problem = ArenaProblem(blocks)
    placement = arena.allocator("exact").place(problem, time_limit_seconds=2.0)
    assert placement.size_bytes < 2 * placement.lower_bound_bytes
