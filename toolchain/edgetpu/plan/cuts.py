"""Bytes and times of the stages between cuts, as matrices (from, to).

A stage runs the operators of the second cut that the first does not contain. Only the operators in
which the cuts differ are looked at, so a block of neighbouring cuts of a large model is cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from toolchain.edgetpu.model.cost import EdgeTpuCost
from toolchain.edgetpu.model.figures import operator_weights_ms
from toolchain.edgetpu.model.graph import PipelineGraph, Use

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]


def _whole(values: Floats) -> Integers:
    """Sums of bytes, exact below 2^53, as integers."""
    return np.rint(values).astype(np.int64)


@dataclass(frozen=True)
class StageCosts:
    """The stages from each cut `before` to each cut `behind`: (cuts, operators), true inside.

    What is computed for two cuts holds where the first is a part of the second.
    """

    graph: PipelineGraph
    before: Bools
    behind: Bools
    cost: EdgeTpuCost
    balance: str
    times_ms: tuple[float, ...] | None = None

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
        if self.balance == "compiled":
            sizes = np.array([op.compiled_bytes for op in self.graph.ops], np.float64)
            return _whole(self._sums(sizes))
        return self._fresh(self.graph.uses.constants)

    @cached_property
    def incoming(self) -> tuple[Integers, Integers]:
        """Bytes that each stage receives: from other stages, and in total."""
        uses = self.graph.uses
        between = self._fresh(uses.written)
        return between, between + self._fresh(uses.given)

    @cached_property
    def outgoing(self) -> Integers:
        """Bytes that each stage sends on, each tensor once."""
        total = np.zeros(self._shape)
        for used in (self.graph.uses.passed, self.graph.uses.ends):
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
        given = self.times_ms
        weights = operator_weights_ms(self.graph, self.cost) if given is None else given
        return self._sums(np.array(weights))

    @cached_property
    def time_without_streams(self) -> Floats:
        return (
            self.cost.call_ms
            + self.arithmetic_ms
            + self.incoming[1] / self.cost.in_bytes_per_ms
            + self.outgoing / self.cost.out_bytes_per_ms
        )

    def first_fit(
        self, rows: Integers, columns: Integers, cache_bytes: int
    ) -> tuple[Integers, Integers]:
        """For the stages between cuts rows[i] and columns[i]: bytes streamed with every frame, and
        bytes of the cache that their parameters leave free.
        """
        params = self.params[rows, columns]
        missed = np.maximum(0, params - cache_bytes)
        free = np.maximum(0, cache_bytes - params)
        if not self.cost.whole_layers or not rows.size or params.max() <= cache_bytes:
            return missed, free
        beyond = np.flatnonzero(missed)
        missed[beyond], free[beyond] = self.in_order(
            rows[beyond], columns[beyond], np.full(beyond.size, cache_bytes)
        )
        return missed, free

    def in_order(
        self, rows: Integers, columns: Integers, free: Integers
    ) -> tuple[Integers, Integers]:
        """The same where `free` bytes are left of the cache for each of the stages: layers in their
        order, each cached if it still fits.
        """
        free = free.copy()
        missed = np.zeros(rows.size, np.int64)
        met: dict[int, Bools] = {}
        users = self.graph.constant_users
        for index in np.flatnonzero(self._differs):
            op = self.graph.ops[index]
            here = self.behind[columns, index] & ~self.before[rows, index]
            size: Integers | int = 0
            if self.balance == "compiled":
                size = op.compiled_bytes
            else:
                alone = (c for c in op.constants if len(users[c]) == 1)
                size = sum(self.graph.constant_bytes[c] for c in alone)
                for constant in (c for c in op.constants if len(users[c]) > 1):
                    before = met.get(constant, np.zeros(rows.size, bool))
                    size = size + ~before * self.graph.constant_bytes[constant]
                    met[constant] = before | here
            if np.any(size):
                fits = size <= free
                free -= (here & fits) * size
                missed += (here & ~fits) * size
        return missed, free


def depth_first_order(graph: PipelineGraph) -> tuple[int, ...]:
    """A topological order that follows each branch to its end (Kahn's algorithm on a stack)."""
    missing = [len(found) for found in graph.predecessors]
    users: list[list[int]] = [[] for _ in graph.ops]
    for index, found in enumerate(graph.predecessors):
        for before in found:
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
