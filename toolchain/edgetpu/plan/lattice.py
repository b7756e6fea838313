"""Exact stages by dynamic programming over the down-sets of a model.

A down-set is a set of operators that contains the predecessors of each of its members. A plan of n
stages is a chain of down-sets, 0 < I1 < ... < In = all, and the cost of a stage depends only on the
two that bound it. Convolutional networks have few down-sets (ResNet152: 224), so every chain can be
weighed: the result is optimal by exhaustion, for any cost of a stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from toolchain.edgetpu.model.cost import EdgeTpuCost, HostCost
from toolchain.edgetpu.model.figures import HostStage, measure
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.model.rules import Rules
from toolchain.edgetpu.plan.cuts import Bools, Floats, Integers, StageCosts

MOST_DOWN_SETS = 3000
FAR = np.int64(1 << 61)


def down_sets(rules: Rules, most: int = MOST_DOWN_SETS) -> tuple[int, ...] | None:
    """Every admissible cut as a bit set of units, in increasing size; None if more than `most`.

    A cut has the units of the first stage before it and those of the last behind it.
    """
    before = [sum(1 << b for b in found) for found in rules.predecessors]
    behind: list[list[int]] = [[] for _ in range(rules.units)]
    for unit, found in enumerate(rules.predecessors):
        for b in found:
            behind[b].append(unit)
    start = sum(1 << unit for unit in rules.first)
    barred = sum(1 << unit for unit in rules.last)
    everything = (1 << rules.units) - 1
    ready = frozenset(
        u
        for u in range(rules.units)
        if not start >> u & 1 and not barred >> u & 1 and before[u] & ~start == 0
    )
    seen = {start}
    work = [(start, ready)]
    while work:
        cut, free = work.pop()
        for unit in free:
            larger = cut | 1 << unit
            if larger in seen:
                continue
            seen.add(larger)
            if len(seen) > most:
                return None
            opened = {
                u
                for u in behind[unit]
                if before[u] & ~larger == 0 and not barred >> u & 1 and not larger >> u & 1
            }
            work.append((larger, (free - {unit}) | opened))
    seen |= {0, everything}
    return tuple(sorted(seen, key=lambda cut: (cut.bit_count(), cut)))


def prefixes(graph: PipelineGraph, rules: Rules, order: Sequence[int]) -> tuple[int, ...]:
    """The cuts of one fixed order, from which a contiguous split may choose."""
    start = sum(1 << unit for unit in rules.first)
    barred = sum(1 << unit for unit in rules.last)
    members = [0] * rules.units
    for index in range(len(graph.ops)):
        members[rules.unit_of[index]] += 1
    behind: list[list[int]] = [[] for _ in range(rules.units)]
    for unit, predecessors in enumerate(rules.predecessors):
        for before in predecessors:
            behind[before].append(unit)
    cut, found = 0, {0, (1 << rules.units) - 1}
    missing = 0  # pairs of a unit in the cut and a predecessor that is not
    for index in order:
        unit = rules.unit_of[index]
        members[unit] -= 1
        if members[unit]:
            continue
        cut |= 1 << unit
        missing += sum(not cut >> b & 1 for b in rules.predecessors[unit])
        missing -= sum(cut >> u & 1 for u in behind[unit])
        if not missing and start & ~cut == 0 and cut & barred == 0:
            found.add(cut)
    return tuple(sorted(found, key=lambda c: (c.bit_count(), c)))


@dataclass(frozen=True)
class Lattice:
    """Costs of all stages between two cuts, as matrices (from, to)."""

    graph: PipelineGraph
    rules: Rules
    cuts: tuple[int, ...]
    cost: EdgeTpuCost
    balance: str
    times_ms: tuple[float, ...] | None = None

    @cached_property
    def member(self) -> Bools:
        """Which operators each cut contains."""
        units = np.array(
            [[cut >> unit & 1 for unit in range(self.rules.units)] for cut in self.cuts], bool
        )
        return units[:, np.array(self.rules.unit_of)]

    @cached_property
    def valid(self) -> Bools:
        """Which pairs of cuts are nested, with an anchored operator between them."""
        return self.costs.nested & self.anchored_between(self.member, self.member)

    def anchored_between(self, before: Bools, behind: Bools) -> Bools:
        """Which nested pairs of cuts have an anchored operator between them, if there is any."""
        if not self.graph.anchored:
            return np.ones((len(before), len(behind)), bool)
        anchored = sorted(self.graph.anchored)
        found: Bools = before[:, anchored].sum(1)[:, None] < behind[:, anchored].sum(1)[None, :]
        return found

    @cached_property
    def costs(self) -> StageCosts:
        """Of the stages between every two cuts."""
        return StageCosts(
            self.graph, self.member, self.member, self.cost, self.balance, self.times_ms
        )

    @property
    def params(self) -> Integers:
        """Parameter bytes of each stage, a shared constant once."""
        return self.costs.params

    @property
    def incoming(self) -> tuple[Integers, Integers]:
        """Bytes that each stage receives: from other stages, and in total."""
        return self.costs.incoming

    @property
    def outgoing(self) -> Integers:
        """Bytes that each stage sends on, each tensor once."""
        return self.costs.outgoing

    @property
    def time_without_streams(self) -> Floats:
        return self.costs.time_without_streams

    def first_fit(
        self, rows: Integers, columns: Integers, cache_bytes: int
    ) -> tuple[Integers, Integers]:
        """For the stages between cuts rows[i] and columns[i]: bytes streamed with every frame, and
        bytes of the cache that their parameters leave free.
        """
        return self.costs.first_fit(rows, columns, cache_bytes)

    @cached_property
    def spill(self) -> Integers:
        return np.maximum(0, self.params - self.cost.cache_bytes)

    def shortest(self, edges: Sequence[Integers]) -> Integers:
        """Least sum of edges, a matrix for each stage, to every cut after each number of stages.

        Its shape is (stages + 1, cuts); `FAR` marks what cannot be reached.
        """
        distance = np.full((len(edges) + 1, len(self.cuts)), FAR)
        distance[0, 0] = 0
        for stage, weights in enumerate(edges, 1):
            reached = distance[stage - 1][:, None] + weights
            distance[stage] = np.minimum(reached.min(0), FAR)
        return distance

    def chain(self, edges: Sequence[Integers]) -> tuple[int, ...] | None:
        """Stage of each operator along the chain with the least sum; None if there is none."""
        stages = len(edges)
        distance = self.shortest(edges)
        at = len(self.cuts) - 1
        if distance[stages, at] >= FAR:
            return None
        stage_of = np.zeros(len(self.graph.ops), int)
        for stage in range(stages, 0, -1):
            before = int(np.argmin(distance[stage - 1] + edges[stage - 1][:, at]))
            stage_of[self.member[at] & ~self.member[before]] = stage - 1
            at = before
        return tuple(int(stage) for stage in stage_of)

    def least_sum(self, stages: int, allowed: Bools, weights: Integers) -> int | None:
        """The least sum over chains of allowed stages; None where there is no chain."""
        best = int(self.shortest([np.where(allowed, weights, FAR)] * stages)[stages, -1])
        return None if best >= FAR else best


def solve(lattice: Lattice, stages: int, objectives: Sequence[str]) -> tuple[int, ...] | None:
    """The best chain for objectives in order of priority, each kept while the next is minimised.

    `params` and `period` minimise a maximum, `spill` and `comm` a sum; ties go to less
    communication. None if no chain meets the rules.
    """
    if objectives[0] == "period":
        return _least_period(lattice, stages)
    allowed = lattice.valid
    sums = np.zeros_like(lattice.params)
    weighed = False
    for name in dict.fromkeys((*objectives, "comm")):
        if name == "params":
            bound = _least_bound(lattice, stages, allowed, sums)
            if bound is None:
                return None
            allowed = allowed & (lattice.params <= bound)
            continue
        weights = lattice.spill if name == "spill" else lattice.incoming[0]
        sums = _before(sums, weights, stages, allowed) if weighed else weights
        weighed = True
    return lattice.chain([np.where(allowed, sums, FAR)] * stages)


def _before(first: Integers, second: Integers, stages: int, allowed: Bools) -> Integers:
    """One weight that orders chains by the first sum, then by the second."""
    scale = stages * int(second[allowed].max(initial=0)) + 1
    if stages * (int(first[allowed].max(initial=0)) + 1) * scale >= int(FAR):
        raise OverflowError("sums too large to be joined")
    return first * scale + second


def _least_bound(lattice: Lattice, stages: int, allowed: Bools, sums: Integers) -> int | None:
    """The least bound on a stage's parameters that keeps the least sum of weights so far."""
    best = lattice.least_sum(stages, allowed, sums)
    if best is None:
        return None
    bounds = np.unique(lattice.params[allowed])
    low, high = 0, len(bounds) - 1
    while low < high:
        middle = (low + high) // 2
        kept = lattice.least_sum(stages, allowed & (lattice.params <= bounds[middle]), sums)
        if kept == best:
            high = middle
        else:
            low = middle + 1
    return int(bounds[high])


