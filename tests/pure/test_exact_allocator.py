"""The exact allocator against brute force, and what its search concludes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.support.long import examples
from tests.support.placements import smallest_arena_bytes
from tests.support.problems import arena_problems
from toolchain import arena, packages
from toolchain.arena import _orders
from toolchain.arena._bounds import load_bound_bytes
from toolchain.arena._fit import Fitter, size_bytes
from toolchain.arena._orders import FEW, smaller
from toolchain.arena._separation import Separation
from toolchain.arena.first_fit import by_start
from toolchain.arena.greedy_breadth import by_breadth
from toolchain.arena.greedy_size import by_size
from toolchain.ir import ArenaProblem, Block, Placement, SharedPair
from toolchain.ir.arena import check_placement
from toolchain.search import Work


@settings(max_examples=examples(60), deadline=None)
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


@settings(max_examples=100)
@given(problem=arena_problems(max_blocks=6))
def test_a_local_search_never_goes_below_the_smallest(problem: ArenaProblem) -> None:
    fitter = Fitter(problem, Separation(problem))
    smallest = smallest_arena_bytes(problem)
    offsets = smaller(problem, fitter, [by_size(problem), by_start(problem)], smallest, Work(0.02))
    size, bound = size_bytes(problem, offsets), load_bound_bytes(problem)
    check_placement(problem, Placement("orders", offsets, size, bound, 0.0))
    assert size >= smallest


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(problem=arena_problems(max_blocks=6))
def test_every_order_of_few_blocks_saves_the_search_and_changes_nothing(
    problem: ArenaProblem,
) -> None:
    """At a bound that no order meets; the work counts as spent."""
    fitter, wanted = Fitter(problem, Separation(problem)), load_bound_bytes(problem) - 1
    found = []
    for few in (0, FEW):
        work, order = Work(0.02), [*reversed(by_size(problem))]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_orders, "FEW", few)
            patch.setattr(_orders, "_STALE", 2)
            found.append(smaller(problem, fitter, [order], wanted, work))
        assert work.left_seconds < 1e-6
    assert found[0] == found[1]


def test_without_cp_sat_a_chain_is_placed_as_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """List allocators need 100 bytes for it, and so does a search that ties the blocks."""
    sizes, leads = (76, 24, 52, 68, 16, 8, 68), (12, 16, 12, 36, 28, 4)
    problem = ArenaProblem(
        tuple(Block(str(i), i, i + 2, size, 4) for i, size in enumerate(sizes)),
        tuple(SharedPair(i, i + 1, i + 1, lead) for i, lead in enumerate(leads)),
    )
    fitter = Fitter(problem, Separation(problem))
    for order in (by_size, by_breadth, by_start):
        assert size_bytes(problem, fitter.fit(order(problem))) >= 100
    monkeypatch.setattr(packages, "_is_installed", lambda package: False)
    placed = arena.allocator("exact").place(problem)
    check_placement(problem, placed)
    assert placed.size_bytes == placed.lower_bound_bytes == 88


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
