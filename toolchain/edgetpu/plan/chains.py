"""The best chain of cuts: exact stages by dynamic programming over the stages between cuts.

Convolutional networks have few cuts (ResNet152: 224), so every chain can be weighed: the result is
optimal by exhaustion, for any cost of a stage. `stick_side` weighs every pair of cuts, on sticks
that other models use, too; `stages_within`, for models with thousands of cuts, lists only the
stages that take no longer than a period that is known to be reachable: with many stages these are
few. Both are read by the same `shortest`, `chain` and `least_of`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.edgetpu.model.figures import EdgeTpuCost, HostCost, StageOf
from toolchain.edgetpu.plan.cuts import (
    Bools,
    Cuts,
    Floats,
    Integers,
    StageCosts,
    cached_bytes,
    period_ms,
)

FAR = np.int64(1 << 61)
"""A sum that no chain has."""
_BLOCK = 48
"""Cuts whose stages are weighed at a time."""
_COARSE = 256
_LEAST_GAIN = 1e-9
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Edges:
    """Stages by the cuts that bound them, those with the same end together, of `count` cuts.

    The first cut is empty, and the last is the whole model.
    """

    before: Integers
    behind: Integers
    count: int

    def only(self, kept: Bools) -> Edges:
        return Edges(self.before[kept], self.behind[kept], self.count)


Step = tuple[Edges, Integers]
"""The edges that one stage of a plan may be, and a weight for each."""


def shortest(steps: Sequence[Step]) -> Integers:
    """Least sum of weights to every cut after each number of stages: (stages + 1, cuts).

    `FAR` marks what cannot be reached.
    """
    distance = np.full((len(steps) + 1, steps[0][0].count), FAR)
    distance[0, 0] = 0
    for stage, (edges, weights) in enumerate(steps, 1):
        if not edges.behind.size:
            continue
        starts = np.flatnonzero(np.diff(edges.behind, prepend=-1))
        reached = np.minimum.reduceat(distance[stage - 1][edges.before] + weights, starts)
        distance[stage, edges.behind[starts]] = np.minimum(reached, FAR)
    return distance


def least_sum(steps: Sequence[Step]) -> int | None:
    """The least sum of weights over all chains; None where there is no chain."""
    total = int(shortest(steps)[-1, -1])
    return None if total >= FAR else total


def chain(steps: Sequence[Step]) -> tuple[int, ...] | None:
    """The cuts of the chain with the least sum, the empty one first; None if there is none."""
    distance = shortest(steps)
    at = distance.shape[1] - 1
    if distance[-1, at] >= FAR:
        return None
    taken = [at]
    for stage in range(len(steps), 0, -1):
        edges, weights = steps[stage - 1]
        low, high = np.searchsorted(edges.behind, [at, at + 1])
        sums = distance[stage - 1][edges.before[low:high]] + weights[low:high]
        at = int(edges.before[low + int(np.argmin(sums))])
        taken.append(at)
    return tuple(reversed(taken))


@dataclass(frozen=True)
class Side:
    """The stages that one device may have. `comm`: bytes that each receives from other stages."""

    edges: Edges
    time_ms: Floats
    streamed: Integers
    comm: Integers

    def within(self, limit: float) -> Side:
        kept = self.time_ms <= limit
        if kept.all():
            return self
        return Side(self.edges.only(kept), self.time_ms[kept], self.streamed[kept], self.comm[kept])


def least_of(
    sides: Sequence[Side], cost: EdgeTpuCost, limit: float = np.inf
) -> tuple[tuple[int, ...], float] | None:
    """The chain of the least period, a stage for each side, and that period in milliseconds.

    For a bound on the slowest stage it computes what the bus needs. The larger the bound, the fewer
    bytes have to be streamed; the best is where the two are equal. Ties go to less communication.
    No stage is longer than `limit`, but the bus may need longer. None if there is no chain.
    """
    distinct = {id(side): side for side in sides}

    def within(bound: float) -> list[Side]:
        some = {key: side.within(bound) for key, side in distinct.items()}
        return [some[id(side)] for side in sides]

    def bus_ms(some: Sequence[Side]) -> float:
        least = least_sum([(side.edges, side.streamed) for side in some])
        return float("inf") if least is None else least / cost.hub_bytes_per_ms

    bounds = np.unique(np.concatenate([side.time_ms for side in distinct.values()]))
    bounds = bounds[bounds <= limit]
    if not bounds.size or bus_ms(within(bounds[-1])) == float("inf"):
        return None

    def keeps_up(at: int) -> bool:
        """Whether the bus needs no longer than stages within this bound."""
        return bool(bus_ms(within(bounds[at])) <= bounds[at])

    # At `first` the stages are the bottleneck; one bound below, the bus is.
    first = bisect_left(range(len(bounds) - 1), True, key=keeps_up)
    some = within(bounds[first])
    best = max(bounds[first], bus_ms(some))
    if first:
        fewer = within(bounds[first - 1])
        if bus_ms(fewer) < best:
            some, best = fewer, bus_ms(fewer)
    scale = 1 + len(sides) * max(int(side.comm.max(initial=0)) for side in some)
    most = max(int(side.streamed.max(initial=0)) for side in some)
    joined = len(sides) * (most + 1) * scale < int(FAR)  # else too large: ties stay open
    taken = chain([(s.edges, s.streamed * scale + s.comm if joined else s.streamed) for s in some])
    return None if taken is None else (taken, float(best))


def valid_edges(cuts: Cuts) -> Edges:
    """Every stage between two cuts that the rules allow."""
    behind, before = np.nonzero(cuts.valid.T)
    return Edges(before, behind, len(cuts))


def best_chain(cuts: Cuts, stages: int, objectives: Sequence[str]) -> StageOf | None:
    """The best stages for objectives in order of priority, each kept while the next is minimised.

    `params` minimises a maximum, `spill` and `comm` a sum; ties go to less communication. `period`
    stands alone. None if no chain meets the rules. Raises OverflowError for sums too large to be
    joined.
    """
    if objectives[0] == "period":
        limit = _reachable_ms(cuts, stages)
        if limit is None:
            return None
        return least_period_with(cuts, [StageLoad(cuts.model.cost.cache_bytes)] * stages, limit)
    edges = valid_edges(cuts)
    params = cuts.costs.params[edges.before, edges.behind]
    comm = cuts.costs.incoming[0][edges.before, edges.behind]
    spill = np.maximum(0, params - cuts.model.cost.cache_bytes)
    sums, weighed = np.zeros_like(params), False
    for name in dict.fromkeys((*objectives, "comm")):
        if name == "params":
            bound = _least_bound(edges, params, sums, stages)
            if bound is None:
                return None
            kept = params <= bound
            edges, params, sums = edges.only(kept), params[kept], sums[kept]
            comm, spill = comm[kept], spill[kept]
            continue
        weights = spill if name == "spill" else comm
        sums = _before(sums, weights, stages) if weighed else weights
        weighed = True
    taken = chain([(edges, sums)] * stages)
    return None if taken is None else cuts.stage_of(taken)


def _before(first: Integers, second: Integers, stages: int) -> Integers:
    """One weight that orders chains by the first sum, then by the second."""
    scale = stages * int(second.max(initial=0)) + 1
    if stages * (int(first.max(initial=0)) + 1) * scale >= int(FAR):
        raise OverflowError("sums too large to be joined")
    return first * scale + second


def _least_bound(edges: Edges, params: Integers, sums: Integers, stages: int) -> int | None:
    """The least bound on a stage's parameters that keeps the least sum of weights so far."""
    best = least_sum([(edges, sums)] * stages)
    if best is None:
        return None
    bounds = np.unique(params)

    def keeps_the_sum(at: int) -> bool:
        kept = params <= bounds[at]
        return least_sum([(edges.only(kept), sums[kept])] * stages) == best

    return int(bounds[bisect_left(range(len(bounds) - 1), True, key=keeps_the_sum)])


