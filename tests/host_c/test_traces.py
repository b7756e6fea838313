"""Every claimed overlap against recorded reads and writes: safe, and the closest that is.

Grids for the kernels that slide windows, samples for all others. And what is claimed to be live of
each buffer while a split network runs, against what its operators touch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.support import grids
from tests.support.groups import first_and_last, groups
from tests.support.host import plan_of
from tests.support.overlaps import allowed_overlaps, overlapping_samples
from tests.support.split_graphs import random_network, random_scheme, tiled_convolutions
from tests.support.traces import Run, Times, Trace, record, record_run
from toolchain.boards import HOST
from toolchain.codegen.bounds import call_extents
from toolchain.ir import Graph, Op
from toolchain.ir.arena import arena_problem
from toolchain.ir.merged import merged
from toolchain.memory.plan import Plan
from toolchain.memory.problem import memory_problem
from toolchain.ops import forms, kernel_of
from toolchain.ops.check import check as checked
from toolchain.ops.kernel import SafeOverlap
from toolchain.ops.lowering import lower
from toolchain.partition import CannotSplitError, split

SAMPLES = 40
GROUP = 8
"""Kinds in one program: a compiler's start costs as much as a kind."""
SPLIT = 10
GRIDS = {
    "conv2d": grids.convolutions,
    "depthwise_conv2d": grids.depthwise_convolutions,
    "fully_connected": grids.fully_connected,
    "max_pool2d": lambda: grids.pools("max_pool2d"),
    "average_pool2d": lambda: grids.pools("average_pool2d"),
}

STEPPING = ("conv2d", "depthwise_conv2d", "max_pool2d", "average_pool2d", "l2_pool2d", "resize")
CHOOSING = ("prelu", "select")


def check(graph: Graph, overlaps: Sequence[SafeOverlap], folder: Path) -> None:
    """Raise where a claim is unsafe, or is more than the kernel needs."""
    read = 0
    for op, overlap, trace in zip(
        graph.ops, overlaps, record(graph, overlaps, folder), strict=True
    ):
        assert trace.first_write.all(), f"{op}: not all is written"
        check_extent(op, graph, overlap.input, trace)
        read += bool(trace.last_read.any())
        if overlap.lead_bytes < 0:  # a memmove, which may go anywhere
            reach = range(overlap.lead_bytes, len(trace.first_write))
            assert all(trace.bears(distance) for distance in reach), f"{op}: {overlap}"
        elif overlap.exact:
            assert trace.bears(overlap.lead_bytes), f"{op}: {overlap}"
        else:
            assert overlap.lead_bytes == trace.lead_bytes(), f"{op}: {overlap}"
    assert read > len(overlaps) // 2  # a dilated window may step over a small image


def check_extent(op: Op, graph: Graph, index: int, trace: Trace) -> None:
    """Raise where the kernel reads beyond what is claimed of its input; or less than that, but for
    kinds that may step over the last pixels, or that read an operand only if they choose it."""
    lowering = kernel_of(op, graph, HOST)
    extent = call_extents(op, graph, lowering, {}).inputs[index]
    read = np.flatnonzero(trace.last_read)
    if len(read):
        assert extent.begin <= read[0] and read[-1] < extent.last, f"{op}: {extent}"
    if not op.kind.startswith((*STEPPING, *CHOOSING)):
        assert len(read) and (read[0], read[-1] + 1) == (extent.begin, extent.last), f"{op}"


@pytest.mark.parametrize("kind", sorted(GRIDS))
def test_claims_hold_on_the_grid(kind: str, tmp_path: Path) -> None:
    cases = [(g, o) for g in GRIDS[kind]() for o in allowed_overlaps(g.ops[0], g, HOST)]
    check(merged([g for g, _ in cases]), [o for _, o in cases], tmp_path)


@pytest.mark.parametrize("kinds", groups(forms(), GROUP), ids=first_and_last)
def test_claims_hold_on_samples(kinds: Sequence[str], tmp_path: Path) -> None:
    graph, overlaps = overlapping_samples(kinds, HOST, SAMPLES)
    if overlaps:  # all kinds of a group may be copies, which allow any
        check(graph, overlaps, tmp_path)


@pytest.fixture(scope="module")
def split_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Run, Times]:
    """Split networks side by side, nothing over anything; and the step of each call."""
    rng = np.random.default_rng(3)
    graphs: list[Graph] = []
    while len(graphs) < SPLIT:
        graph = checked(random_network(rng))
        try:
            graphs.append(checked(split(graph, random_scheme(graph, rng))))
        except CannotSplitError:
            continue
    graph = merged(graphs)
    plan = plan_of(graph, spread=True)
    run, calls = record_run(plan, tmp_path_factory.mktemp("split"))
    step_of = {op: step for step, op in enumerate(plan.schedule.order)}
    return plan, run, np.array([step_of[op] for op in calls])


