"""Off-chip traffic: nothing where the peak fits, Belady's choice where it does not."""

from __future__ import annotations

import itertools

import pytest

from benchmarks.random_graphs import FAMILIES
from tests.support.orders import hard_problem
from toolchain.ir import Buffer, Member, MemoryProblem
from toolchain.memory.off_chip import off_chip_traffic
from toolchain.schedule import scheduler


def test_an_order_whose_peak_fits_causes_none() -> None:
    for seed in range(200):
        problem = hard_problem(seed)
        found = scheduler("rpo").schedule(problem)
        assert off_chip_traffic(problem, found.order, found.peak_bytes).total_bytes == 0


@pytest.mark.slow
def test_less_memory_never_means_less_traffic_on_equal_sizes() -> None:
    problem = FAMILIES["randwire"](150, 3)
    order = scheduler("auto").schedule(problem).order
    traffic = [off_chip_traffic(problem, order, room).total_bytes for room in range(96, 600, 16)]
    assert traffic == sorted(traffic, reverse=True)
    assert traffic[0] > 0 == traffic[-1]


def skip_connection() -> MemoryProblem:
    """x -> a -> b -> c -> add(x, c): x is not needed for three steps."""
    names = ("x", "a", "b", "c", "y")
    return MemoryProblem(
        ops=("a", "b", "c", "add"),
        predecessors=((), (0,), (1,), (2,)),
        uses=((0, 1), (1, 2), (2, 3), (0, 3, 4)),
        scratch_bytes=(0, 0, 0, 0),
        buffers=tuple(
            Buffer(n, 10, (Member(n),), from_start=n == "x", to_end=n == "y") for n in names
        ),
    )


def test_the_furthest_next_use_leaves_and_comes_back() -> None:
    traffic = off_chip_traffic(skip_connection(), (0, 1, 2, 3), 20)
    assert (traffic.read_bytes, traffic.written_bytes) == (10, 10)


def test_what_does_not_fit_beside_its_own_operator_is_streamed_where_that_is_cheapest() -> None:
    """Three inputs fill the chip: the output is written straight out, nothing is read again."""
    assert off_chip_traffic(skip_connection(), (0, 1, 2, 3), 30).total_bytes == 0
    wide = MemoryProblem(
        ops=("a", "b", "c", "d"),
        predecessors=((), (), (), (0, 1, 2)),
        uses=((0,), (1,), (2,), (0, 1, 2, 3)),
        scratch_bytes=(0, 0, 0, 0),
        buffers=tuple(Buffer(n, 10, (Member(n),), to_end=n == "y") for n in ("a", "b", "c", "y")),
    )
    for order in itertools.permutations(range(3)):
        traffic = off_chip_traffic(wide, (*order, 3), 30)
        assert traffic.total_bytes == 10


def test_an_invalid_order_is_refused() -> None:
    with pytest.raises(ValueError, match="runs before its predecessor"):
        off_chip_traffic(skip_connection(), (1, 0, 2, 3), 20)
