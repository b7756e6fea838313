"""Advice on a network: for each change, the finished plan of the changed graph beside that of the
network as it is.

Both are planned on one board with the same costs: every operator whole, and with the limits of
`--plan fast`, so that the difference is that of the change. `thimble plan` of the changed model,
which also searches for splits, may do better than either.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

from toolchain.advise import changes as room
from toolchain.advise.change import Change, Proposal
from toolchain.boards import Board
from toolchain.boards import board as find_board
from toolchain.cost import CostModel
from toolchain.deployment.measurements import cost_model
from toolchain.errors import DoesNotFitError, InputError, UnsupportedError, did_you_mean
from toolchain.ir import Graph
from toolchain.memory.firmware_size import check_fit, estimated_need
from toolchain.memory.plan import Plan
from toolchain.planner import plan_graph, read_network
from toolchain.planning.options import PlanOptions
from toolchain.progress import Report, silent
from toolchain.report.blocks import constant_bytes
from toolchain.report.latency import predict_latency

PLANS = 40
"""Changed graphs that are planned, at most."""
LEAST_SAVED = 0.02
"""A change is worth telling that saves so much of the time, the RAM or the flash."""
_LAYERS = 5


@dataclass(frozen=True)
class Figures:
    """A plan in numbers. `count`: of one inference, in `unit`; `milliseconds` are None where the
    unit is not cycles."""

    arena_bytes: int
    ram_bytes: int
    flash_bytes: int
    count: int
    unit: str
    milliseconds: float | None
    fits: bool


@dataclass(frozen=True)
class Layer:
    """An operator, its share of the whole, and its amount: bytes in RAM at the peak, bytes of
    constants, or the time in the latency's unit."""

    name: str
    kind: str
    amount: int
    share: float


@dataclass(frozen=True)
class Advice:
    """A change and the plan of the network with it. `saved`: shares of the time, the RAM and the
    flash of the network before; below 0 where it takes more."""

    change: str
    proposal: Proposal
    after: Figures
    saved: Mapping[str, float]


@dataclass(frozen=True)
class Advised:
    """Advice on a model, what saves most first. `deciding`: the layers that decide the time, RAM
    and flash. `planned` of `proposed` changed graphs were planned."""

    model: str
    board: str
    before: Figures
    deciding: Mapping[str, tuple[Layer, ...]]
    advice: tuple[Advice, ...]
    planned: int
    proposed: int


MEASURES = ("time", "ram", "flash")


@cache
def changes() -> Mapping[str, Change]:
    """Every change by its name, in alphabetical order."""
    names = sorted(module.name for module in pkgutil.iter_modules(room.__path__))
    return MappingProxyType(
        {
            name.replace("_", "-"): importlib.import_module(f"{room.__name__}.{name}").CHANGE
            for name in names
        }
    )


def advise_model(
    model: str | Path,
    board: str,
    options: PlanOptions | None = None,
    by: str = "",
    plans: int = PLANS,
    report: Report = silent,
    go_on: Callable[[], bool] = lambda: True,
) -> Advised:
    """Advice on the network of a model file for a board, chip or core. `by`: the one of MEASURES
    that it is sorted by; '' for whichever saves most. `go_on`: whether to plan one more changed
    network, asked before each.

    Raises InputError for another measure, and what planning raises where the network itself cannot
    be planned; it need not fit.
    """
    if by not in ("", *MEASURES):
        raise InputError(
            f"--by {by!r}: it is one of {', '.join(MEASURES)}{did_you_mean(by, MEASURES)}"
        )
    asked = replace(options or PlanOptions(), allow_float=True)
    network = read_network(model, asked, report)
    target, costs = find_board(board), cost_model(board)
    return advise_graph(network.graph, target, asked, by, plans, report, costs, go_on)


def advise_graph(
    graph: Graph,
    target: Board,
    options: PlanOptions | None = None,
    by: str = "",
    plans: int = PLANS,
    report: Report = silent,
    costs: CostModel | None = None,
    go_on: Callable[[], bool] = lambda: True,
) -> Advised:
    """As `advise_model`, of a graph that is ready to compile."""
    base = Base.of(target, options or PlanOptions(), costs or cost_model(target.name))
    report("planning the network as it is")
    whole = base.plan(graph)
    before = base.figures(whole)
    proposals = _ranked(_proposals(graph, target), whole, base)
    advice, planned = [], 0
    chosen = proposals[:plans]
    for number, (name, proposal) in enumerate(chosen):
        if not go_on():
            break
        planned += 1
        report(f"planning {name} of {proposal.layer}", number, len(chosen))
        try:
            after = base.figures(base.plan(proposal.graph))
        except (DoesNotFitError, UnsupportedError):
            continue
        saved = _saved(before, after)
        if max(saved.values()) >= LEAST_SAVED or (after.fits and not before.fits):
            advice.append(Advice(name, proposal, after, saved))
    return Advised(
        graph.name,
        target.name,
        before,
        _deciding(whole, base),
        tuple(sorted(advice, key=lambda one: _worth(one, by, before))),
        planned,
        len(proposals),
    )


