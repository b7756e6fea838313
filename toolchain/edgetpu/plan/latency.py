"""The least score of any plan, by branch and bound: models one after another, stage by stage.

A node has some models on their paths, and the first stages of the next. Its bound is the queueing
model's (`least`: more models and stages only add to it) with the quickest services for what is
left, and for each model that is not placed its least latency alone. Nodes are taken from the
smallest bound on, so that the smallest one left is a bound of every plan.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from toolchain.edgetpu.plan.cuts import Floats
from toolchain.edgetpu.plan.devices import Score, Stages, Table, score_in_time, steps
from toolchain.edgetpu.plan.paths import Device, Search, better, quickest
from toolchain.edgetpu.plan.queueing import (
    TAIL,
    Estimate,
    Flow,
    Service,
    estimate,
    wait_alone,
)

_MOST_STEPS = 2000


@dataclass(frozen=True)
class Least:
    """A model's lower bounds with no other on the devices: the sum of its services, mean
    latency, 99th percentile (ms), the utilisation of its busiest device, and what it streams (ms).
    """

    service_ms: float
    mean_ms: float
    tail_ms: float
    load: float
    stream_ms: float


@dataclass(frozen=True)
class Bounded:
    """`plan`: the best one; `bound`: no plan has a lower score; `nodes`: how many were weighed."""

    plan: tuple[Stages, ...]
    bound: Score
    nodes: int


def least_alone(table: Table, rate: float) -> Least:
    """Over all paths of a model on idle devices.

    From the least sum of services on, each step allows only shorter stages than the longest before.
    """
    setting = table.setting
    devices = [Device(number, ()) for number in range(setting.devices)]
    times = [table.least(device.number) for device in devices]
    sent = [_streams(table, device.number) for device in devices]
    least = quickest(table, devices, sent)
    streamed = 0.0 if least is None else _along(least, sent)
    costs = list(times)
    mean = tail = load = service = math.inf
    shortest = 0.0
    for _ in range(_MOST_STEPS):
        path = quickest(table, devices, costs)
        if path is None:
            return Least(service, mean, tail, load, streamed)
        services = [float(times[device][begin, end]) for begin, end, device in steps(path)]
        longest = max(services)
        slowest = max(longest, streamed * setting.bus.share)
        load = min(load, rate * longest)
        shortest = sum(services)
        service = min(service, shortest)
        wait = _behind_own(rate, slowest)
        if wait < math.inf:
            mean, tail = min(mean, shortest + wait), min(tail, shortest + TAIL * wait)
        costs = [
            np.where(time < longest, cost, np.inf) for time, cost in zip(times, costs, strict=True)
        ]
    return Least(service, min(mean, shortest), min(tail, shortest), 0.0, streamed)


def _streams(table: Table, device: int) -> Floats:
    """The least streaming of each stage, ms alone on the bus; infinite where there is none."""
    return table.no_stream_ms if device == table.setting.sticks else table.least_stream_ms


def _along(stages: Stages, costs: Sequence[Floats]) -> float:
    return sum(float(costs[device][begin, end]) for begin, end, device in steps(stages))


@dataclass(frozen=True)
class _Node:
    """`done`: paths of models in the order of the search; `stages`: of the next one, begun."""

    done: tuple[Stages, ...]
    stages: Stages


def prove(search: Search, best: tuple[Stages, ...], most_nodes: int) -> Bounded:
    """The best plan and a bound, which is its own score where all plans were weighed or excluded.

    `best` is a plan to begin with; `most_nodes` limits the nodes that are weighed.
    """
    return _Bounding(search, most_nodes).run(best)


class _Bounding:
    def __init__(self, search: Search, most_nodes: int) -> None:
        self.search, self.most = search, most_nodes
        self.setting, self.demand = search.setting, search.demand
        self.rates = search.demand.rates_a_ms
        pairs = zip(search.tables, self.rates, strict=True)
        self.alone = [least_alone(table, rate) for table, rate in pairs]
        self.order = sorted(
            range(len(self.rates)), key=lambda m: -self.rates[m] * self.alone[m].mean_ms
        )
        self.to_go, self.streams_to_go = [], []
        devices = range(self.setting.devices)
        for table in search.tables:
            self.to_go.append(_to_go([table.least(device) for device in devices]))
            self.streams_to_go.append(_to_go([_streams(table, device) for device in devices]))

    def run(self, best: tuple[Stages, ...]) -> Bounded:
        ties, weighed = count(), 0
        root = _Node((), ())
        heap: list[tuple[Score, int, _Node]] = [(self._bound(root), next(ties), root)]
        least = self.search.score(best)
        while heap:
            bound, _, node = heapq.heappop(heap)
            if not better(bound, least):
                break
            if weighed >= self.most:
                return Bounded(best, bound, weighed)
            for child in self._children(node, least):
                weighed += 1
                if len(child.done) == len(self.rates):
                    plan = self._plan(child.done)
                    if better(self.search.score(plan), least):
                        best, least = plan, self.search.score(plan)
                    continue
                bound = self._bound(child)
                if better(bound, least):
                    heapq.heappush(heap, (bound, next(ties), child))
        return Bounded(best, least, weighed)

    def _plan(self, done: Sequence[Stages]) -> tuple[Stages, ...]:
        plan: list[Stages] = [()] * len(done)
        for model, stages in zip(self.order, done, strict=True):
            plan[model] = stages
        return tuple(plan)

    def _children(self, node: _Node, least: Score) -> list[_Node]:
        """One stage more, at each cut and device that may be better than `least`; devices that
        nothing uses are alike.
        """
        model = self.order[len(node.done)]
        table = self.search.tables[model]
        last = len(table.cuts) - 1
        begin = node.stages[-1][0] if node.stages else 0
        own = {device for _, device in node.stages}
        used = own | {device for stages in node.done for _, device in stages}
        fresh = next((d for d in range(self.setting.sticks) if d not in used), None)
        children = []
        least_ms = [table.least(device) for device in range(self.setting.devices)]
        spent = _along(node.stages, least_ms)
        for device in range(self.setting.devices):
            idle = device not in used and device != self.setting.sticks
            if device in own or (idle and device != fresh):
                continue
            row = table.least(device)[begin]
            ends = np.nonzero(np.isfinite(row) & (row + self.to_go[model] < np.inf))[0]
            if not least.load:
                ends = ends[self.rates[model] * row[ends] < 1]
                if self.demand.objective == "mean" and not least.late:
                    ends = ends[
                        self._means(model, spent + row[ends] + self.to_go[model][ends], least)
                    ]
            for end in ends:
                stages = (*node.stages, (int(end), device))
                if end == last:
                    children.append(_Node((*node.done, stages), ()))
                elif len(stages) < self.setting.devices:
                    children.append(_Node(node.done, stages))
        return children

    def _means(self, model: int, services: Floats, least: Score) -> np.ndarray:
        """Which of these sums of services of a model may be part of a better plan."""
        others = sum(
            rate * alone.mean_ms
            for number, (rate, alone) in enumerate(zip(self.rates, self.alone, strict=True))
            if number != model
        )
        return np.asarray(
            others + self.rates[model] * services < least.objective_ms * sum(self.rates)
        )

    def _bound(self, node: _Node) -> Score:
        flows: list[Flow] = []
        streams = [0.0] * len(self.rates)
        begun = (*node.done, node.stages)
        for model, stages in zip(self.order, begun, strict=False):
            table = self.search.tables[model]
            before: list[int] = []
            for begin, end, device in steps(stages):
                time = float(table.least(device)[begin, end])
                stream = float(_streams(table, device)[begin, end])
                rate = self.rates[model]
                flows.append(Flow(model, device, rate, time - stream, stream, 0.0, tuple(before)))
                streams[model] += stream
                before.append(device)
        predicted = estimate(
            flows, len(self.rates), self.setting.devices, self.setting.bus, least=True
        )
        return self._score(predicted, node, streams)

    def _score(self, predicted: Estimate, node: _Node, streams: Sequence[float]) -> Score:
        """`streams`: what the stages of each model stream, ms alone on the bus."""
        work = sum(predicted.busy)
        for place, model in enumerate(self.order[len(node.done) :]):
            rest = self.alone[model].service_ms
            if place == 0 and node.stages:
                rest = float(self.to_go[model][node.stages[-1][0]])
            work += self.rates[model] * rest
        evenly = work / self.setting.devices
        sent = sum(r * a.stream_ms for r, a in zip(self.rates, self.alone, strict=True))
        bus = sent * self.setting.bus.share
        load = max(predicted.load, evenly, bus, *(alone.load for alone in self.alone))
        if load >= 1:
            return Score(load, 0.0, 0.0)
        means, tails = [], []
        for model, alone in enumerate(self.alone):
            service, wait, stream = (
                predicted.service_ms[model],
                predicted.wait_ms[model],
                streams[model],
            )
            if node.stages and model == self.order[len(node.done)]:
                service += float(self.to_go[model][node.stages[-1][0]])
                stream += float(self.streams_to_go[model][node.stages[-1][0]])
            wait = max(wait, _behind_own(self.rates[model], stream * self.setting.bus.share))
            means.append(max(service + wait, alone.mean_ms))
            tails.append(max(service + TAIL * wait, alone.tail_ms))
        return score_in_time(means, tails, self.demand)


def _to_go(costs: Sequence[Floats]) -> Floats:
    """From each cut to the end: the least sum over stages, each on any device."""
    times = np.min(costs, axis=0)
    last = len(times) - 1
    least = np.full(last + 1, np.inf)
    least[last] = 0.0
    for _ in costs:
        through = (times + least[None, :]).min(1)
        through[last] = 0.0
        if np.array_equal(through, least):
            break
        least = np.minimum(least, through)
    return least


def _behind_own(rate: float, service_ms: float) -> float:
    """The least waiting (ms) behind a model's own requests, each of one length."""
    return wait_alone(rate, Service(service_ms, service_ms**2, 0.0))