def _reachable_ms(cuts: Cuts, stages: int) -> float | None:
    """A period that some chain reaches: the best of those with the least largest stage."""
    periods = []
    for objectives in (("params", "spill"), ("spill", "params")):
        chosen = best_chain(cuts, stages, objectives)
        if chosen is None:
            return None
        periods.append(period_ms([cuts.model], [chosen], stages))
    return min(periods) * (1 + _ROUNDING)


@dataclass(frozen=True)
class StageLoad:
    """The work of other models on a stick.

    `free_bytes`: cache that the models before it leave free. `fixed_ms`: time of all other models,
    streaming left out. `streamed_bytes`: streamed by the models before it. `later`: layers of the
    models behind it, in order.
    """

    free_bytes: int
    fixed_ms: float = 0.0
    streamed_bytes: int = 0
    later: tuple[int, ...] = ()


def least_period_with(cuts: Cuts, loads: Sequence[StageLoad], limit: float) -> StageOf | None:
    """The stages of the least period on sticks with these loads, over every pair of cuts.

    `limit` is a period that some chain reaches. None if none does.
    """
    known = {load: stick_side(cuts, limit, load) for load in dict.fromkeys(loads)}
    least = least_of([known[load] for load in loads], cuts.model.cost, limit)
    return None if least is None else cuts.stage_of(least[0])