@dataclass(frozen=True)
class Base:
    """The board, options and costs that every plan of one advice shares. `ram_bytes`: with more a
    plan does not fit; None for the board's."""

    target: Board
    options: PlanOptions
    costs: CostModel
    ram_bytes: int | None = None

    @staticmethod
    def of(target: Board, options: PlanOptions, costs: CostModel) -> Base:
        """The base of the options but for splits, and with limits of `--plan fast`."""
        whole = replace(options.unsplit, split_seconds=0.0, fast=True, stream_input=False)
        return Base(target, whole, costs, options.ram_bytes)

    def plan(self, graph: Graph) -> Plan:
        """The plan of a graph. Raises as `plan_graph`."""
        return plan_graph(graph, self.target, self.options, costs=self.costs)

    def figures(self, plan: Plan) -> Figures:
        need, latency = estimated_need(plan), predict_latency(plan, self.costs)
        fits = self.ram_bytes is None or need.ram_bytes <= self.ram_bytes
        try:
            check_fit(plan)
        except DoesNotFitError:
            fits = False
        return Figures(
            plan.arena.size_bytes,
            need.ram_bytes,
            need.flash_bytes,
            latency.total,
            latency.unit,
            latency.milliseconds,
            fits,
        )


def _proposals(graph: Graph, target: Board) -> Iterator[tuple[str, Proposal]]:
    for name, change in changes().items():
        for proposal in change.proposals(graph, target.core):
            yield name, proposal


def _ranked(
    proposals: Iterator[tuple[str, Proposal]], plan: Plan, base: Base
) -> list[tuple[str, Proposal]]:
    """Changes of the layers first that have the largest share of the time, the RAM and the flash;
    those of one layer in the order of their names."""
    shares: dict[str, float] = {}
    for layers in _layers(plan, base).values():
        for layer in layers:
            shares[layer.name] = max(shares.get(layer.name, 0.0), layer.share)
    return sorted(proposals, key=lambda one: -shares.get(one[1].layer, 0.0))


def _layers(plan: Plan, base: Base) -> dict[str, list[Layer]]:
    """All operators by each measure, the largest share first."""
    latency, graph = predict_latency(plan, base.costs), plan.graph
    live = dict(zip(plan.schedule.order, plan.step_bytes, strict=True))
    amounts = {
        "time": list(latency.counts),
        "ram": [live[i] for i in range(len(graph.ops))],
        "flash": [constant_bytes(graph, i) for i in range(len(graph.ops))],
    }
    wholes = {
        "time": sum(amounts["time"]),
        "ram": max(amounts["ram"], default=0),
        "flash": sum(amounts["flash"]),
    }
    return {
        measure: sorted(
            (
                Layer(op.name, op.kind, amount, amount / max(wholes[measure], 1))
                for op, amount in zip(graph.ops, values, strict=True)
                if amount
            ),
            key=lambda layer: -layer.amount,
        )
        for measure, values in amounts.items()
    }


def _deciding(plan: Plan, base: Base) -> dict[str, tuple[Layer, ...]]:
    return {measure: tuple(layers[:_LAYERS]) for measure, layers in _layers(plan, base).items()}


def _saved(before: Figures, after: Figures) -> dict[str, float]:
    pairs = {
        "time": (before.count, after.count),
        "ram": (before.ram_bytes, after.ram_bytes),
        "flash": (before.flash_bytes, after.flash_bytes),
    }
    return {name: 1 - now / max(was, 1) for name, (was, now) in pairs.items()}


def _worth(advice: Advice, by: str, before: Figures) -> tuple[bool, float, float, str, str]:
    """The order of advice: what makes the network fit, then what saves the largest share."""
    saved: Sequence[float] = [advice.saved[by]] if by else list(advice.saved.values())
    proposal = advice.proposal
    helps = advice.after.fits and not before.fits
    return not helps, -max(saved), -sum(advice.saved.values()), proposal.layer, proposal.what
