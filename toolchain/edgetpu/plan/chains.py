"""Chains of cuts whose stages are listed one by one: for models with thousands of cuts.

`lattice.py` weighs every pair of cuts. Here only the stages are kept that take no longer than a
period that is known to be reachable: with many stages these are few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolchain.edgetpu.model.cost import EdgeTpuCost
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.model.rules import Rules
from toolchain.edgetpu.plan.cuts import Bools, Floats, Integers, StageCosts

FAR = np.int64(1 << 61)
_BLOCK = 48
"""Cuts whose stages are weighed at a time."""
_COARSE = 256
_LEAST_GAIN = 1e-9


@dataclass(frozen=True)
class CutSet:
    """Cuts of a model by increasing size, from the empty one to all units; true inside."""

    graph: PipelineGraph
    rules: Rules
    units: Bools
    cost: EdgeTpuCost
    balance: str
    times_ms: tuple[float, ...] | None = None

    def __len__(self) -> int:
        return len(self.units)

    def only(self, rows: Integers) -> CutSet:
        return replace(self, units=self.units[rows])

    def operators(self, rows: slice | Integers) -> Bools:
        found: Bools = self.units[rows][:, np.array(self.rules.unit_of)]
        return found


def cut_set(
    graph: PipelineGraph,
    rules: Rules,
    cuts: Sequence[int],
    cost: EdgeTpuCost,
    balance: str,
    times_ms: tuple[float, ...] | None = None,
) -> CutSet:
    """From cuts as bit sets of units."""
    width = -(-rules.units // 8)
    data = b"".join(cut.to_bytes(width, "little") for cut in cuts)
    packed = np.frombuffer(data, np.uint8).reshape(len(cuts), width)
    members = np.unpackbits(packed, axis=1, bitorder="little")[:, : rules.units].astype(bool)
    order = np.argsort(members.sum(1), kind="stable")
    return CutSet(graph, rules, members[order], cost, balance, times_ms)


@dataclass(frozen=True)
class Stages:
    """Every stage that is no longer than a limit, by the cut it ends at.

    `before`, `behind`: its cuts. `comm`: bytes that it receives from other stages. `count`: of all
    cuts; the first is empty and the last is the whole model.
    """

    before: Integers
    behind: Integers
    time_ms: Floats
    streamed: Integers
    comm: Integers
    count: int

    def within(self, limit: float) -> Stages:
        kept = self.time_ms <= limit
        return Stages(
            self.before[kept],
            self.behind[kept],
            self.time_ms[kept],
            self.streamed[kept],
            self.comm[kept],
            self.count,
        )

    def shortest(self, weights: Integers, stages: int) -> Integers:
        """Least sum of weights to every cut after each number of stages: (stages + 1, cuts)."""
        distance = np.full((stages + 1, self.count), FAR)
        distance[0, 0] = 0
        if not self.behind.size:
            return distance
        starts = np.flatnonzero(np.diff(self.behind, prepend=-1))
        ends = self.behind[starts]
        for stage in range(1, stages + 1):
            reached = np.minimum.reduceat(distance[stage - 1][self.before] + weights, starts)
            distance[stage, ends] = np.minimum(reached, FAR)
        return distance

    def chain(self, weights: Integers, stages: int) -> tuple[int, ...] | None:
        """The cuts of the chain with the least sum, the empty one first; None if there is none."""
        distance = self.shortest(weights, stages)
        at = self.count - 1
        if distance[stages, at] >= FAR:
            return None
        found = [at]
        for stage in range(stages, 0, -1):
            low, high = np.searchsorted(self.behind, [at, at + 1])
            sums = distance[stage - 1][self.before[low:high]] + weights[low:high]
            at = int(self.before[low + int(np.argmin(sums))])
            found.append(at)
        return tuple(reversed(found))

    def reachable(self, stages: int) -> bool:
        """Whether so many stages lead from the empty cut to the whole model."""
        return bool(self.shortest(np.zeros_like(self.streamed), stages)[stages, -1] < FAR)


def stages_within(cuts: CutSet, stages: int, limit: float) -> Stages:
    """All stages between `cuts` that keep the rules and may be part of a period of `limit` ms."""
    blocks = [found for found in _blocks(cuts, stages, limit) if found[0].size]
    if not blocks:
        none = np.zeros(0, np.int64)
        return Stages(none, none, np.zeros(0), none, none, len(cuts))
    columns = [np.concatenate(found) for found in zip(*blocks, strict=True)]
    order = np.argsort(columns[1], kind="stable")
    before, behind, time_ms, streamed, comm = (found[order] for found in columns)
    return Stages(before, behind, time_ms, streamed, comm, len(cuts))


Found = tuple[Integers, Integers, Floats, Integers, Integers]


def _blocks(cuts: CutSet, stages: int, limit: float) -> Iterator[Found]:
    cost = cuts.cost
    whole = StageCosts(
        cuts.graph,
        np.zeros((1, len(cuts.graph.ops)), bool),
        cuts.operators(slice(None)),
        cost,
        cuts.balance,
        cuts.times_ms,
    )
    weights, params = whole.arithmetic_ms[0], int(whole.params[0, -1])
    others = (stages - 1) * cost.cache_bytes
    bus_bytes = limit * cost.hub_bytes_per_ms + 1
    anchored = cuts.units[:, sorted(cuts.rules.anchored)].sum(1)
    sizes = cuts.units.sum(1)
    most = limit - cost.call_ms + 1e-9
    for low in range(0, len(cuts) - 1, _BLOCK):
        rows = np.arange(low, min(low + _BLOCK, len(cuts) - 1))
        near = weights <= weights[rows].max() + most
        columns = np.flatnonzero(near & (sizes > sizes[low]))
        if not columns.size:
            continue
        costs = StageCosts(
            cuts.graph,
            cuts.operators(rows),
            cuts.operators(columns),
            cost,
            cuts.balance,
            cuts.times_ms,
        )
        alone = costs.time_without_streams
        spill = np.maximum(0, costs.params - cost.cache_bytes)
        kept = costs.nested & (alone + spill / cost.stream_bytes_per_ms <= limit)
        # What this stage leaves to the others must fit their caches or pass the bus.
        kept &= spill + np.maximum(0, params - costs.params - others) <= bus_bytes
        if cuts.rules.anchored:
            kept &= anchored[rows][:, None] < anchored[columns][None, :]
        at, to = np.nonzero(kept)
        streamed, _ = costs.first_fit(at, to, cost.cache_bytes)
        time_ms = alone[at, to] + streamed / cost.stream_bytes_per_ms
        fine = time_ms <= limit
        at, to, streamed, time_ms = at[fine], to[fine], streamed[fine], time_ms[fine]
        yield rows[at], columns[to], time_ms, streamed, costs.incoming[0][at, to]


def stage_of(cuts: CutSet, chain: Sequence[int]) -> tuple[int, ...]:
    """The stage of each operator along a chain of cuts."""
    found = np.zeros(len(cuts.graph.ops), int)
    for at in chain[1:-1]:
        found += ~cuts.operators(np.array([at]))[0]
    return tuple(int(stage) for stage in found)


def least_period(cuts: CutSet, stages: int, start: float) -> tuple[tuple[int, ...], float] | None:
    """The chain of the least period, and that period in milliseconds.

    `start`: a guess of it; too low a guess is raised. None if no chain of these cuts keeps the
    rules.
    """
    limit = start
    longest = _longest_ms(cuts)
    while True:
        found = _least(stages_within(cuts, stages, limit), cuts.cost, stages)
        if found is not None and found[1] <= limit:
            return found
        if limit >= longest:
            return None
        limit = min(longest, limit * 1.5 if found is None else found[1] * (1 + 1e-9))


def quick_period(cuts: CutSet, stages: int, start: float) -> tuple[tuple[int, ...], float] | None:
    """A good chain: of some cuts, then of those near the ones that it takes, until none is better.

    `start` and the result are as in `least_period`.
    """
    step = max(1, len(cuts) // _COARSE)
    chosen = np.unique(np.append(np.arange(0, len(cuts), step), len(cuts) - 1))
    found = least_period(cuts.only(chosen), stages, start)
    if found is None:
        return least_period(cuts, stages, start)
    chain, period = tuple(int(chosen[at]) for at in found[0]), found[1]
    near = np.arange(-step, step + 1)
    while True:
        chosen = np.unique(np.clip(np.array(chain)[:, None] + near, 0, len(cuts) - 1))
        found = least_period(cuts.only(chosen), stages, period)
        if found is None or found[1] >= period * (1 - _LEAST_GAIN):
            return chain, period
        chain, period = tuple(int(chosen[at]) for at in found[0]), found[1]


def _longest_ms(cuts: CutSet) -> float:
    """More than any stage takes, and more than the bus."""
    cost, graph = cuts.cost, cuts.graph
    moved = sum(tensor.size_bytes for tensor in graph.tensors)
    params = sum(
        graph.op_param_bytes(index) + op.compiled_bytes for index, op in enumerate(graph.ops)
    )
    arithmetic = sum(op.macs for op in graph.ops) / cost.macs_per_ms
    if cuts.times_ms is not None:
        arithmetic = sum(cuts.times_ms)
    slowest = min(cost.stream_bytes_per_ms, cost.hub_bytes_per_ms)
    return (
        1
        + cost.call_ms
        + arithmetic
        + params / slowest
        + moved * (1 / cost.in_bytes_per_ms + 1 / cost.out_bytes_per_ms)
    )


def _least(listed: Stages, cost: EdgeTpuCost, stages: int) -> tuple[tuple[int, ...], float] | None:
    """The chain of the least period among listed stages; the period may exceed their limit."""

    def bus_ms(some: Stages) -> float:
        least = int(some.shortest(some.streamed, stages)[stages, -1])
        return float("inf") if least >= FAR else least / cost.hub_bytes_per_ms

    bounds = np.unique(listed.time_ms)
    if not bounds.size or bus_ms(listed) == float("inf"):
        return None
    # Where the bus needs no longer than the slowest stage may take, fewer stages suffice.
    low, high, some = 0, len(bounds) - 1, listed
    while low < high:
        middle = (low + high) // 2
        tried = some.within(bounds[middle])
        if bus_ms(tried) <= bounds[middle]:
            high, some = middle, tried
        else:
            low = middle + 1
    bound, some = bounds[high], listed.within(bounds[high])
    best = max(bound, bus_ms(some))
    if high:
        fewer = listed.within(bounds[high - 1])
        if bus_ms(fewer) < best:
            some, best = fewer, bus_ms(fewer)
    scale = 1 + stages * int(some.comm.max(initial=0))
    weights = some.streamed * scale + some.comm
    if stages * (int(some.streamed.max(initial=0)) + 1) * scale >= int(FAR):
        weights = some.streamed
    chain = some.chain(weights, stages)
    return None if chain is None else (chain, float(best))