def stick_side(cuts: Cuts, limit: float, load: StageLoad | None = None) -> Side:
    """Every stage on a stick with a load, by default none, that takes no longer than `limit`."""
    cost, params = cuts.model.cost, cuts.costs.params
    load = load or StageLoad(cost.cache_bytes)
    alone = load.fixed_ms + cuts.costs.time_without_streams
    spill = np.maximum(0, params + sum(load.later) - load.free_bytes) + load.streamed_bytes
    fits = cuts.valid & (alone + spill / cost.stream_bytes_per_ms <= limit)
    behind, before = np.nonzero(fits.T)
    missed, free = cuts.costs.first_fit(before, behind, load.free_bytes)
    for size in load.later:
        held = cached_bytes(size, free, cost)
        free = free - held
        missed = missed + size - held
    streamed = missed + load.streamed_bytes
    time_ms = alone[before, behind] + streamed / cost.stream_bytes_per_ms
    return _side(cuts, before, behind, time_ms, streamed)


def host_side(cuts: Cuts, host: HostCost, limit: float) -> Side:
    """Every stage on the host, which caches all, that takes no longer than `limit`."""
    alone = host_ms(cuts, host)
    behind, before = np.nonzero((cuts.valid & (alone <= limit)).T)
    return _side(cuts, before, behind, alone[before, behind], np.zeros(before.size, np.int64))


def host_ms(cuts: Cuts, host: HostCost) -> Floats:
    """Times (ms) on the host of the stages between every two cuts: (from, to)."""
    weights = np.array(host.weights_ms([op.macs for op in cuts.model.graph.ops]))
    total = cuts.member @ weights
    times: Floats = host.call_ms + total[None, :] - total[:, None]
    return times


def _side(
    cuts: Cuts, before: Integers, behind: Integers, time_ms: Floats, streamed: Integers
) -> Side:
    comm = cuts.costs.incoming[0][before, behind]
    return Side(Edges(before, behind, len(cuts)), time_ms, streamed, comm)


def side_of(cuts: Cuts, stages: Sequence[tuple[int, int]], times_ms: Sequence[float]) -> Side:
    """Some stages on a device that streams nothing: the cuts that bound each, and its time."""
    order = sorted(range(len(stages)), key=lambda k: (stages[k][1], stages[k][0]))
    before, behind = (np.array([stages[k][end] for k in order], np.int64) for end in (0, 1))
    times = np.array([times_ms[k] for k in order], np.float64)
    return _side(cuts, before, behind, times, np.zeros(before.size, np.int64))


def stages_within(cuts: Cuts, stages: int, limit: float) -> Side:
    """The stages between cuts that may be part of a plan with so many and a period of `limit`."""
    blocks = [part for part in _blocks(cuts, stages, limit) if part[0].size]
    if not blocks:
        none = np.zeros(0, np.int64)
        return Side(Edges(none, none, len(cuts)), np.zeros(0), none, none)
    columns = [np.concatenate(part) for part in zip(*blocks, strict=True)]
    order = np.argsort(columns[1], kind="stable")
    before, behind, time_ms, streamed, comm = (part[order] for part in columns)
    return Side(Edges(before, behind, len(cuts)), time_ms, streamed, comm)


