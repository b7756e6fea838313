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

from toolchain.edgetpu.cost import EdgeTpuCost
from toolchain.edgetpu.figures import operator_weights_ms
from toolchain.edgetpu.graph import PipelineGraph

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
        found: Bools = self.behind.any(0) & ~self.before.all(0)
        return found

    @cached_property
    def nested(self) -> Bools:
        """Which pairs are a cut and a larger one."""
        seen = ~(self.before.all(0) & self.behind.all(0)) & (
            self.before.any(0) | self.behind.any(0)
        )
        inside, around = self.before[:, seen], self.behind[:, seen]
        missing = inside.astype(np.float32) @ (~around).astype(np.float32).T
        sizes = inside.sum(1)[:, None] < around.sum(1)[None, :]
        found: Bools = (missing < 0.5) & sizes
        return found

    def _sums(self, weights: Integers | Floats) -> Integers | Floats:
        """The sum of a weight for each operator over the operators of each stage."""
        some = self._differs
        own = weights[some]
        return (self.behind[:, some] @ own)[None, :] - (self.before[:, some] @ own)[:, None]

    def _fresh(
        self,
        users: Sequence[Sequence[int]],
        sizes: Sequence[int],
        source: Sequence[int | None],
    ) -> Integers:
        """Bytes of what stages use, each once: by users[i], written by operator source[i].

        What is written in the stage itself does not count; None for what nothing writes.
        """
        left, right = [], []
        everywhere = np.ones(len(self.before), bool)
        for found, size, writer in zip(users, sizes, source, strict=True):
            own = [user for user in found if self._differs[user]]
            if not own or not size:
                continue
            there = everywhere if writer is None else self.before[:, writer]
            used_before = self.before[:, own].sum(1)
            used_behind = self.behind[:, own].sum(1)
            for used in range(len(own)):
                left.append(((used_before == used) & there) * float(size))
                right.append(used_behind > used)
        if not left:
            return np.zeros(self._shape, np.int64)
        return _whole(np.array(left).T @ np.array(right, np.float64))

    @cached_property
    def params(self) -> Integers:
        """Parameter bytes of each stage, a shared constant once."""
        if self.balance == "compiled":
            sizes = np.array([op.compiled_bytes for op in self.graph.ops], np.int64)
            return self._sums(sizes).astype(np.int64)
        alone = np.zeros(len(self.graph.ops), np.int64)
        shared = []
        for constant, found in self.graph.constant_users.items():
            if len(found) == 1:
                alone[found[0]] += self.graph.constant_bytes[constant]
            else:
                shared.append(constant)
        users = [self.graph.constant_users[c] for c in shared]
        sizes_shared = [self.graph.constant_bytes[c] for c in shared]
        fresh = self._fresh(users, sizes_shared, [None] * len(shared))
        return self._sums(alone).astype(np.int64) + fresh

    @cached_property
    def incoming(self) -> tuple[Integers, Integers]:
        """Bytes that each stage receives: from other stages, and in total."""
        written = [t for t in self.graph.consumers if t in self.graph.producer]
        given = [t for t in self.graph.consumers if t not in self.graph.producer]

        def total(tensors: Sequence[int]) -> Integers:
            return self._fresh(
                [self.graph.consumers[t] for t in tensors],
                [self.graph.tensors[t].size_bytes for t in tensors],
                [self.graph.producer.get(t) for t in tensors],
            )

        between = total(written)
        return between, between + total(given)

    @cached_property
    def outgoing(self) -> Integers:
        """Bytes that each stage sends on, each tensor once."""
        left, right = [], []
        outputs = set(self.graph.outputs)
        none = np.zeros(len(self.behind), bool)
        for tensor, index in self.graph.producer.items():
            size = float(self.graph.tensors[tensor].size_bytes)
            if not self._differs[index] or not size:
                continue
            users = list(self.graph.consumers.get(tensor, ()))
            needed = (~self.behind[:, users]).any(1) if users else none
            left.append(~self.before[:, index] * size)
            right.append((needed | (tensor in outputs)) & self.behind[:, index])
        if not left:
            return np.zeros(self._shape, np.int64)
        return _whole(np.array(left).T @ np.array(right, np.float64))

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
        missed[beyond], free[beyond] = self._in_order(rows[beyond], columns[beyond], cache_bytes)
        return missed, free

    def _in_order(
        self, rows: Integers, columns: Integers, cache_bytes: int
    ) -> tuple[Integers, Integers]:
        """Layers in their order, each cached if it still fits."""
        free = np.full(rows.size, cache_bytes)
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
