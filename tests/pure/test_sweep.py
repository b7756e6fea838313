"""Thousands of blocks of a split network: placed at their peak, and what cannot be is proved."""

from __future__ import annotations

import numpy as np
import pytest

from toolchain import arena
from toolchain.arena._bounds import load_bound_bytes
from toolchain.arena._separation import Separation
from toolchain.arena._skyline import Verdict
from toolchain.arena._sweep import Sweep
from toolchain.ir import ArenaProblem, Block, LiveRun, Serial, SharedPair
from toolchain.ir.arena import check_placement
from toolchain.search import Work


def streamed(seed: int, layers: int, rows: int) -> ArenaProblem:
    """Windows of a chain of layers, row by row, between an input that falls and an output that
    rises; what stays of a window is moved, anywhere."""
    rng = np.random.default_rng(seed)
    steps, row = layers * rows, 64
    falling = tuple(LiveRun(k * layers, k * row, rows * row) for k in range(rows))
    rising = tuple(LiveRun(k * layers, 0, (k + 1) * row // 2) for k in range(rows))
    whole = rows * row
    blocks = [
        Block("x", 0, steps, whole, 4, falling),
        Block("y", 0, steps, whole // 2, 4, rising),
    ]
    pairs = []
    sizes = [4 * int(n) for n in rng.integers(20, 800, layers)]
    for k in range(rows):
        for layer, size in enumerate(sizes):
            step = k * layers + layer
            window = len(blocks)
            own = Serial(("window", str(layer)), k)
            blocks.append(Block(f"t{window}", step, min(step + 3, steps), size, 4, serial=own))
            if step + 2 < steps:
                end = min(step + 2 + layers, steps)
                own = Serial(("rest", str(layer)), k)
                blocks.append(Block(f"t{window + 1}", step + 2, end, size // 8 * 4, 4, serial=own))
                pairs.append(SharedPair(window, window + 1, step + 2, -size))
            own = Serial(("scratch", str(layer)), k)
            blocks.append(Block(f"s{step}", step, step + 1, 4 * layer, 4, serial=own))
    return ArenaProblem(tuple(blocks), tuple(pairs))


@pytest.mark.slow
def test_a_split_network_is_placed_at_its_peak() -> None:
    problem = streamed(0, layers=5, rows=70)
    assert len(problem.blocks) > 1000
    placement = arena.allocator("exact").place(problem)
    check_placement(problem, placement)
    assert placement.size_bytes <= 1.01 * placement.lower_bound_bytes
    assert placement.lower_bound_bytes >= load_bound_bytes(problem)


@pytest.mark.slow
def test_equal_problems_get_equal_offsets() -> None:
    problem = streamed(1, layers=6, rows=30)
    capacity = int(1.03 * load_bound_bytes(problem))
    found = [Sweep(problem, Separation(problem), Work()).within(capacity) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0].verdict is Verdict.FOUND


def test_a_core_that_does_not_fit_is_named() -> None:
    """The load is 4 at every step, but these five fit only into 5 (Kierstead's kind of trap)."""
    trap = (
        Block("a", 0, 2, 2),
        Block("b", 0, 1, 1),
        Block("c", 1, 3, 1),
        Block("d", 2, 4, 2),
        Block("e", 0, 4, 1),
    )
    problem = ArenaProblem((*trap, Block("later", 9, 10, 3)))
    sweep = Sweep(problem, Separation(problem), Work())
    outcome = sweep.within(4)
    if outcome.verdict is not Verdict.FOUND:
        assert outcome.verdict is Verdict.IMPOSSIBLE
        assert set(outcome.core) <= set(range(6))
    assert sweep.within(5).verdict is Verdict.FOUND
    assert sweep.within(2).verdict is Verdict.IMPOSSIBLE
