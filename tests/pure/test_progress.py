"""Buffers that are live in part: which run, what it saves, and how blocks with profiles lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.split_graphs import random_network, random_scheme
from toolchain import arena, schedule
from toolchain.boards import HOST
from toolchain.ir import (
    Access,
    ArenaProblem,
    Block,
    Buffer,
    LiveRun,
    Member,
    MemoryProblem,
    Overlap,
    Placement,
)
from toolchain.ir.arena import arena_problem, check_placement
from toolchain.ir.memory import footprint, peak_bytes
from toolchain.ir.progress import Takeover, live_runs
from toolchain.memory.problem import memory_problem
from toolchain.ops.check import check
from toolchain.ops.lowering import lower
from toolchain.partition import CannotSplitError, split

TOUCHES = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 15), st.integers(1, 6)).map(
        lambda t: (t[0], t[1], t[1] + t[2])
    ),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(touches=TOUCHES)
def test_runs_hold_every_byte_from_its_first_touch_to_its_last(
    touches: list[tuple[int, int, int]],
) -> None:
    runs = live_runs(touches)
    for step in range(11):
        live = [
            byte
            for byte in range(22)
            if any(t <= step and a <= byte < b for t, a, b in touches)
            and any(t >= step and a <= byte < b for t, a, b in touches)
        ]
        now = [run for run in runs if run.step <= step]
        run = now[-1] if now else LiveRun(0, 0, 0)
        if live:
            assert (run.bottom_bytes, run.top_bytes) == (live[0], live[-1] + 1)
        else:
            assert not run.size_bytes


RUNS = st.tuples(st.integers(0, 9), st.integers(0, 6)).map(lambda t: LiveRun(0, t[0], t[0] + t[1]))


@settings(max_examples=300, deadline=None)
@given(
    dying=st.tuples(RUNS, RUNS),
    born=st.tuples(RUNS, RUNS),
    lead=st.integers(-20, 20),
    exact=st.booleans(),
)
def test_a_takeover_allows_what_holds_byte_by_byte(
    dying: tuple[LiveRun, LiveRun], born: tuple[LiveRun, LiveRun], lead: int, exact: bool
) -> None:
    takeover = Takeover(dying, born, lead, exact)
    most = 0
    for distance in range(-30, 31):

        def common(of_dying: LiveRun, of_born: LiveRun, up: int = distance) -> int:
            there = {up + byte for byte in range(of_dying.bottom_bytes, of_dying.top_bytes)}
            return len(there & set(range(of_born.bottom_bytes, of_born.top_bytes)))

        borne = distance == lead if exact else distance >= lead
        shared = common(dying[0], born[1])
        others = common(dying[1], born[1]) or common(dying[0], born[0])
        safe = not shared or (borne and not others)
        assert safe == (not any(low < distance < high for low, high in takeover.forbidden()))
        most = max(most, shared if safe else 0)
    assert most == takeover.shared_bytes()


def streamed(rows: int, row_bytes: int = 8) -> MemoryProblem:
    """An input that is read row by row, and an output of as many rows that is written so."""
    whole = rows * row_bytes
    row = [(i * row_bytes, (i + 1) * row_bytes) for i in range(rows)]
    return MemoryProblem(
        ops=tuple(f"row{i}" for i in range(rows)),
        predecessors=((),) * rows,
        uses=((0, 1),) * rows,
        scratch_bytes=(0,) * rows,
        buffers=(
            Buffer("x", whole, (Member("x"),), from_start=True),
            Buffer("y", whole, (Member("y"),), to_end=True),
        ),
        accesses=tuple((Access(0, *run), Access(1, *run)) for run in row),
    )


def test_an_output_rises_over_what_is_left_of_the_input() -> None:
    problem, order = streamed(5), (0, 1, 2, 3, 4)
    assert footprint(problem, order) == (48, 48, 48, 48, 48)
    blocks = arena_problem(problem, order)
    for name in arena.names():
        placement = arena.allocator(name).place(blocks)
        check_placement(blocks, placement)
        assert placement.size_bytes in (48, 80)
    assert arena.allocator("exact").place(blocks).size_bytes == 48


def test_rows_are_written_over_the_rows_that_they_are_made_of() -> None:
    problem, order = streamed(5), (0, 1, 2, 3, 4)
    over = tuple(Overlap(op, 0, 1, lead_bytes=0) for op in order)
    in_place = replace(problem, overlaps=over)
    assert footprint(in_place, order) == (40, 40, 40, 40, 40)
    blocks = arena_problem(in_place, order)
    placement = arena.allocator("exact").place(blocks)
    check_placement(blocks, placement)
    assert placement.size_bytes == 40
    assert placement.offsets == (0, 0)
    for lead, least in ((3, 43), (8, 48), (-40, 40)):
        apart = replace(problem, overlaps=tuple(replace(o, lead_bytes=lead) for o in over))
        near = replace(placement, offsets=(least - 40, 0), size_bytes=least)
        unit = tuple(replace(b, alignment_bytes=1) for b in blocks.blocks)
        claimed = replace(arena_problem(apart, order), blocks=unit)
        check_placement(claimed, near)
        assert arena.allocator("exact").place(claimed).size_bytes == least
        if least > 40:
            with pytest.raises(ValueError, match="overlap"):
                check_placement(claimed, replace(near, offsets=(least - 41, 0)))


def test_the_whole_input_is_there_at_first_and_the_whole_output_at_last() -> None:
    runs = streamed(3).live_runs((2, 1, 0))
    assert runs[0] == ((0, 0, 24), (1, 0, 16), (2, 0, 8), (3, 0, 0))
    assert runs[1] == ((0, 16, 24), (1, 8, 24), (2, 0, 24), (3, 0, 0))


def test_the_checker_sees_runs_that_meet() -> None:
    falling = (LiveRun(0, 0, 8), LiveRun(1, 4, 8))
    rising = (LiveRun(0, 0, 4), LiveRun(1, 0, 8))
    blocks = ArenaProblem((Block("x", 0, 2, 8, 1, falling), Block("y", 0, 2, 8, 1, rising)))
    check_placement(blocks, Placement("test", (4, 0), 12, 0))
    for offsets in ((3, 0), (0, 4), (0, 0)):
        try:
            check_placement(blocks, Placement("test", offsets, 12, 0))
        except ValueError as error:
            assert "overlap" in str(error)
        else:
            raise AssertionError(offsets)


@pytest.mark.slow
def test_split_networks_count_and_place_what_is_live() -> None:
    """Never more than the whole buffers, and every allocator lays it out."""
    rng = np.random.default_rng(11)
    saved = made = 0
    while made < 12:
        graph = check(random_network(rng))
        try:
            fine = check(split(graph, random_scheme(graph, rng)))
        except CannotSplitError:
            continue
        made += 1
        whole = memory_problem(lower(fine, HOST))
        live = memory_problem(lower(fine, HOST), progressive=True)
        order = tuple(range(len(fine.ops)))
        assert all(
            a <= b for a, b in zip(footprint(live, order), footprint(whole, order), strict=True)
        )
        saved += peak_bytes(live, order) < peak_bytes(whole, order)
        blocks = arena_problem(live, order)
        for name in ("greedy-size", "exact"):
            placement = arena.allocator(name).place(blocks, 1.0)
            check_placement(blocks, placement)
            assert placement.lower_bound_bytes <= placement.size_bytes
        for name in schedule.names():
            found = schedule.scheduler(name).schedule(live, 1.0)
            assert found.lower_bound_bytes <= found.peak_bytes == peak_bytes(live, found.order)
    assert saved > 1
