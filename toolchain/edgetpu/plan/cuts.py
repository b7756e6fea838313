"""Cuts of a model, and bytes and times of the stages between them.

A cut is a set of units that contains the predecessors of each of its members. A plan of n stages is
a chain of cuts, 0 < I1 < ... < In = all, and the cost of a stage depends only on the two that bound
it: it runs the operators of the second that the first does not contain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from toolchain.edgetpu.model.figures import (
    EdgeTpuCost,
    Figures,
    HostStage,
    McuStage,
    StageOf,
    Totals,
    measure,
    operator_weights_ms,
)
from toolchain.edgetpu.model.graph import PipelineGraph, Use
from toolchain.edgetpu.model.rules import Rules

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]
MOST_CUTS = 3000
"""Limit on the cuts of a model that are all listed."""
MANY_CUTS = 1000
"""Beyond, only those stages are weighed that a short period may have."""
_SOME_CUTS = 250


def _whole(values: Floats) -> Integers:
    """Sums of bytes, exact below 2^53, as integers."""
    return np.rint(values).astype(np.int64)


@dataclass(frozen=True)
class Model:
    """A model, and how its stages are weighed.

    `balance`: whose parameter bytes count, the file's or those after compilation. `times_ms`:
    measured time of each operator, instead of the cost model's.
    """

    graph: PipelineGraph
    rules: Rules
    cost: EdgeTpuCost
    balance: str = "file"
    times_ms: tuple[float, ...] | None = None

    @property
    def weights_ms(self) -> tuple[float, ...]:
        """Arithmetic of each operator on a stick."""
        return self.times_ms or operator_weights_ms(self.graph, self.cost)


def measured(
    models: Sequence[Model],
    stage_of: Sequence[StageOf],
    stages: int,
    host: HostStage | None = None,
    mcu: McuStage | None = None,
) -> tuple[tuple[Figures, ...], Totals]:
    """`measure` of models on the same devices, each weighed as the first one is."""
    graphs, first = [model.graph for model in models], models[0]
    weighed = (first.cost, first.balance, first.times_ms)
    return measure(graphs, stage_of, stages, *weighed, host, mcu)


def period_ms(models: Sequence[Model], stage_of: Sequence[StageOf], stages: int) -> float:
    """The period of models on the same sticks, as all figures of plans are counted."""
    return measured(models, stage_of, stages)[1].period_ms


def down_sets(rules: Rules, most: int = MOST_CUTS) -> tuple[int, ...] | None:
    """Every admissible cut as a bit set of units, in increasing size; None if more than `most`.

    A cut has the units of the first stage before it and those of the last behind it.
    """
    before = [sum(1 << b for b in sources) for sources in rules.predecessors]
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
                for u in rules.successors[unit]
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
    cut, cuts = 0, {0, (1 << rules.units) - 1}
    missing = 0  # pairs of a unit in the cut and a predecessor that is not
    for index in order:
        unit = rules.unit_of[index]
        members[unit] -= 1
        if members[unit]:
            continue
        cut |= 1 << unit
        missing += sum(not cut >> b & 1 for b in rules.predecessors[unit])
        missing -= sum(cut >> u & 1 for u in rules.successors[unit])
        if not missing and start & ~cut == 0 and cut & barred == 0:
            cuts.add(cut)
    return tuple(sorted(cuts, key=lambda c: (c.bit_count(), c)))


def depth_first_order(graph: PipelineGraph) -> tuple[int, ...]:
    """A topological order that follows each branch to its end (Kahn's algorithm on a stack)."""
    missing = [len(sources) for sources in graph.predecessors]
    users: list[list[int]] = [[] for _ in graph.ops]
    for index, sources in enumerate(graph.predecessors):
        for before in sources:
            users[before].append(index)
    ready = [index for index, count in enumerate(missing) if count == 0]
    order = []
    while ready:
        index = ready.pop()
        order.append(index)
        for user in users[index]:
            missing[user] -= 1
            if missing[user] == 0:
                ready.append(user)
    return tuple(order)


def greedy(graph: PipelineGraph, sizes: Sequence[int], stages: int) -> tuple[int, ...]:
    """Stage of each operator as the Edge TPU compiler cuts (`--num_segments`).

    In depth-first topological order, a stage is filled until the next operator would pass total /
    stages + 1 bytes; the last stage takes the rest. `sizes`: parameter bytes of each operator.
    """
    limit = sum(sizes) // stages + 1
    result = [0] * len(sizes)
    stage, filled = 0, 0
    for index in depth_first_order(graph):
        if filled + sizes[index] > limit and stage < stages - 1:
            stage, filled = stage + 1, 0
        filled += sizes[index]
        result[index] = stage
    return tuple(result)


def cached_bytes(size: int, free: Integers, cost: EdgeTpuCost) -> Integers:
    """Bytes of a layer that stages cache, of whose caches `free` bytes are left."""
    return np.where(size <= free, size, 0) if cost.whole_layers else np.minimum(free, size)


@dataclass(frozen=True)
class StageCosts:
    """The stages from each cut `before` to each cut `behind`: (cuts, operators), true inside.

    A cost of two cuts holds where the first is a part of the second. Only the operators
    in which the cuts differ are looked at, so a block of neighbouring cuts of a large model is
    cheap.
    """

    model: Model
    before: Bools
    behind: Bools

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.before), len(self.behind)

    @cached_property
    def _differs(self) -> Bools:
        """Operators that some stage may contain."""
        return np.asarray(self.behind.any(0) & ~self.before.all(0), np.bool_)

    @cached_property
    def nested(self) -> Bools:
        """Which pairs are a cut and a larger one."""
        everywhere = self.before.all(0) & self.behind.all(0)
        anywhere = self.before.any(0) | self.behind.any(0)
        seen = np.flatnonzero(anywhere & ~everywhere)
        inside, around = self.before[:, seen], self.behind[:, seen]
        missing = inside.astype(np.float32) @ (~around).astype(np.float32).T
        sizes = inside.sum(1)[:, None] < around.sum(1)[None, :]
        return np.asarray((missing < 0.5) & sizes, np.bool_)

    def _sums(self, weights: Floats) -> Floats:
        """The sum of a weight for each operator over the operators of each stage."""
        own = np.flatnonzero(self._differs & (weights != 0))
        each = weights[own]
        total: Floats = (self.behind[:, own] @ each)[None, :] - (self.before[:, own] @ each)[
            :, None
        ]
        return total

    def _fresh(self, used: Use) -> Integers:
        """Bytes of what stages use, each once, and do not write themselves."""
        total = np.zeros(self._shape)
        alone = np.flatnonzero(self._differs[used.alone])
        if alone.size:
            user, origin = used.alone[alone], used.alone_writer[alone]
            left = ~self.before[:, user] & (self.before[:, origin] | (origin < 0))
            total += (left * used.alone_bytes[alone]) @ self.behind[:, user].T.astype(np.float64)
        lefts, rights = [], []
        everywhere = np.ones(len(self.before), bool)
        for users, writer, size in used.shared:
            own = users[self._differs[users]]
            if not own.size:
                continue
            there = everywhere if writer < 0 else self.before[:, writer]
            used_before = self.before[:, own].sum(1)
            used_behind = self.behind[:, own].sum(1)
            for count in range(own.size):
                lefts.append(((used_before == count) & there) * float(size))
                rights.append(used_behind > count)
        if lefts:
            total += np.array(lefts).T @ np.array(rights, np.float64)
        return _whole(total)

    @cached_property
    def params(self) -> Integers:
        """Parameter bytes of each stage, a shared constant once."""
        if self.model.balance == "compiled":
            sizes = np.array([op.compiled_bytes for op in self.model.graph.ops], np.float64)
            return _whole(self._sums(sizes))
        return self._fresh(self.model.graph.uses.constants)

    @cached_property
    def incoming(self) -> tuple[Integers, Integers]:
        """Bytes that each stage receives: from other stages, and in total."""
        uses = self.model.graph.uses
        between = self._fresh(uses.written)
        return between, between + self._fresh(uses.given)

    @cached_property
    def outgoing(self) -> Integers:
        """Bytes that each stage sends on, each tensor once."""
        total = np.zeros(self._shape)
        for used in (self.model.graph.uses.passed, self.model.graph.uses.ends):
            own = np.flatnonzero(self._differs[used.alone_writer])
            if own.size:
                origin, user = used.alone_writer[own], used.alone[own]
                needed = self.behind[:, origin] & (~self.behind[:, user] | (origin == user))
                left = ~self.before[:, origin] * used.alone_bytes[own]
                total += left @ needed.T.astype(np.float64)
            lefts, rights = [], []
            for users, writer, size in used.shared:
                if self._differs[writer]:
                    lefts.append(~self.before[:, writer] * float(size))
                    rights.append((~self.behind[:, users]).any(1) & self.behind[:, writer])
            if lefts:
                total += np.array(lefts).T @ np.array(rights, np.float64)
        return _whole(total)

    @cached_property
    def arithmetic_ms(self) -> Floats:
        return self._sums(np.array(self.model.weights_ms))

    @cached_property
    def time_without_streams(self) -> Floats:
        cost = self.model.cost
        return (
            cost.call_ms
            + self.arithmetic_ms
            + self.incoming[1] / cost.in_bytes_per_ms
            + self.outgoing / cost.out_bytes_per_ms
        )

    def first_fit(
        self, rows: Integers, columns: Integers, free: Integers | int
    ) -> tuple[Integers, Integers]:
        """For the stages between cuts rows[i] and columns[i], each with `free` bytes of its cache:
        bytes streamed with every frame, and bytes of the cache that are left then.
        """
        params = self.params[rows, columns]
        missed, left = np.maximum(0, params - free), np.maximum(0, free - params)
        beyond = np.flatnonzero(missed)
        if self.model.cost.whole_layers and beyond.size:
            some = np.broadcast_to(free, rows.shape)[beyond]
            missed[beyond], left[beyond] = self._in_order(rows[beyond], columns[beyond], some)
        return missed, left

    def _in_order(
        self, rows: Integers, columns: Integers, free: Integers
    ) -> tuple[Integers, Integers]:
        """`first_fit` layer by layer, in their order: each is cached if it still fits."""
        free = free.copy()
        missed = np.zeros(rows.size, np.int64)
        met: dict[int, Bools] = {}
        users = self.model.graph.constant_users
        for index in np.flatnonzero(self._differs):
            op = self.model.graph.ops[index]
            here = self.behind[columns, index] & ~self.before[rows, index]
            size: Integers | int = 0
            if self.model.balance == "compiled":
                size = op.compiled_bytes
            else:
                alone = (c for c in op.constants if len(users[c]) == 1)
                size = sum(self.model.graph.constant_bytes[c] for c in alone)
                for constant in (c for c in op.constants if len(users[c]) > 1):
                    before = met.get(constant, np.zeros(rows.size, bool))
                    size = size + ~before * self.model.graph.constant_bytes[constant]
                    met[constant] = before | here
            if np.any(size):
                fits = size <= free
                free -= (here & fits) * size
                missed += (here & ~fits) * size
        return missed, free