def _least_period(lattice: Lattice, stages: int) -> tuple[int, ...] | None:
    limit = _first_period(lattice, stages)
    if limit is None:
        return None
    load = StageLoad(lattice.cost.cache_bytes, 0.0, 0, ())
    return least_period(lattice, [load] * stages, limit)


@dataclass(frozen=True)
class StageLoad:
    """What other models do on a stick. `free_bytes`: cache that the models before it leave free.

    `fixed_ms` is the time of all other models except streaming. `streamed_bytes` is what the models
    before it stream. `later` are the layers of the models behind it, in order.
    """

    free_bytes: int
    fixed_ms: float
    streamed_bytes: int
    later: tuple[int, ...]


Side = tuple[Floats, Integers]
"""Time and streamed bytes of the stages between every two cuts on one device."""


def stick_side(lattice: Lattice, limit: float) -> Side:
    """A stick that no other model uses; times beyond `limit` are infinite."""
    return _under(lattice, StageLoad(lattice.cost.cache_bytes, 0.0, 0, ()), limit)


def least_period_with_host(
    lattice: Lattice, stages: int, host: HostStage, stick: Side, limit: float
) -> tuple[int, ...] | None:
    """The least period of `stages` stages, of which one is on the host and the others on sticks.

    `limit` and the result are as in `least_period`.
    """
    sides = [stick] * stages
    sides[host.stage] = host_side(lattice, host.cost, limit)
    return least_of_sides(lattice, sides, limit)


