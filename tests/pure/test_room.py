"""Roomier kernels where the arena has room: nothing lives under their scratch, nothing moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.host import spend_room
from tests.support.random_networks import random_network
from toolchain.boards import board
from toolchain.memory.plan import Plan
from toolchain.ops.lowering import lower
from toolchain.planner import plan_graph, plan_model
from toolchain.planning.options import PlanOptions

M4 = board("netduinoplus2")
DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"


def _check(plan: Plan) -> int:
    """Scratch that grew lies in the arena beside what is live then. Returns how many did."""
    lean, grown = lower(plan.graph, M4.core).kernels, 0
    for step, index in enumerate(plan.schedule.order):
        kernel, name = plan.lowered.kernels[index], plan.graph.ops[index].name
        if kernel.scratch_bytes == lean[index].scratch_bytes:
            continue
        grown += 1
        used = np.zeros(plan.arena.size_bytes, np.bool_)
        for tensor, (start, end) in plan.arena.lifetimes.items():
            if start <= step < end:
                for first, last in _still_read(plan, tensor, step):
                    used[first:last] = True
        at = plan.arena.scratch_offsets[name]
        assert at % 4 == 0 and at + kernel.scratch_bytes <= plan.arena.size_bytes
        assert not used[at : at + kernel.scratch_bytes].any(), name
    return grown


def _still_read(plan: Plan, tensor: str, step: int) -> Iterator[tuple[int, int]]:
    """Places of what is read of it from here on: of one that blocks read row by row, the rows of
    the slices that are its views.
    """
    graph, offsets = plan.graph, plan.arena.offsets
    readers, left = set(graph.consumers[tensor]), plan.schedule.order[step:]
    later = [index for index in left if index in readers]
    names = [tensor]
    if tensor not in graph.outputs and readers:
        names = [graph.ops[index].outputs[0] for index in later]
        if any(graph.ops[i].kind != "slice" or not plan.operators[i].is_view for i in later):
            names = [tensor]
    for name in names:
        yield offsets[name], offsets[name] + graph.tensors[name].size_bytes


@pytest.mark.slow
def test_room_is_spent_beside_what_is_live() -> None:
    plan = plan_model(DIGITS, board=M4.name)
    assert _check(plan) > 0
    rng = np.random.default_rng(5)
    assert sum(_check(plan_graph(random_network(rng), M4)) for _ in range(8)) > 0


def test_an_arena_without_room_stays_as_it_is() -> None:
    plan = plan_model(DIGITS, board=M4.name)
    lean = lower(plan.graph, M4.core)
    index = next(i for i, kernel in enumerate(lean.kernels) if kernel.more_scratch())
    name = plan.graph.ops[index].name
    end = plan.arena.scratch_offsets[name] + lean.kernels[index].scratch_bytes
    tight = replace(plan, lowered=lean, arena=replace(plan.arena, size_bytes=end))
    chosen = spend_room(tight)
    assert chosen.lowered.kernels[index].scratch_bytes == lean.kernels[index].scratch_bytes
    assert chosen.arena.scratch_offsets[name] == plan.arena.scratch_offsets[name]


def test_windows_are_gathered_before_the_output_runs_over_them() -> None:
    """Three at once end elsewhere than two: only where the output's lead allows it."""
    plan = plan_model(DIGITS, board=M4.name)
    lean = lower(plan.graph, M4.core)
    index = next(i for i, kernel in enumerate(lean.kernels) if kernel.more_scratch())
    op = plan.graph.ops[index]
    lead = plan.lowered.kernels[index].overlaps[0].lead_bytes
    offsets = dict(plan.arena.offsets)
    offsets[op.inputs[0]] = offsets[op.outputs[0]] + lead - 4
    close = replace(plan, lowered=lean, arena=replace(plan.arena, offsets=offsets))
    taken = spend_room(close).lowered.kernels[index]
    assert taken.title == lean.kernels[index].title


def test_blocks_of_a_split_network_have_room_too() -> None:
    options = PlanOptions(max_slowdown=0.1)
    plan = plan_model(DIGITS, board=M4.name, options=options)
    whole = plan_model(DIGITS, board=M4.name)
    assert plan.arena.size_bytes < whole.arena.size_bytes
    _check(plan)