Listed = tuple[Integers, Integers, Floats, Integers, Integers]
"""Listed stages: the cuts before and behind, time, streamed bytes, bytes received."""


def _blocks(cuts: Cuts, stages: int, limit: float) -> Iterator[Listed]:
    model, cost = cuts.model, cuts.model.cost
    whole = StageCosts(model, np.zeros((1, len(model.graph.ops)), bool), cuts.member)
    weights, params = whole.arithmetic_ms[0], int(whole.params[0, -1])
    others = (stages - 1) * cost.cache_bytes
    bus_bytes = limit * cost.hub_bytes_per_ms + 1
    sizes = cuts.units.sum(1)
    most = limit - cost.call_ms + 1e-9
    for low in range(0, len(cuts) - 1, _BLOCK):
        rows = np.arange(low, min(low + _BLOCK, len(cuts) - 1))
        near = weights <= weights[rows].max() + most
        columns = np.flatnonzero(near & (sizes > sizes[low]))
        if not columns.size:
            continue
        costs = StageCosts(model, cuts.member[rows], cuts.member[columns])
        alone = costs.time_without_streams
        spill = np.maximum(0, costs.params - cost.cache_bytes)
        kept = costs.nested & (alone + spill / cost.stream_bytes_per_ms <= limit)
        # What this stage leaves to the others must fit their caches or pass the bus.
        kept &= spill + np.maximum(0, params - costs.params - others) <= bus_bytes
        if model.rules.anchored:
            kept &= cuts.anchors[rows][:, None] < cuts.anchors[columns][None, :]
        at, to = np.nonzero(kept)
        streamed, _ = costs.first_fit(at, to, cost.cache_bytes)
        time_ms = alone[at, to] + streamed / cost.stream_bytes_per_ms
        fine = time_ms <= limit
        at, to, streamed, time_ms = at[fine], to[fine], streamed[fine], time_ms[fine]
        yield rows[at], columns[to], time_ms, streamed, costs.incoming[0][at, to]


def least_period(cuts: Cuts, stages: int, start: float) -> tuple[tuple[int, ...], float] | None:
    """The chain of the least period, and that period in milliseconds, over listed stages.

    `start`: a guess of it; too low a guess is raised. None if no chain of these cuts keeps the
    rules.
    """
    limit = start
    longest = _longest_ms(cuts)
    while True:
        least = least_of([stages_within(cuts, stages, limit)] * stages, cuts.model.cost)
        if least is not None and least[1] <= limit:
            return least
        if limit >= longest:
            return None
        limit = min(longest, limit * 1.5 if least is None else least[1] * (1 + 1e-9))


def quick_period(cuts: Cuts, stages: int, start: float) -> tuple[tuple[int, ...], float] | None:
    """A good chain: of some cuts, then of those near the ones that it takes, until none is better.

    `start` and the result are as in `least_period`.
    """
    step = max(1, len(cuts) // _COARSE)
    chosen = np.unique(np.append(np.arange(0, len(cuts), step), len(cuts) - 1))
    least = least_period(cuts.only(chosen), stages, start)
    if least is None:
        return least_period(cuts, stages, start)
    taken, period = tuple(int(chosen[at]) for at in least[0]), least[1]
    near = np.arange(-step, step + 1)
    while True:
        chosen = np.unique(np.clip(np.array(taken)[:, None] + near, 0, len(cuts) - 1))
        least = least_period(cuts.only(chosen), stages, period)
        if least is None or least[1] >= period * (1 - _LEAST_GAIN):
            return taken, period
        taken, period = tuple(int(chosen[at]) for at in least[0]), least[1]


def _longest_ms(cuts: Cuts) -> float:
    """More than any stage takes, and more than the bus."""
    cost, graph = cuts.model.cost, cuts.model.graph
    moved = sum(tensor.size_bytes for tensor in graph.tensors)
    params = sum(
        graph.op_param_bytes(index) + op.compiled_bytes for index, op in enumerate(graph.ops)
    )
    return (
        1
        + cost.call_ms
        + sum(cuts.model.weights_ms)
        + params / cost.alone_bytes_per_ms
        + moved * (1 / cost.in_bytes_per_ms + 1 / cost.out_bytes_per_ms)
    )
