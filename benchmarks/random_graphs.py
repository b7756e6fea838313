"""Random graphs of the families that the scheduling papers use, at any size.

Each generator takes the wished number of operators and a seed, and gives a MemoryProblem with
about that many operators, counted as HMCOS counts: activations and element-wise additions may
overwrite their input where it dies, weights are free.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from toolchain.ir import Buffer, Member, MemoryProblem, Overlap


class _Builder:
    """Grows a problem tensor by tensor; a tensor is the index of its buffer."""

    def __init__(self, input_bytes: int) -> None:
        self.sizes = [input_bytes]
        self._writer: list[int | None] = [None]
        self._reads: list[tuple[int, ...]] = []
        self._writes: list[int] = []
        self._overlaps: list[Overlap] = []

    @property
    def count(self) -> int:
        return len(self._reads)

    def op(self, reads: list[int], size_bytes: int, in_place: bool = False) -> int:
        op, output = len(self._reads), len(self.sizes)
        self.sizes.append(size_bytes)
        self._writer.append(op)
        self._reads.append(tuple(dict.fromkeys(reads)))
        self._writes.append(output)
        if in_place:
            same = [r for r in reads if self.sizes[r] == size_bytes]
            self._overlaps += [Overlap(op, same[0], output)] if same else []
        return output

    def conv(self, read: int, size_bytes: int) -> int:
        """Convolution and activation in place."""
        return self.op([self.op([read], size_bytes)], size_bytes, in_place=True)

    def add(self, reads: list[int]) -> int:
        total = reads[0]
        for read in reads[1:]:
            total = self.op([total, read], self.sizes[total], in_place=True)
        return total

    def problem(self) -> MemoryProblem:
        read = {r for reads in self._reads for r in reads}
        return MemoryProblem(
            ops=tuple(f"op{i}" for i in range(self.count)),
            predecessors=tuple(
                tuple(w for r in reads if (w := self._writer[r]) is not None)
                for reads in self._reads
            ),
            uses=tuple(
                tuple(sorted((*reads, write)))
                for reads, write in zip(self._reads, self._writes, strict=True)
            ),
            scratch_bytes=(0,) * self.count,
            buffers=tuple(
                Buffer(f"t{i}", size, (Member(f"t{i}"),), from_start=i == 0, to_end=i not in read)
                for i, size in enumerate(self.sizes)
            ),
            overlaps=tuple(self._overlaps),
        )


def randwire(operators: int, seed: int) -> MemoryProblem:
    """RandWire: Watts-Strogatz stages WS(32, 4, 0.75), each vertex add, activation, separable."""
    rng = random.Random(seed)
    graph = _Builder(64)
    entry = graph.conv(0, 64)
    size = 64
    while graph.count < operators:
        size = max(size // 2, 8) if rng.random() < 0.3 else size
        vertices = min(32, max(5, (operators - graph.count) // 5))
        edges = _watts_strogatz(rng, vertices, 4, 0.75)
        tensors: list[int] = []
        used: set[int] = set()
        for vertex in range(vertices):
            before = sorted(a for a, b in edges if b == vertex)
            used.update(before)
            total = graph.add([tensors[b] for b in before]) if before else entry
            active = graph.op([total], graph.sizes[total], in_place=bool(before))
            tensors.append(graph.op([graph.op([active], graph.sizes[active])], size))
        entry = graph.add([tensors[v] for v in range(vertices) if v not in used])
    return graph.problem()


def _watts_strogatz(
    rng: random.Random, vertices: int, neighbours: int, rewire: float
) -> set[tuple[int, int]]:
    edges: set[tuple[int, int]] = set()
    for vertex in range(vertices):
        for step in range(1, neighbours // 2 + 1):
            other = (vertex + step) % vertices
            if rng.random() < rewire:
                other = rng.choice([v for v in range(vertices) if v != vertex])
            edges.add((min(vertex, other), max(vertex, other)))
    return edges


def series_parallel(operators: int, seed: int) -> MemoryProblem:
    """Random series-parallel nesting; branches join by concatenation or addition."""
    rng = random.Random(seed)
    graph = _Builder(32)

    def grow(read: int, budget: int) -> int:
        if budget <= 1:
            return graph.op([read], rng.choice([8, 16, 24, 32, 48, 64]))
        if budget < 4 or rng.random() < 0.5:
            left = rng.randint(1, budget - 1)
            return grow(grow(read, left), budget - left)
        ways = rng.randint(2, min(5, budget - 1))
        tails = [grow(read, max(1, (budget - 1) // ways)) for _ in range(ways)]
        return graph.op(tails, rng.choice([16, 32, 64]))

    last = 0
    while graph.count < operators:
        last = grow(last, min(60, operators - graph.count))
    return graph.problem()


def nas_cells(operators: int, seed: int) -> MemoryProblem:
    """Cells of five blocks over the two cells before, one random cell repeated, as NASNet's."""
    rng = random.Random(seed)
    graph = _Builder(48)
    blocks = [(rng.randrange(2 + i), rng.randrange(2 + i), rng.random()) for i in range(5)]
    kinds = [(rng.choice([0, 1, 2]), rng.choice([0, 1, 2])) for _ in range(5)]
    size = 32
    before, last = 0, graph.conv(0, size)
    while graph.count < operators:
        size = max(4, size // 2) if rng.random() < 0.15 else size
        states = [graph.conv(before, size), graph.conv(last, size)]
        loose = set(range(7))
        for (a, b, _), (kind_a, kind_b) in zip(blocks, kinds, strict=True):
            parts = []
            for source, kind in ((a, kind_a), (b, kind_b)):
                loose.discard(source)
                tensor = states[source]
                for _ in range(kind):
                    active = graph.op([tensor], size, in_place=True)
                    tensor = graph.op([graph.op([active], size)], size)
                parts.append(tensor)
            states.append(graph.op(parts, size, in_place=True))
        tails = [states[i] for i in sorted(loose)]
        before, last = last, graph.op(tails, size * len(tails))
    return graph.problem()


def hrnet(operators: int, seed: int) -> MemoryProblem:
    """Four resolutions in parallel, residual blocks on each, and fusion of all with all."""
    rng = random.Random(seed)
    graph = _Builder(96)
    widths = [64, 32, 16, 8]
    stem = graph.conv(0, 64)
    branches = [graph.conv(stem, width) for width in widths]
    depth = rng.choice([1, 2, 4])
    while graph.count < operators:
        for index, width in enumerate(widths):
            for _ in range(depth):
                inner = graph.op([graph.conv(branches[index], width)], width)
                total = graph.op([inner, branches[index]], width)
                branches[index] = graph.op([total], width, in_place=True)
        fused = []
        for i, width in enumerate(widths):
            parts = [branches[i]]
            for j in range(len(widths)):
                if j > i:
                    parts.append(graph.op([graph.op([branches[j]], widths[j] // 2)], width))
                elif j < i:
                    step = branches[j]
                    for k in range(j + 1, i + 1):
                        step = graph.op([step], widths[k])
                    parts.append(step)
            total = parts[0]
            for part in parts[1:]:
                total = graph.op([total, part], width)
            fused.append(graph.op([total], width, in_place=True))
        branches = fused
    joined = graph.op([graph.op([b], 24) for b in branches], 96)
    graph.op([joined], 4)
    return graph.problem()


FAMILIES: dict[str, Callable[[int, int], MemoryProblem]] = {
    "randwire": randwire,
    "series-parallel": series_parallel,
    "nas-cells": nas_cells,
    "hrnet": hrnet,
}
