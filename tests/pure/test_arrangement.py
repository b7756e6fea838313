"""Other orders of as small a peak, where one order leaves an arena above its peak."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings

from tests.support.problems import memory_problems
from toolchain import arena, schedule
from toolchain.ir import Buffer, Member, MemoryProblem
from toolchain.ir.arena import check_placement
from toolchain.ir.memory import check_order, peak_bytes
from toolchain.memory import arrangement

EXACT = arena.allocator("exact")


def random_problem(seed: int) -> MemoryProblem:
    """12 to 18 operators with an output each, of 4 to 48 bytes, and up to three inputs."""
    rng = random.Random(seed)
    count = rng.randint(12, 18)
    before = [
        tuple(sorted(rng.sample(range(i), min(i, rng.choice((0, 1, 2, 3)))))) for i in range(count)
    ]
    return MemoryProblem(
        ops=tuple(f"op{i}" for i in range(count)),
        predecessors=tuple(before),
        uses=tuple(tuple(sorted({i, *before[i]})) for i in range(count)),
        scratch_bytes=(0,) * count,
        buffers=tuple(
            Buffer(f"b{i}", 4 * rng.randint(1, 12), (Member(f"t{i}"),), to_end=i == count - 1)
            for i in range(count)
        ),
    )


@pytest.mark.parametrize("seed", [121, 498])
def test_another_order_closes_the_gap_between_arena_and_peak(seed: int) -> None:
    problem = random_problem(seed)
    found = schedule.scheduler("auto").schedule(problem)
    first = arrangement.place(problem, found, EXACT)
    assert first.placement.proved_optimal
    assert first.placement.size_bytes > found.peak_bytes
    best = arrangement.compact(problem, first, EXACT)
    assert best.placement.size_bytes == found.peak_bytes


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(problem=memory_problems())
def test_it_is_valid_and_never_larger(problem: MemoryProblem) -> None:
    found = schedule.scheduler("rpo").schedule(problem)
    first = arrangement.place(problem, found, arena.allocator("greedy-size"))
    best = arrangement.compact(problem, first, EXACT)
    check_order(problem, best.schedule.order)
    check_placement(best.blocks, best.placement)
    assert best.schedule.peak_bytes == peak_bytes(problem, best.schedule.order)
    assert best.placement.size_bytes <= first.placement.size_bytes