@dataclass(frozen=True)
class Cuts:
    """Cuts of a model as bit sets of units, by increasing size: from the empty one to all units."""

    model: Model
    sets: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.sets)

    def only(self, rows: Integers) -> Cuts:
        return replace(self, sets=tuple(self.sets[row] for row in rows))

    @cached_property
    def units(self) -> Bools:
        """Which units each cut contains."""
        count = self.model.rules.units
        width = -(-count // 8)
        data = b"".join(cut.to_bytes(width, "little") for cut in self.sets)
        packed = np.frombuffer(data, np.uint8).reshape(len(self.sets), width)
        return np.unpackbits(packed, axis=1, bitorder="little")[:, :count].astype(bool)

    @cached_property
    def member(self) -> Bools:
        """Which operators each cut contains."""
        inside: Bools = self.units[:, np.array(self.model.rules.unit_of)]
        return inside

    @cached_property
    def anchors(self) -> Integers:
        """How many anchored units each cut contains."""
        counts: Integers = self.units[:, sorted(self.model.rules.anchored)].sum(1)
        return counts

    @cached_property
    def costs(self) -> StageCosts:
        """The costs of the stages between every two cuts."""
        return StageCosts(self.model, self.member, self.member)

    @cached_property
    def valid(self) -> Bools:
        """Which pairs of cuts are nested, with an anchored operator between, if there is any."""
        if not self.model.rules.anchored:
            return self.costs.nested
        return self.costs.nested & (self.anchors[:, None] < self.anchors[None, :])

    def inside(self, begin: int, end: int) -> tuple[int, ...]:
        """The operators of the stage between two cuts."""
        between = np.flatnonzero(self.member[end] & ~self.member[begin])
        return tuple(int(index) for index in between)

    def stage_of(self, chain: Sequence[int]) -> StageOf:
        """The stage of each operator along a chain of cuts."""
        outside = ~self.member[np.array(chain[1:-1], int)]
        return tuple(int(stage) for stage in outside.sum(0))


def all_cuts(model: Model, most: int = MOST_CUTS) -> Cuts | None:
    """Every cut that the rules allow; None where these are more than `most`."""
    sets = down_sets(model.rules, most)
    return None if sets is None else Cuts(model, sets)


def cuts_in_order(model: Model, order: Sequence[int]) -> Cuts:
    """The cuts of one order of the operators, from which a contiguous split may choose."""
    return Cuts(model, prefixes(model.graph, model.rules, order))


def cuts_of(model: Model, most: int = MOST_CUTS) -> tuple[Cuts, bool]:
    """All cuts of a model, and True; where they are more than `most`, those of one order, and
    False.
    """
    cuts = all_cuts(model, most)
    if cuts is not None:
        return cuts, True
    return cuts_in_order(model, depth_first_order(model.graph)), False


def some_cuts(model: Model) -> tuple[Cuts, bool]:
    """All cuts of a model, and True; where they are many, some of one order, and False."""
    cuts = all_cuts(model)
    if cuts is not None and len(cuts) <= MANY_CUTS:
        return cuts, True
    every = prefixes(model.graph, model.rules, depth_first_order(model.graph))
    return Cuts(model, (*every[: -1 : -(-len(every) // _SOME_CUTS)], every[-1])), False
