"""A lower bound of the period of a model with too many cuts to list, and cuts worth trying.

A cut is replaced by its mass, the time of the operators before it, and by the fewest bytes that any
cut of that mass leaves open. Both ends of a stage then say how long it takes at least:

    time >= call + (mass behind - mass before) + received / in + sent / out

The fewest open bytes are a minimum cut of the tensors between the operators that every cut of that
mass contains (all that is behind them is heavier than what is left) and those that none contains
(what is before them is heavier already). A period is excluded where no number of masses, from one
to the next within it, leads through the model.

Parameters enter with a price: with t streamed beyond a cache of C bytes, t >= price * (bytes - C)
for any price from 0 to 1, and so bytes have a mass too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from toolchain.edgetpu.model.figures import layer_bytes
from toolchain.edgetpu.plan.cuts import Bools, Floats, Integers, Model
from toolchain.packages import EDGETPU, lazy

if TYPE_CHECKING:
    from ortools.graph.python import max_flow
else:
    max_flow = lazy("ortools.graph.python.max_flow", EDGETPU)

_MOST_SEGMENTS = 3000
_UNCUT = 1 << 50
_ROUNDS = 48
_NEAR = 1e-11
_LEVELS = tuple(0.02 * 1.5**step for step in range(8))
"""Masses of stages for which a bound counts bytes, as shares of a period."""
_PRICES = (0.0, 0.5, 1.0)


@dataclass(frozen=True)
class Masses:
    """The units of a model with their masses in milliseconds.

    `price`: what a parameter byte beyond the cache counts, as a share of its streaming.
    """

    model: Model
    price: float = 0.0

    @cached_property
    def weights(self) -> Floats:
        graph, rules, cost = self.model.graph, self.model.rules, self.model.cost
        times = self.model.weights_ms
        weights = np.zeros(rules.units)
        sizes = layer_bytes(graph, range(len(graph.ops)), self.model.balance)
        for index, size in enumerate(sizes):
            never = cost.whole_layers and (_layer(self.model, index) or 0) > cost.cache_bytes
            price = 1.0 if never else self.price
            streaming = price * size / cost.stream_bytes_per_ms
            weights[rules.unit_of[index]] += times[index] + streaming
        return weights

    @property
    def stage_ms(self) -> float:
        """The least time of a stage beside its mass and its transfers; may be below 0."""
        cost = self.model.cost
        return cost.call_ms - self.price * cost.cache_bytes / cost.stream_bytes_per_ms

    @cached_property
    def _before(self) -> Bools:
        """[u, v]: unit v must run before unit u, or is u."""
        reach = np.eye(self.model.rules.units, dtype=bool)
        for unit, predecessors in enumerate(self.model.rules.predecessors):
            for before in predecessors:
                reach[unit] |= reach[before]
        return reach

    @cached_property
    def upward(self) -> Floats:
        """The mass of each unit and all before it."""
        sums: Floats = self._before @ self.weights
        return sums

    @cached_property
    def downward(self) -> Floats:
        """The mass of each unit and all behind it."""
        sums: Floats = self._before.T @ self.weights
        return sums

    @cached_property
    def tensors(self) -> tuple[Integers, Integers, Integers, Integers]:
        """Tensors between units: writer, bytes, first index of its readers, and all readers."""
        unit_of = self.model.rules.unit_of
        writers: list[int] = []
        sizes: list[int] = []
        starts: list[int] = []
        readers: list[int] = []
        for tensor, users in self.model.graph.consumers.items():
            if tensor not in self.model.graph.producer:
                continue
            writer = unit_of[self.model.graph.producer[tensor]]
            others = sorted({unit_of[user] for user in users} - {writer})
            size = self.model.graph.tensors[tensor].size_bytes
            if others and size:
                writers.append(writer)
                sizes.append(size)
                starts.append(len(readers))
                readers += others
        return (
            np.array(writers, np.int64),
            np.array(sizes, np.int64),
            np.array(starts, np.int64),
            np.array(readers, np.int64),
        )

    @property
    def _arcs(self) -> tuple[Integers, Integers]:
        pairs = [
            (u, b) for u, before in enumerate(self.model.rules.predecessors) for b in sorted(before)
        ]
        columns = np.array(pairs, np.int64).reshape(-1, 2).T
        return columns[0], columns[1]

    def segments(self, levels_ms: Sequence[float]) -> Segments:
        """Every mass that a cut can have, in ranges with the fewest bytes left open.

        For each of the rising `levels_ms`, those that a stage of such a mass must send, where it
        ends at the cut, and receive, where it begins there.
        """
        total = float(self.weights.sum())
        tolerance = _NEAR * max(total, 1.0)
        points = np.unique(np.clip([*self.upward, *(total - self.downward)], 0.0, total))
        closed = _grouped(points, max(total / _MOST_SEGMENTS, tolerance))
        ranges: list[tuple[float, float]] = []
        for number, (low, high) in enumerate(closed):
            if number and low - closed[number - 1][1] > 4 * tolerance:
                ranges.append((closed[number - 1][1] + 2 * tolerance, low - 2 * tolerance))
            ranges.append((low - tolerance, high + tolerance))
        first, last = (np.zeros(self.model.rules.units, bool) for _ in range(2))
        first[sorted(self.model.rules.first)] = True
        last[sorted(self.model.rules.last)] = True
        writers, _, _, readers = self.tensors
        nothing = np.zeros(writers.size, bool)
        every = np.ones(readers.size, bool)
        arcs = self._arcs
        written_from, read_until = self.upward[writers], total - self.downward[readers]
        segments: list[tuple[float, float]] = []
        sent: list[list[int]] = []
        received: list[list[int]] = []
        cuts: list[Bools] = []
        for low, high in ranges:
            inside = (total - self.downward < low) | first
            outside = (self.upward > high) | last
            if (inside & outside).any():
                continue
            segments.append((low, high))
            sent.append([])
            received.append([])
            for level in levels_ms:
                # Who begins so much before this cut cannot have what is written later; who ends so
                # much behind it has all of what must be read by then.
                fresh = written_from > high - level + tolerance
                size, cut = self._least_open(inside, outside, fresh, every, arcs)
                sent[-1].append(size)
                due = read_until < low + level - tolerance
                size, _ = self._least_open(inside, outside, ~nothing, due, arcs)
                received[-1].append(size)
            cuts.append(cut)
        low_high = np.array(segments).reshape(-1, 2)
        units = np.array(cuts, bool).reshape(-1, self.model.rules.units)
        shape = (-1, len(levels_ms))
        return Segments(
            self,
            low_high[:, 0],
            low_high[:, 1],
            np.array(sent, np.float64).reshape(shape).T,
            np.array(received, np.float64).reshape(shape).T,
            units,
            tuple(levels_ms),
        )

    def _least_open(
        self,
        inside: Bools,
        outside: Bools,
        counted: Bools,
        due: Bools,
        arcs: tuple[Integers, Integers],
    ) -> tuple[int, Bools]:
        """The fewest bytes of `counted` tensors that a cut between the two leaves open for readers
        that are `due`, and that cut."""
        writers, sizes, starts, readers = self.tensors
        if not writers.size:
            return 0, inside
        reaches = np.logical_or.reduceat(outside[readers] & due, starts)
        always = inside[writers] & reaches & counted
        least = int(sizes[always].sum())
        free = ~(inside | outside)
        if not free.any():
            return least, inside
        stays = np.logical_and.reduceat(inside[readers] | ~due, starts)
        chosen = np.flatnonzero(counted & ~always & ~outside[writers] & ~stays)
        if not inside[writers[chosen]].any():
            return least, inside
        node = np.where(inside, 0, 1)
        numbers = np.flatnonzero(free)
        node[numbers] = 2 + np.arange(numbers.size)
        between = 2 + numbers.size + np.arange(chosen.size)
        counts = np.diff(np.append(starts, readers.size))[chosen]
        at = np.repeat(starts[chosen] - np.append(0, np.cumsum(counts))[:-1], counts)
        at = at + np.arange(counts.sum())
        origin = np.repeat(between, counts)
        wanted = due[at] & ~inside[readers[at]]
        users, ways = arcs
        kept = free[users] & free[ways]
        tails = [node[writers[chosen]], origin[wanted], node[users[kept]]]
        heads = [between, node[readers[at[wanted]]], node[ways[kept]]]
        unlimited = np.full(wanted.sum() + kept.sum(), _UNCUT, np.int64)
        flow: Any = max_flow.SimpleMaxFlow()
        flow.add_arcs_with_capacity(
            np.concatenate(tails), np.concatenate(heads), np.append(sizes[chosen], unlimited)
        )
        flow.solve(0, 1)
        cut = inside.copy()
        reached = [number - 2 for number in flow.get_source_side_min_cut() if number >= 2]
        cut[[numbers[number] for number in reached if number < numbers.size]] = True
        return least + int(flow.optimal_flow()), cut


def _grouped(points: Floats, width: float) -> list[tuple[float, float]]:
    """Neighbouring points in ranges no wider than `width`."""
    groups: list[tuple[float, float]] = []
    for point in points:
        if groups and point - groups[-1][0] <= width:
            groups[-1] = (groups[-1][0], float(point))
        else:
            groups.append((float(point), float(point)))
    return groups


@dataclass(frozen=True)
class Segments:
    """Ranges of masses in increasing order, in milliseconds.

    `sent_bytes`: the fewest that a stage of at least the mass of each level sends which ends there,
    (levels, ranges); `received_bytes`: receives which begins there. `cuts`: the units of one that
    sends so few at the last level.
    """

    masses: Masses
    low: Floats
    high: Floats
    sent_bytes: Floats
    received_bytes: Floats
    cuts: Bools
    levels_ms: tuple[float, ...]

    def excluded(self, period_ms: float, stages: int) -> bool:
        """Whether no plan of at most so many stages can have this period."""
        graph, cost = self.masses.model.graph, self.masses.model.cost
        room = period_ms - self.masses.stage_ms
        read = sum(graph.tensors[t].size_bytes for t in graph.inputs if t in graph.consumers)
        sent = sum(graph.tensors[t].size_bytes for t in graph.outputs) / cost.out_bytes_per_ms
        total = float(self.masses.weights.sum())
        received = self.received_bytes / cost.in_bytes_per_ms
        passed = self.sent_bytes / cost.out_bytes_per_ms
        start = room - read / cost.in_bytes_per_ms
        if start - sent >= total:
            return False
        # The heaviest stage of each level; one lighter than the first level may move nothing.
        least, *levels = self.levels_ms
        heaviest = (*levels, 2 * total)

        def within(reach: Floats) -> Floats:
            reach = np.minimum(reach, self.high)
            reach[reach < self.low] = -np.inf
            return reach

        reach = np.full(len(self.low), min(start, least))
        for out, most in zip(passed, heaviest, strict=True):
            reach = np.maximum(reach, np.minimum(start - out, most))
        reach = within(reach)
        for _ in range(stages - 1):
            farthest = float(reach.max(initial=-np.inf))
            if farthest + min(room, least) - sent >= total:
                return False
            further = np.maximum.accumulate(reach) + min(room, least)
            near = np.maximum.accumulate(reach)
            for read_ms, out, most in zip(received, passed, heaviest, strict=True):
                far = np.maximum.accumulate(reach - read_ms) + room
                if min(float(far.max(initial=-np.inf)), farthest + most) - sent >= total:
                    return False
                further = np.maximum(further, np.minimum(far - out, near + most))
            further = within(further)
            if (further <= reach).all():
                return True
            reach = np.maximum(reach, further)
        return True

    def bound_ms(self, stages: int, period_ms: float) -> float:
        """The longest period below `period_ms` that is excluded; 0 if none is."""
        low, high = 0.0, period_ms
        if self.excluded(high * (1 - _NEAR), stages):
            return high
        for _ in range(_ROUNDS):
            middle = (low + high) / 2
            if self.excluded(middle, stages):
                low = middle
            else:
                high = middle
        return low


def bus_bound_ms(model: Model, stages: int) -> float:
    """Bytes that no caches hold pass the bus: a cache holds no more than some layers fill of it."""
    graph, cost = model.graph, model.cost
    sizes: list[int] = []
    for index, op in enumerate(graph.ops):
        size = _layer(model, index)
        sizes += [graph.constant_bytes[c] for c in op.constants] if size is None else [size]
    total = sum(sizes) if model.balance == "compiled" else graph.param_bytes
    held, never = cost.cache_bytes, 0
    if cost.whole_layers:
        layers = (_layer(model, index) or 0 for index in range(len(graph.ops)))
        never = sum(size for size in layers if size > cost.cache_bytes)
        if total - never > stages * cost.cache_bytes // 2:
            held = _most_filled(sizes, cost.cache_bytes)
    return (never + max(0, total - never - stages * held)) / cost.hub_bytes_per_ms


def _layer(model: Model, index: int) -> int | None:
    """Parameter bytes that are cached together or not at all; None where some are shared."""
    op = model.graph.ops[index]
    if model.balance == "compiled":
        return op.compiled_bytes
    if any(len(model.graph.constant_users[c]) > 1 for c in op.constants):
        return None
    return model.graph.op_param_bytes(index)


def _most_filled(sizes: Sequence[int], capacity: int) -> int:
    """The largest sum of some of the sizes that is at most `capacity`."""
    if sum(sizes) <= capacity:
        return sum(sizes)
    sums, mask = 1, (1 << (capacity + 1)) - 1
    for size, count in Counter(size for size in sizes if 0 < size <= capacity).items():
        left, some = min(count, capacity // size), 1
        while left:
            taken = min(some, left)
            sums |= (sums << (taken * size)) & mask
            left, some = left - taken, some * 2
        if sums >> capacity:
            break
    return min(capacity, sums.bit_length() - 1)


def bound_ms(model: Model, stages: int, known_ms: float) -> float:
    """A lower bound of the period, at most `known_ms`, which a plan has."""
    best = min(bus_bound_ms(model, stages), known_ms)
    levels = [known_ms * share for share in _LEVELS]
    for price in _PRICES:
        masses = Masses(model, price)
        if price and masses.stage_ms * stages + float(masses.weights.sum()) <= stages * best:
            continue  # without transfers it says less than is known
        best = max(best, masses.segments(levels).bound_ms(stages, known_ms))
        if best >= known_ms:
            break
    return best


def order_of_least_open(model: Model, period_ms: float) -> Sequence[int]:
    """The operators in an order that passes through the cuts that leave the fewest bytes open."""
    cuts = Masses(model).segments([period_ms * _LEVELS[-1]]).cuts
    rank = (~cuts).sum(0)
    unit_of = model.rules.unit_of
    return sorted(range(len(model.graph.ops)), key=lambda index: (rank[unit_of[index]], index))
