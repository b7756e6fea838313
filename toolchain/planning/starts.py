"""The unsplit plans from which finished ones are made, each with other forms of kernels.

`planner.plan_graph` finishes them in turn and tells what became of each; the quickest is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from toolchain.boards import Board
from toolchain.cost import CostModel
from toolchain.errors import DoesNotFitError
from toolchain.memory.plan import Plan
from toolchain.ops.lowering import NO_FORMS, Forms
from toolchain.planning.flash import check_flash, most_arena_bytes, spare_bytes
from toolchain.planning.forms import apart_bytes, placed, quick_forms
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.report.latency import predict_latency

_CLOSE = 1.05
"""Splits that cost no more are not compared with other forms."""
_SEARCHES = 3
"""The work of a search that is asked for is divided by so many."""
_LESS = (0, 256, 1024)
"""Bytes that placing may take beyond what is live while an operator runs; tried in turn."""
_ORDERS = 3
"""How often other orders are tried where the peak is low enough, and the arena is not."""
_TRIES = 24
"""Operators whose forms are placed in turn, to see for which the arena need not grow."""


@dataclass(frozen=True)
class Start:
    """An unsplit plan, and the options by which to finish it.

    `ideal`: its predicted cost as it is; finished, it costs no less. `most_bytes`: the arena of the
    finished plan may be no larger.
    """

    plan: Plan
    options: PlanOptions
    ideal: float
    most_bytes: float


class Starts:
    """The starts that may give the quickest plan, and the quickest that was made of them: `best`.

    Forms of kernels are first chosen within the flash alone (`planning.forms`), and placed. If the
    arena is then larger than it may be, the network is split until it is not, with the same forms
    and with others of less scratch. The last start is `whole`, the unsplit plan without any, which
    is finished with those forms for which it leaves room. Raises DoesNotFitError where the flash
    that is asked for does not hold `whole`.
    """

    def __init__(self, whole: Plan, target: Board, options: PlanOptions, costs: CostModel) -> None:
        check_flash(whole, options)
        self._costs = costs
        self._last = Start(whole, options, 0.0, math.inf)
        self._others = _others(whole, target, options, costs)
        self._now: Start | None = None
        self._made: Plan | None = None
        self._least = math.inf
        self._close = False

    @property
    def best(self) -> Plan:
        assert self._made is not None, "the last start is finished, or its failure raised"
        return self._made

    def next(self) -> Start | None:
        """The next start; None where no other one can give a quicker plan."""
        if self._close or self._now is self._last:
            return None
        self._now = next(self._others, self._last)
        if self._least <= self._now.ideal:
            self._now = self._last
        return self._now

    def learn(self, plan: Plan) -> None:
        """Learn the plan that was made of the last start of `next`."""
        assert self._now is not None
        total = predict_latency(plan, self._costs).total
        if plan.arena.size_bytes <= self._now.most_bytes and total < self._least:
            self._made, self._least = plan, total
        self._close = self._least <= _CLOSE * self._now.ideal

    def fail(self, error: DoesNotFitError) -> None:
        """Note that the last start cannot be finished. Raises the error where no other one was."""
        if self._now is self._last and self._made is None:
            raise error


def _others(whole: Plan, target: Board, options: PlanOptions, costs: CostModel) -> Iterator[Start]:
    """The starts but the last."""
    if options.optimise is Optimise.SIZE or target.is_host:
        return
    most_bytes, less = most_arena_bytes(whole, target, options), _searching_less(options)
    for quick in _quick(whole, target, options, costs, most_bytes):
        yield Start(quick, less, predict_latency(quick, costs).total, most_bytes)


def _quick(
    whole: Plan, target: Board, options: PlanOptions, costs: CostModel, most_bytes: int
) -> Iterator[Plan]:
    """The unsplit plan with those forms that the flash holds; with those whose scratch takes at
    most half of the arena; and with those for which the arena need not be split.
    """
    spare = spare_bytes(whole, target, options)
    live = [0] * len(whole.graph.ops)
    for index, live_bytes in zip(whole.schedule.order, whole.step_bytes, strict=True):
        live[index] = live_bytes - apart_bytes(whole.lowered.kernels[index])

    def forms(limits: Iterable[int]) -> Forms:
        return quick_forms(whole.lowered, costs, spare, tuple(limits))

    before = NO_FORMS
    for part in (1, 2):
        chosen = forms(most_bytes // part for _ in live)
        if chosen != before:
            yield placed(whole, chosen, target, options)
        before = chosen
    chosen, *smaller = (forms(most_bytes - less - size for size in live) for less in _LESS)
    quick, kept, orders = placed(whole, chosen, target, options), NO_FORMS, _ORDERS
    names = _slowest(whole, chosen, costs)[:_TRIES] if quick.arena.size_bytes > most_bytes else []
    for name in names:
        for title in dict.fromkeys(each[name] for each in (chosen, *smaller) if name in each):
            trial = placed(whole, {**kept, name: title}, target, options)
            if trial.schedule.peak_bytes <= most_bytes < trial.arena.size_bytes and orders:
                orders -= 1
                trial = placed(whole, {**kept, name: title}, target, options, others=True)
            if trial.arena.size_bytes <= most_bytes:
                quick, kept = trial, {**kept, name: title}
                break
    if chosen and quick.arena.size_bytes <= most_bytes:
        yield quick


def _slowest(whole: Plan, names: Iterable[str], costs: CostModel) -> list[str]:
    """Operators by the time that they take, the slowest first."""
    counts = {
        op.name: costs.cost(whole.lowered, index).count for index, op in enumerate(whole.graph.ops)
    }
    return sorted(names, key=lambda name: -counts[name])


def _searching_less(options: PlanOptions) -> PlanOptions:
    """The options for one of several searches for splits."""
    if not options.splits:
        return options
    return replace(options, split_seconds=options.search_seconds / _SEARCHES)