def host_side(lattice: Lattice, host: HostCost, limit: float) -> Side:
    """The host, which caches all; times beyond `limit` are infinite."""
    weights = np.array(host.weights_ms([op.macs for op in lattice.graph.ops]))
    total = lattice.member @ weights
    alone = host.call_ms + total[None, :] - total[:, None]
    allowed = lattice.valid & (alone <= limit)
    return np.where(allowed, alone, np.inf), np.where(allowed, np.int64(0), FAR)


def least_period(
    lattice: Lattice, loads: Sequence[StageLoad], limit: float
) -> tuple[int, ...] | None:
    """The least period while the other models stay as they are.

    For a bound on the slowest stage it computes what the bus needs, and the other way round. The
    larger the bound, the fewer bytes have to be streamed; the best is where the two are equal.
    `limit` is a period that some chain reaches. None if none does.
    """
    known: dict[StageLoad, tuple[Floats, Integers]] = {}
    for load in loads:
        if load not in known:
            known[load] = _under(lattice, load, limit)
    return least_of_sides(lattice, [known[load] for load in loads], limit)


def least_of_sides(lattice: Lattice, sides: Sequence[Side], limit: float) -> tuple[int, ...] | None:
    """The chain of the least period; `sides`: times and streamed bytes of each of its stages."""
    times = [side[0] for side in sides]
    streamed = [side[1] for side in sides]
    distinct = {id(found): found for found in times}.values()
    bounds = np.unique(np.concatenate([found[found <= limit] for found in distinct]))
    if not bounds.size:
        return None

    def bus_ms(bound: float) -> float:
        edges = [np.where(t <= bound, s, FAR) for t, s in zip(times, streamed, strict=True)]
        found = int(lattice.shortest(edges)[-1, -1])
        return float("inf") if found >= FAR else found / lattice.cost.hub_bytes_per_ms

    low, high = 0, len(bounds) - 1
    while low < high:
        middle = (low + high) // 2
        if bus_ms(bounds[middle]) <= bounds[middle]:
            high = middle
        else:
            low = middle + 1
    # At `high` the stages are the bottleneck; one bound below, the bus is.
    best = max(bounds[high], bus_ms(bounds[high]))
    bound = bounds[high]
    if high and bus_ms(bounds[high - 1]) < best:
        bound = bounds[high - 1]
    within = [t <= bound for t in times]
    scale = 1 + len(sides) * int(max(lattice.incoming[0][w].max(initial=0) for w in within))
    most = max(int(s[w].max(initial=0)) for s, w in zip(streamed, within, strict=True))
    ties = lattice.incoming[0]
    if len(sides) * (most + 1) * scale >= int(FAR):  # too large to be joined: ties stay open
        scale, ties = 1, np.zeros_like(ties)
    return lattice.chain(
        [np.where(w, s * scale + ties, FAR) for s, w in zip(streamed, within, strict=True)]
    )


def _under(lattice: Lattice, load: StageLoad, limit: float) -> Side:
    """Time and streamed bytes of a stick with each stage and a load; infinite beyond `limit`."""
    cost = lattice.cost
    alone = load.fixed_ms + lattice.time_without_streams
    spill = np.maximum(0, lattice.params + sum(load.later) - load.free_bytes) + load.streamed_bytes
    rows, columns = np.nonzero(lattice.valid & (alone + spill / cost.stream_bytes_per_ms <= limit))
    missed, free = lattice.first_fit(rows, columns, load.free_bytes)
    for size in load.later:
        held = np.where(size <= free, size, 0) if cost.whole_layers else np.minimum(free, size)
        free = free - held
        missed = missed + size - held
    streamed = np.full(lattice.params.shape, FAR)
    streamed[rows, columns] = missed + load.streamed_bytes
    times = np.full(lattice.params.shape, np.inf)
    times[rows, columns] = alone[rows, columns] + streamed[rows, columns] / cost.stream_bytes_per_ms
    return times, streamed


def _first_period(lattice: Lattice, stages: int) -> float | None:
    """A period that some chain reaches: the best of those with the least largest stage."""
    found = []
    for objectives in (("params", "spill"), ("spill", "params")):
        chosen = solve(lattice, stages, objectives)
        if chosen is None:
            return None
        _, totals = measure(
            [lattice.graph], [chosen], stages, lattice.cost, lattice.balance, lattice.times_ms
        )
        found.append(totals.period_ms)
    return min(found) * (1 + 1e-12)
