"""Blocks so many that no two can be compared: placed within the time, and checked."""

from __future__ import annotations

import random
import time
from pathlib import Path

import numpy as np
import pytest

from toolchain import arena
from toolchain.arena._bounds import load_bound_bytes
from toolchain.arena._many import heap_offsets, load_bound, orders
from toolchain.cli import run
from toolchain.ir import ArenaProblem, Placement
from toolchain.ir.arena import Block, check_placement
from toolchain.search import Work

HOSTILE = Path(__file__).parents[2].parent / "shared" / "hostile"


def _problem(count: int, steps: int, longest: int, seed: int, *units: int) -> ArenaProblem:
    rng = random.Random(seed)
    blocks = []
    for index in range(count):
        start = rng.randrange(steps)
        end = start + rng.randrange(longest)
        size, unit = rng.choice([0, 1, 100, rng.randint(1, 1 << 20)]), rng.choice(units or (1,))
        blocks.append(Block(f"b{index}", start, end, size, unit))
    return ArenaProblem(tuple(blocks))


def _overlapping(problem: ArenaProblem, offsets: tuple[int, ...]) -> bool:
    """By comparing each with each."""
    live = [i for i, b in enumerate(problem.blocks) if b.start < b.end and b.size_bytes]
    ends = np.array([problem.blocks[i].end for i in live])
    starts = np.array([problem.blocks[i].start for i in live])
    low = np.array([offsets[i] for i in live])
    high = low + np.array([problem.blocks[i].size_bytes for i in live])
    clash = (starts[:, None] < ends) & (starts < ends[:, None])
    clash &= (low[:, None] < high) & (low < high[:, None])
    return bool((clash.sum(axis=1) > 1).any())


@pytest.mark.parametrize("seed", range(12))
def test_heaps_are_valid_placements(seed: int) -> None:
    problem = _problem(1500, 200, 60 if seed % 2 else 3, seed, *((1, 16, 64)[: seed % 3 + 1]))
    for order in orders(problem):
        offsets = heap_offsets(problem, order, Work())
        assert not _overlapping(problem, offsets)
        aligned = zip(offsets, problem.blocks, strict=True)
        assert all(at % block.alignment_bytes == 0 for at, block in aligned)


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_the_load(seed: int) -> None:
    """Never above the slow one, which knows more of what ends early; equal for bytes."""
    problem = _problem(300, 50, 20, seed, *((1,) if seed % 2 else (16, 64)))
    fast, slow = load_bound(problem), load_bound_bytes(problem)
    assert fast <= slow
    if seed % 2:
        assert fast == slow


def test_loads_beyond_64_bits() -> None:
    blocks = tuple(Block(f"b{i}", 0, 1, 1 << 62) for i in range(8))
    assert load_bound(ArenaProblem(blocks)) == 8 << 62


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_the_check_of_many_finds_any_overlap(seed: int) -> None:
    """One block is moved: it fails where comparing each with each does, and passes elsewhere."""
    rng = random.Random(seed)
    problem = _problem(2500, 300, 40, seed)
    offsets = list(heap_offsets(problem, next(orders(problem)), Work()))
    top = 1 << 40
    check_placement(problem, Placement("test", tuple(offsets), top, 0))
    found = 0
    for _ in range(30):
        moved = list(offsets)
        index = rng.randrange(len(moved))
        moved[index] = rng.choice(offsets) + rng.choice([-1, 0, 1])
        if moved[index] < 0:
            continue
        wrong = _overlapping(problem, tuple(moved))
        found += wrong
        if wrong:
            with pytest.raises(ValueError, match="overlap"):
                check_placement(problem, Placement("test", tuple(moved), top, 0))
        else:
            check_placement(problem, Placement("test", tuple(moved), top, 0))
    assert found > 3


@pytest.mark.slow
@pytest.mark.parametrize("name", arena.names())
@pytest.mark.parametrize(
    ("count", "steps", "longest"), [(4000, 1, 2), (1000, 3, 9), (30_000, 30_000, 30_000)]
)
def test_the_time_limit_holds(name: str, count: int, steps: int, longest: int) -> None:
    """Of 4,000 blocks of one lifetime eight million pairs were made, in minutes."""
    problem = _problem(count, steps, longest, 1, 1, 64)
    begin = time.process_time()
    found = arena.allocator(name).place(problem, 1.0)
    assert time.process_time() - begin < 1.5
    check_placement(problem, found)
    assert 0 < found.lower_bound_bytes <= found.size_bytes


@pytest.mark.skipif(not HOSTILE.is_dir(), reason=f"no files at {HOSTILE}")
def test_buffers_of_one_lifetime_are_proved_at_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    begin = time.process_time()
    offsets = str(tmp_path / "offsets.csv")
    assert run(["arena", str(HOSTILE / "same4000.csv"), "--time-limit", "1", "-o", offsets]) == 0
    assert time.process_time() - begin < 4
    assert "proved smallest" in capfd.readouterr().out


@pytest.mark.slow
def test_a_hundred_thousand_rows_within_the_limit(tmp_path: Path) -> None:
    rng = random.Random(3)
    rows = (
        f"b{i},{(start := rng.randrange(1000))},{start + rng.randint(1, 900)},{rng.randint(1, 999)}"
        for i in range(100_000)
    )
    file = tmp_path / "rows.csv"
    file.write_text("id,lower,upper,size\n" + "\n".join(rows))
    begin = time.process_time()
    assert run(["arena", str(file), "--time-limit", "2", "-o", str(tmp_path / "o.csv")]) == 0
    assert time.process_time() - begin < 6, "with checking and writing"
    assert run(["arena", str(tmp_path / "o.csv"), "--check"]) == 0
