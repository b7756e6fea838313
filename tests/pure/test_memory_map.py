"""The map at the top of the generated C: who holds which bytes, and why two may share some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np

from tests.support.graph_builder import Builder
from tests.support.host import plan_of
from tests.support.random_graphs import random_movement_graph
from tests.support.split_graphs import random_network, random_scheme
from tests.support.states import window
from toolchain.codegen.memory_map import (
    OVER,
    PART,
    STATE,
    TURNS,
    VIEW,
    Reason,
    Row,
    memory_map,
)
from toolchain.ir import Graph
from toolchain.memory.plan import Plan
from toolchain.ops.check import check
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.moves import moves
from toolchain.ops.unary.relu import Relu
from toolchain.partition import CannotSplitError, split


def rows_of(plan: Plan) -> dict[str, Row]:
    graph, arena = plan.graph, plan.arena
    order = plan.schedule.order
    steps = [s for s, op in enumerate(order) if moves(graph.ops[op], graph, arena) != ()]
    rows = memory_map(plan, steps)
    assert len({row.what for row in rows}) == len(rows)
    return {row.what: row for row in rows}


def explained(rows: Mapping[str, Row], how: frozenset[str]) -> bool:
    """Whether reasons link every two rows that share bytes while both are needed."""
    group = {name: {name} for name in rows}
    for row in rows.values():
        for reason in row.reasons:
            if reason.how in how:
                joint = group[row.what] | group[reason.other]
                group |= dict.fromkeys(joint, joint)
    pairs = combinations(rows.values(), 2)
    return all(two.what in group[one.what] for one, two in pairs if one.meets(two))


def check_reasons(rows: Mapping[str, Row]) -> None:
    for row in rows.values():
        for reason in row.reasons:
            other = rows[reason.other]
            assert row.meets(other)
            end, other_end = row.offset + row.size_bytes, other.offset + other.size_bytes
            if reason.how == VIEW and not (row.in_blocks or other.in_blocks):
                assert (row.offset, row.size_bytes) == (other.offset, other.size_bytes)
            if reason.how == PART and not other.in_blocks:
                assert other.offset <= row.offset and end <= other_end
            if reason.how == OVER and reason.below is not None and not row.in_blocks:
                assert other.in_blocks or row.offset + reason.below == other.offset
                assert reason.call == row.first


def test_a_kernel_that_reads_each_element_first_works_in_place() -> None:
    build = Builder()
    first = build.op("relu", [build.input((1, 6, 4))], Relu())
    last = build.op("reshape", [build.op("relu", [first], Relu())], Reshape((4, 6)))
    rows = rows_of(plan_of(build.graph([last])))
    assert {name: row.reasons for name, row in rows.items()} == {
        "in0": (),
        "t0": (Reason(OVER, "in0", below=0, call=0),),
        "t1": (Reason(OVER, "t0", below=0, call=1),),
        "t2": (Reason(VIEW, "t1"),),
    }


def test_a_window_and_its_state() -> None:
    rows = rows_of(plan_of(window(8, 2)))
    assert rows["s_next"].reasons == (Reason(STATE, "s"),)
    for part in ("s", "v", "r"):
        assert Reason(PART, "w") in rows[part].reasons
    check_reasons(rows)


def used(plan: Plan, tensor: str) -> tuple[int, int]:
    """The first and the last step at which an operator touches a tensor by its name."""
    step = {number: at for at, number in enumerate(plan.schedule.order)}
    steps = [
        step[number]
        for number, op in enumerate(plan.graph.ops)
        if tensor in (*op.inputs, *op.outputs)
    ]
    return min(steps), max(steps)


def test_views_and_kernels_in_place_explain_all_that_is_shared() -> None:
    rng = np.random.default_rng(5)
    seen: set[str] = set()
    for _ in range(40):
        plan = plan_of(random_movement_graph(rng))
        rows = rows_of(plan)
        check_reasons(rows)
        assert explained(rows, frozenset({VIEW, PART, OVER, TURNS}))
        by_turns = [
            (r.what, why.other) for r in rows.values() for why in r.reasons if why.how == TURNS
        ]
        for born, other in by_turns:
            assert used(plan, other)[1] < used(plan, born)[0]
        seen |= {reason.how for row in rows.values() for reason in row.reasons}
    assert {VIEW, PART, OVER} <= seen


def split_networks(count: int) -> Iterator[Graph]:
    rng = np.random.default_rng(3)
    while count:
        graph = check(random_network(rng))
        try:
            yield check(split(graph, random_scheme(graph, rng)))
        except CannotSplitError:
            continue
        count -= 1


def test_blocks_share_a_row_and_whatever_meets_is_explained() -> None:
    seen: set[str] = set()
    for graph in split_networks(12):
        rows = rows_of(plan_of(graph))
        check_reasons(rows)
        assert explained(rows, frozenset({VIEW, PART, STATE, OVER, TURNS, "strided"}))
        seen |= {reason.how for row in rows.values() for reason in row.reasons}
        assert any(row.in_blocks for row in rows.values())
    assert {OVER, TURNS} <= seen
