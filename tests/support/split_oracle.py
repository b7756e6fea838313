"""Whether a scheme could be valid, by what operators are seen to depend on: no axis map is asked.

Every index of every operand is disturbed and the outputs that change are noted. Then all choices of
an axis for every operator and for what they read from outside are tried.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import Graph, Op
from toolchain.ops import spec_of
from toolchain.ops.operator import operator_of
from toolchain.ops.reduction.common import reduced_axes
from toolchain.partition import Mode, Scheme

Seen = NDArray[np.bool_]
"""[output index, input index]: who depends on whom."""
_WEIGHTED = ("conv2d", "fully_connected")
"""Kinds with weights of their own for each index of their last axis: it reads operands whole."""
_INTERLEAVED = ("depth_to_space", "space_to_depth")
"""Kinds that make some of their channels by no block of themselves."""
_WHOLE = ("reshape", "depth_to_space")
"""Kinds whose blocks are made of all of what they read."""
_SUMS = -1
"""The choice of an operator that sums over the split axis of its operand."""


@dataclass(frozen=True)
class Oracle:
    graph: Graph

    @cached_property
    def _known(self) -> dict[tuple[int, str], dict[tuple[int, int], Seen]]:
        return {}

    def depends(self, index: int, name: str) -> Mapping[tuple[int, int], Seen]:
        """By output axis and axis of the operand."""
        if (index, name) not in self._known:
            self._known[index, name] = _probed(self.graph, self.graph.ops[index], name)
        return self._known[index, name]

    def _free(self, scheme: Scheme) -> tuple[dict[int, list[int]], dict[str, list[int | None]]]:
        """The axes that each operator, and each activation from outside, may be split along."""
        graph, names = self.graph, set(scheme.ops)
        ops = [i for i, op in enumerate(graph.ops) if op.name in names]
        made = {graph.ops[i].outputs[0] for i in ops}
        outside = sorted({n for i in ops for n in _activations(graph, i)} - made)
        return (
            {i: [*range(len(graph.output(graph.ops[i]).shape)), _SUMS] for i in ops},
            {n: [None, *range(len(graph.tensors[n].shape))] for n in outside},
        )

    def choices(self, scheme: Scheme) -> int:
        own, read = self._free(scheme)
        return math.prod(len(c) for c in (*own.values(), *read.values()))

    def possible(self, scheme: Scheme) -> bool:
        """True where a choice of axes satisfies every condition beyond doubt."""
        own, read = self._free(scheme)
        return _convex(self.graph, set(own)) and any(
            self._holds(
                scheme, dict(zip(own, axes, strict=True)), dict(zip(read, ends, strict=True))
            )
            for axes in product(*own.values())
            for ends in product(*read.values())
        )

    def _holds(
        self, scheme: Scheme, chosen: Mapping[int, int], outside: Mapping[str, int | None]
    ) -> bool:
        graph = self.graph
        along = {graph.ops[i].outputs[0]: axis for i, axis in chosen.items()} | dict(outside)
        if along.get(scheme.seed[0]) != scheme.seed[1]:
            return False
        rows: dict[int, dict[str, Seen]] = {}
        for index, axis in chosen.items():
            rows[index] = {}
            if graph.ops[index].kind in _INTERLEAVED and axis == _last(graph, index):
                return False
            for name in _activations(graph, index):
                split = along[name]
                if split is None:
                    continue
                if split == _SUMS:
                    return False
                if axis == _SUMS:
                    if split not in _summed(graph, graph.ops[index], name):
                        return False
                    rows[index][name] = np.eye(graph.tensors[name].shape[split], dtype=np.bool_)
                    continue
                seen = self.depends(index, name)[axis, split]
                if not _is_window(seen):
                    return False
                rows[index][name] = seen
            own = graph.ops[index].kind in _WEIGHTED and axis == _last(graph, index)
            if not rows[index] and not own:
                return False
        return _connected(scheme.seed[0], graph, rows) and self._has_blocks(scheme, chosen, rows)

    def _has_blocks(
        self, scheme: Scheme, chosen: Mapping[int, int], rows: Mapping[int, Mapping[str, Seen]]
    ) -> bool:
        graph = self.graph
        length = {
            i: len(next(iter(rows[i].values())))
            if axis == _SUMS
            else graph.output(graph.ops[i]).shape[axis]
            for i, axis in chosen.items()
        }
        maker = {graph.ops[i].outputs[0]: i for i in chosen}
        if scheme.mode is Mode.SLIDING:
            blocks = _slides(rows, length, maker, scheme)
        elif scheme.mode in (Mode.LINES, Mode.LEADING):
            blocks = _lines(graph, chosen, rows, length, maker, scheme)
        else:
            blocks = _tiles(graph, chosen, rows, length, maker, scheme)
        if blocks is None:
            return False
        return all(
            seen[begin:end].any() and (graph.ops[i].kind not in _WHOLE or _is_all(seen, begin, end))
            for block in blocks
            for i, (begin, end) in block.items()
            for seen in rows[i].values()
        )


def _is_all(seen: Seen, begin: int, end: int) -> bool:
    """Whether nothing outside the run is made of what the run is made of."""
    made = seen[:, seen[begin:end].any(axis=0)].any(axis=1)
    return not made[:begin].any() and not made[end:].any()


def _activations(graph: Graph, index: int) -> list[str]:
    names = dict.fromkeys(graph.ops[index].present_inputs())
    return [name for name in names if not graph.tensors[name].is_constant]


def _last(graph: Graph, index: int) -> int:
    return len(graph.output(graph.ops[index]).shape) - 1


def _probed(graph: Graph, op: Op, name: str) -> dict[tuple[int, int], Seen]:
    rng = np.random.default_rng(1)
    y, x = graph.output(op), graph.tensors[name]
    calm = {
        n: graph.tensors[n].constant
        if graph.tensors[n].is_constant
        else rng.integers(-8, -2, graph.tensors[n].shape).astype(np.int8)
        for n in op.present_inputs()
    }

    def run(value: NDArray[np.int8]) -> NDArray[np.int8]:
        given = [value if n == name else calm[n] for n in op.inputs]
        (result,) = spec_of(op.kind).reference(op, graph, given)
        return result

    before = run(calm[name])
    found = {
        (b, c): np.zeros((y.shape[b], x.shape[c]), np.bool_)
        for b in range(len(y.shape))
        for c in range(len(x.shape))
    }
    for c, size in enumerate(x.shape):
        for index in range(size):
            for step in (20, 100):
                value = calm[name].copy()
                value[(slice(None),) * c + (index,)] += np.int8(step)
                changed = run(value) != before
                for b in range(len(y.shape)):
                    others = tuple(axis for axis in range(len(y.shape)) if axis != b)
                    found[b, c][:, index] |= changed.any(axis=others)
    if op.kind in _WEIGHTED:  # a weight near zero may hide what it reads
        for c in _summed(graph, op, name):
            found[len(y.shape) - 1, c][:] = True
    return found


def _is_window(seen: Seen) -> bool:
    """Each output sees a run of inputs that moves with it; they do not all see the same."""
    rows = [row for row in seen if row.any()]
    if len({row.tobytes() for row in rows}) < 2:
        return False
    first = [int(row.argmax()) for row in rows]
    last = [seen.shape[1] - int(row[::-1].argmax()) for row in rows]
    return first == sorted(first) and last == sorted(last)


def _summed(graph: Graph, op: Op, name: str) -> set[int]:
    """Axes of the operand over which the kind adds products up."""
    shape = graph.tensors[name].shape
    if op.kind in ("mean", "sum"):
        return set(reduced_axes(operator_of(op, graph)))
    if op.kind == "conv2d":
        return {3}
    if op.kind == "fully_connected":
        return {next(axis for axis, size in enumerate(shape) if size > 1)}
    if op.kind == "average_pool2d" and graph.output(op).shape[1:3] == (1, 1):
        return {1, 2} if spec_of(op.kind).reductions(op, graph) else set()
    return set()


def _connected(seed: str, graph: Graph, rows: Mapping[int, Mapping[str, Seen]]) -> bool:
    reached, names = set(), {seed}
    while True:
        more = {
            i
            for i, seen in rows.items()
            if i not in reached and (names & {*seen, graph.ops[i].outputs[0]})
        }
        if not more:
            return len(reached) == len(rows)
        reached |= more
        for i in more:
            names |= {*rows[i], graph.ops[i].outputs[0]}


def _convex(graph: Graph, ops: set[int]) -> bool:
    def closure(edges: Mapping[int, set[int]]) -> set[int]:
        found, waiting = set(), list(ops)
        while waiting:
            for other in edges[waiting.pop()] - found:
                found.add(other)
                waiting.append(other)
        return found

    before = {i: set(graph.predecessors[i]) for i in range(len(graph.ops))}
    after = {i: {j for j in before if i in before[j]} for i in before}
    return closure(before) & closure(after) <= ops


def _share(size: int, k: int, scheme: Scheme) -> tuple[int, int]:
    heights = scheme.heights or (1,) * scheme.count
    begin, end = (math.ceil(size * sum(heights[:n]) / sum(heights)) for n in (k, k + 1))
    return begin, end


_Blocks = list[dict[int, tuple[int, int]]]


def _slides(
    rows: Mapping[int, Mapping[str, Seen]],
    length: Mapping[int, int],
    maker: Mapping[str, int],
    scheme: Scheme,
) -> _Blocks | None:
    done = dict.fromkeys(length, 0)
    blocks: _Blocks = []
    for k in range(scheme.count):
        block = {}
        for i in sorted(length):
            inner = [(seen, maker[n]) for n, seen in rows[i].items() if n in maker]
            if not inner and length[i] < scheme.count:
                return None
            end = length[i] if inner else _share(length[i], k, scheme)[1]
            while end > done[i] and any(seen[:end, done[j] :].any() for seen, j in inner):
                end -= 1
            if end > done[i]:
                block[i] = (done[i], end)
                done[i] = end
        blocks.append(block)
    return blocks if done == dict(length) else None


def _lines(
    graph: Graph,
    chosen: Mapping[int, int],
    rows: Mapping[int, Mapping[str, Seen]],
    length: Mapping[int, int],
    maker: Mapping[str, int],
    scheme: Scheme,
) -> _Blocks | None:
    """What leaves goes forward evenly; each other operator is only as far as its readers will soon
    need, about as far in each block, by whole grains: from the start on, or, where it leads, from
    what its first block must have. What is smaller than what it is made of is as far as it can be.
    """
    count, blocks = scheme.count, range(scheme.count)
    of = dict(zip(scheme.ops, scheme.grains, strict=False))
    if count > max(length.values()):
        return None
    ends = {i: [0] * count for i in length}
    for i in sorted(length, reverse=True):
        size, grain, name = length[i], of.get(graph.ops[i].name, 1), graph.ops[i].outputs[0]
        need = list(ends[i])
        leaves = name in graph.outputs or set(graph.consumers[name]) - set(chosen)
        if leaves or chosen[i] == _SUMS:
            shares = [_share(size, k, scheme)[1] for k in blocks]
            need = [max(n, s // grain * grain) for n, s in zip(need, shares, strict=True)]
        for k in reversed(blocks[:-1]):
            height = scheme.heights[k + 1] / sum(scheme.heights) if scheme.heights else 1 / count
            need[k] = max(need[k], need[k + 1] - max(math.ceil(size * height - 1e-9), 1))
        first = next((n for n in need if n > 0), 0)
        leads = scheme.mode is Mode.LEADING and grain > 1 and first > grain
        start = first if leads else 0
        whole = [start + math.ceil((n - start) / grain) * grain if n > 0 else 0 for n in need]
        ends[i] = [min(n, size) for n in whole[:-1]] + [size]
        for operand, seen in rows[i].items():
            if operand in maker:
                other = maker[operand]
                for k in blocks:
                    read = np.flatnonzero(seen[: ends[i][k]].any(axis=0))
                    last = int(read[-1]) + 1 if len(read) else 0
                    last = length[other] if ends[i][k] == size else last
                    ends[other][k] = max(ends[other][k], last)
    for i in sorted(length):
        inner = [(seen, maker[n], n) for n, seen in rows[i].items() if n in maker]
        name = graph.ops[i].outputs[0]
        leaves = name in graph.outputs or set(graph.consumers[name]) - set(chosen)
        held = sum(graph.tensors[n].size_bytes for _, _, n in inner)
        alone = of.get(graph.ops[i].name, 1) == 1 and not leaves and chosen[i] != _SUMS
        if alone and graph.tensors[name].size_bytes < held:
            for k in blocks:
                end = length[i]
                while any(seen[:end, ends[j][k] :].any() for seen, j, _ in inner):
                    end -= 1
                ends[i][k] = max(ends[i][k], end)
    made = [{i: (([0, *end])[k], end[k]) for i, end in ends.items()} for k in blocks]
    return [{i: run for i, run in block.items() if run[0] < run[1]} for block in made]


def _tiles(
    graph: Graph,
    chosen: Mapping[int, int],
    rows: Mapping[int, Mapping[str, Seen]],
    length: Mapping[int, int],
    maker: Mapping[str, int],
    scheme: Scheme,
) -> _Blocks | None:
    blocks: _Blocks = []
    for k in range(scheme.count):
        need: dict[int, tuple[int, int]] = {}
        for i in sorted(length, reverse=True):
            name = graph.ops[i].outputs[0]
            leaves = name in graph.outputs or set(graph.consumers[name]) - set(chosen)
            if leaves or chosen[i] == _SUMS:
                share = _share(length[i], k, scheme)
                if length[i] < scheme.count or need.get(i, share) != share:
                    return None
                need[i] = share
            begin, end = need[i]
            for operand, seen in rows[i].items():
                read = np.flatnonzero(seen[begin:end].any(axis=0))
                if not len(read):
                    return None
                if operand in maker:
                    run = need.get(maker[operand], (int(read[0]), int(read[-1]) + 1))
                    run = (min(run[0], int(read[0])), max(run[1], int(read[-1]) + 1))
                    need[maker[operand]] = run
        blocks.append(need)
    return blocks