def test_nothing_is_touched_beyond_what_counts_as_live(
    split_run: tuple[Plan, Run, Times],
) -> None:
    plan, run, steps = split_run
    problem, order = memory_problem(lower(plan.graph, HOST), progressive=True), plan.schedule.order
    partial = 0
    for buffer, runs in zip(problem.buffers, problem.live_runs(order), strict=True):
        begin = plan.arena.offsets[buffer.members[0].tensor] - buffer.members[0].offset_bytes
        partial += any(0 < r.size_bytes < buffer.size_bytes for r in runs)
        for times in (run.first_write, run.last_read):
            touched = times[begin : begin + buffer.size_bytes]
            at = np.flatnonzero(touched)
            when = steps[np.searchsorted(run.begun, touched[at], side="right") - 1]
            live = np.searchsorted([r.step for r in runs], when, side="right") - 1
            assert (live >= 0).all(), buffer.name
            bottoms = np.array([r.bottom_bytes for r in runs])[live]
            tops = np.array([r.top_bytes for r in runs])[live]
            assert ((bottoms <= at) & (at < tops)).all(), buffer.name
    assert partial > SPLIT


def test_bytes_of_parts_are_written_over_only_when_all_have_read_them(
    split_run: tuple[Plan, Run, Times],
) -> None:
    """At the closest distances that are allowed at the step, whatever the other steps allow."""
    plan, run, steps = split_run
    problem, order = memory_problem(lower(plan.graph, HOST), progressive=True), plan.schedule.order
    blocks = arena_problem(problem, order)
    call_of = {step: call for call, step in enumerate(steps.tolist())}
    ends = np.append(run.begun, run.last_read.max() + 1)

    def times(buffer: int) -> tuple[Times, Times]:
        first = problem.buffers[buffer].members[0]
        begin = plan.arena.offsets[first.tensor] - first.offset_bytes
        own = slice(begin, begin + problem.buffers[buffer].size_bytes)
        return run.first_write[own], run.last_read[own]

    in_part = shared = 0
    for pair in blocks.shared:
        if blocks.successive(pair):
            continue
        in_part += 1
        takeover, call = blocks.takeover(pair), call_of[pair.step]
        (made, read), (first, last) = times(pair.dying), times(pair.born)
        waiting = (first > 0) & (first < ends[call]) & (ends[call] < last)
        held = (made < ends[call]) & (ends[call] < read)
        written = np.where((ends[call] < first) & (first < ends[call + 1]), first, 0)
        forbidden = takeover.forbidden()
        for distance in {end for interval in forbidden for end in interval}:
            if any(low < distance < high for low, high in forbidden):
                continue
            born = np.arange(max(distance, 0), min(len(written), distance + len(read)))
            over = written[born] > 0
            lost = over & (made[born - distance] < written[born])
            lost &= written[born] < read[born - distance]
            lost |= waiting[born] & held[born - distance]
            shared += int(np.count_nonzero(over & (read[born - distance] > 0)))
            assert not lost.any(), (pair, distance)
    assert in_part > SPLIT and shared > 20 * SPLIT


def test_between_lines_that_lie_apart_nothing_is_written(tmp_path: Path) -> None:
    """Tiles in an image: the gaps are other tiles' lines. Whole words may be read across them, from
    the first line to the end of the last."""
    rng = np.random.default_rng(9)
    kinds = ("convolutions", "pointwise_convolutions", "depthwise_convolutions")
    tiled = [fine for kind in kinds for _, fine in tiled_convolutions(kind, 25, rng)]
    plan = plan_of(checked(merged(tiled)), spread=True)
    run, calls = record_run(plan, tmp_path)
    graph, arena = plan.graph, plan.arena
    read, written = (np.zeros((len(calls), len(run.first_write)), bool) for _ in range(2))
    apart = 0
    for call, number in enumerate(calls):
        op = graph.ops[number]
        lowering = kernel_of(op, graph, HOST)
        found = call_extents(op, graph, lowering, arena.pitches)
        for index, extent in found.inputs.items():
            start = arena.offsets[op.inputs[index]]
            read[call, start + extent.begin : start + extent.last] = True
        for index, extent in found.outputs.items():
            apart += extent.lines > 1 and extent.pitch > extent.end
            for line in range(extent.lines):
                start = arena.offsets[op.outputs[index]] + line * extent.pitch
                written[call, start + extent.begin : start + extent.end] = True
        if found.scratch:
            start = arena.scratch_offsets[op.name]
            read[call, start : start + found.scratch] = True
            written[call, start : start + found.scratch] = True
    for times, claimed in ((run.last_read, read), (run.first_write, written)):
        at = np.flatnonzero(times)
        call_of = np.searchsorted(run.begun, times[at], side="right") - 1
        assert len(at) and claimed[call_of, at].all()
    assert apart > len(calls) // 2
