"""Whatever is asked for, plans are of one front: more of one thing never costs more of another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks.zoo_mobile import mobilenet_v2
from tests.support import random_networks, split_graphs
from tests.support.long import mostly_long
from toolchain import passes
from toolchain.boards import board
from toolchain.errors import DoesNotFitError
from toolchain.frontends import load_model
from toolchain.ir import Graph
from toolchain.ir.about import NOTHING_KNOWN
from toolchain.ir.removed import NOTHING_REMOVED
from toolchain.memory.firmware_size import estimated_need, ram_bytes
from toolchain.memory.plan import NEARLY_FREE, Plan
from toolchain.ops.check import check
from toolchain.planner import candidates
from toolchain.planning.choices import Choices
from toolchain.planning.front import Candidates
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.report.front import FrontRow
from toolchain.report.latency import predict_latency

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
PLAIN, COPYING = ("netduinoplus2", "nucleo-l4r5zi", "mps3-an547"), ("f746g-disco", "nucleo-h743zi")
"""Boards whose constants stay in flash, and such as copy some to RAM that is read sooner."""
QUICK = {(1, PLAIN[0]), (0, PLAIN[1]), (2, PLAIN[1]), (0, PLAIN[2]), (1, PLAIN[2]), (3, PLAIN[2])}
"""Each network, and each board."""
SLOWDOWNS = (0.0, 0.005, 0.01, 0.05, 0.2, 2.0)
POINTS = 10
OPTIONS = PlanOptions(split_seconds=0.05)


@dataclass(frozen=True)
class Asked:
    """All plans of one graph on one board that the requests below give."""

    found: Candidates

    @cached_property
    def default(self) -> Plan:
        return self.found.asked()

    @cached_property
    def by_slowdown(self) -> list[Plan]:
        return [self.plan(max_slowdown=share) for share in SLOWDOWNS]

    @cached_property
    def least_bytes(self) -> int:
        """Of RAM."""
        try:
            self.plan(ram_bytes=1)
        except DoesNotFitError as error:
            return error.overflows[0].need_bytes
        raise AssertionError("one byte is enough")

    @cached_property
    def by_ram(self) -> list[Plan]:
        most = 1.1 * max(ram_bytes(plan) for plan in (self.by_slowdown[0], self.default))
        budgets = np.linspace(self.least_bytes, most, POINTS).astype(int)
        return [self.plan(ram_bytes=int(budget)) for budget in budgets]

    @cached_property
    def by_flash(self) -> list[Plan | None]:
        """With as little flash as can be, and with more; None where the blocks that the RAM needs
        do not fit it.
        """
        whole = estimated_need(self.found.whole).flash_bytes
        spent = estimated_need(self.by_slowdown[0]).flash_bytes
        most = int(1.1 * max(whole, spent))
        return [self.in_flash(int(budget)) for budget in np.linspace(whole, most, 5)]

    def in_flash(self, budget: int) -> Plan | None:
        """The plan in the RAM of the quickest one."""
        try:
            return self.plan(flash_bytes=budget, ram_bytes=ram_bytes(self.by_slowdown[0]))
        except DoesNotFitError as error:
            assert "a larger --flash" in error.remedies
            return None

    @cached_property
    def rows(self) -> tuple[FrontRow, ...]:
        return Choices(self.found, NOTHING_REMOVED, NOTHING_KNOWN).rows()

    def plan(self, **given: object) -> Plan:
        options = replace(self.found.options, **given)  # type: ignore[arg-type]
        return self.found.asking(options).asked()

    def total(self, plan: Plan) -> int:
        return predict_latency(plan, self.found.costs).total

    def every(self) -> Iterator[Plan]:
        yield self.default
        yield from self.by_slowdown
        yield from self.by_ram
        yield from filter(None, self.by_flash)


def random_graph(seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    made = random_networks if seed % 2 else split_graphs
    return check(made.random_network(rng))


def asked(graph: Graph, name: str, **given: object) -> Asked:
    options = replace(OPTIONS, **given)  # type: ignore[arg-type]
    return Asked(candidates(graph, board(name), options))


def hold(of: Asked) -> None:
    """All that is promised of the plans of one graph on one board."""
    base = of.total(of.by_slowdown[0])
    assert all(of.total(plan) >= base for plan in of.every() if not plan.copied.size_bytes)
    for share, plan in zip(SLOWDOWNS, of.by_slowdown, strict=True):
        assert plan.slowdown == of.total(plan) / base - 1 <= share
    arenas = [plan.arena.size_bytes for plan in of.by_slowdown]
    assert arenas == sorted(arenas, reverse=True)
    assert of.default.slowdown <= NEARLY_FREE
    assert of.by_slowdown[2].arena.size_bytes <= of.default.arena.size_bytes
    plans: Sequence[Plan | None]
    for plans in (of.by_ram, of.by_flash):
        totals = [math.inf if plan is None else of.total(plan) for plan in plans]
        assert totals == sorted(totals, reverse=True)
        assert totals[-1] < math.inf
    assert of.total(of.by_ram[-1]) == base
    for plan in (of.default, *of.by_slowdown):
        same = of.plan(ram_bytes=ram_bytes(plan))
        assert ram_bytes(same) <= ram_bytes(plan) and of.total(same) <= of.total(plan)
        if not plan.copied.size_bytes:
            flash = max(estimated_need(one).flash_bytes for one in (plan, of.found.whole))
            same = of.plan(ram_bytes=ram_bytes(plan), flash_bytes=flash)
            assert of.total(same) <= of.total(plan)


def figures(of: Asked, plan: Plan) -> tuple[int, ...]:
    """RAM without copies, which take what nothing else needs; all RAM; flash; time."""
    need = estimated_need(plan)
    without = need.ram_bytes - plan.copied.size_bytes
    return without, need.ram_bytes, need.flash_bytes, of.total(plan)


def row_figures(row: FrontRow) -> tuple[int, ...]:
    without = row.ram_bytes - row.copied_bytes
    return without, row.ram_bytes, row.flash_bytes, row.latency.total


def none_is_dominated(found: list[tuple[int, ...]]) -> None:
    for one in found:
        for other in found:
            better = all(a <= b for a, b in zip(other, one, strict=True))
            assert not better or other == one, (other, one)


@pytest.mark.slow
@pytest.mark.parametrize("case", mostly_long(product(range(4), PLAIN), QUICK), ids=str)
def test_plans_of_random_networks_are_of_one_front(case: tuple[int, str]) -> None:
    seed, name = case
    of = asked(random_graph(seed), name)
    hold(of)
    none_is_dominated([figures(of, plan) for plan in of.every()])
    base = of.rows[0].latency.total
    none_is_dominated([row_figures(row) for row in of.rows])
    whole = estimated_need(of.found.whole).flash_bytes  # the least that --flash takes
    for row in of.rows:
        assert row.slowdown == row.latency.total / base - 1
        same = of.plan(ram_bytes=row.ram_bytes, flash_bytes=max(row.flash_bytes, whole))
        assert of.total(same) <= row.latency.total
        assert of.total(of.plan(ram_bytes=row.ram_bytes)) <= row.latency.total


@pytest.mark.slow
def test_functions_that_nothing_calls_any_more_take_no_flash() -> None:
    """The quickest plan of this network has less code than that of the lean kernels."""
    graph = check(mobilenet_v2("small", 0.35, 64, 4))
    of = asked(graph, "nucleo-l4r5zi", nearly_free=False, copy_constants=False)
    quickest = of.found.finished(of.found.base)
    whole, base = (estimated_need(plan).flash_bytes for plan in (of.found.whole, quickest))
    assert base < whole
    tight = of.found.asking(replace(of.found.options, flash_bytes=whole))
    assert tight.base.count == of.found.base.count


@pytest.mark.slow
def test_blocks_may_need_more_flash_than_there_is() -> None:
    of = asked(random_graph(42), "mps3-an547")
    hold(of)
    assert None in of.by_flash


@pytest.mark.slow
@pytest.mark.parametrize("name", COPYING)
def test_copies_of_constants_count(name: str) -> None:
    """Which take RAM that a larger arena would: the quickest plan is so with its copies."""
    copied = 0
    for seed in (0, 2):
        of = asked(random_graph(seed), name)
        hold(of)
        copied += any(plan.copied.size_bytes for plan in of.every())
    assert copied or name != COPYING[0]


@pytest.mark.slow
@pytest.mark.parametrize("optimise", mostly_long([Optimise.SIZE, Optimise.SPEED], [Optimise.SIZE]))
def test_other_wishes_are_as_coherent(optimise: Optimise) -> None:
    hold(asked(random_graph(1), "nucleo-l4r5zi", optimise=optimise))


@pytest.mark.long
def test_what_is_asked_for_changes_no_way() -> None:
    """Of a network whose order is changed so that its tensors lie closer."""
    graph = random_graph(373)
    of = asked(graph, PLAIN[0])
    assert of.found.whole.schedule.order != tuple(range(len(graph.ops)))
    for given in ({"max_slowdown": 0.05}, {"ram_bytes": ram_bytes(of.default)}):
        alone = asked(graph, PLAIN[0], **given)
        assert alone.found.whole.schedule.order == of.found.whole.schedule.order
        assert alone.found.whole.arena == of.found.whole.arena
        assert figures(of, alone.default) == figures(of, of.plan(**given))


@pytest.mark.slow
def test_a_larger_arena_may_gain_less_from_copies() -> None:
    hold(asked(random_graph(65), "nucleo-f446re", optimise=Optimise.SPEED))


@pytest.mark.slow
def test_a_model_and_the_commands_that_take_its_rows() -> None:
    of = asked(passes.prepare(load_model(DIGITS)).graph, "nucleo-f446re")
    hold(of)
    assert len(of.rows) > 2
    for row in of.rows:
        found = Choices(
            of.found.asking(replace(OPTIONS, choice=row.choice)), NOTHING_REMOVED, NOTHING_KNOWN
        ).asked
        assert figures(of, found) == row_figures(row)
        assert found.slowdown == row.slowdown
