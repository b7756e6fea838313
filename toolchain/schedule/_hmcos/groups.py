"""Groups of sequences (HMCOS, DAC 2022, section 3.1.2).

The group of a cell's output c consists of the sequences that c post-dominates and that do not
dominate c: those computed for c alone. Behind c, the sequences that c dominates may shrink its
output at once; their subset with the smallest output is a second group. If a model does not name
its cells, every join of branches is a candidate, and the largest groups within a limit come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.schedule._exact.compiled import Compiled
from toolchain.schedule._hmcos.sequences import is_acyclic
from toolchain.schedule._sets import bits

LARGEST_GROUP = 48
SMALLEST_GROUP = 4
LARGEST_INTRUSION = 10


@dataclass(frozen=True)
class Unit:
    """A sequence (one member) or a group of sequences. `mask`: its operators as a bit set."""

    members: tuple[tuple[int, ...], ...]
    mask: int

    @property
    def is_group(self) -> bool:
        return len(self.members) > 1


def unit(members: Sequence[tuple[int, ...]]) -> Unit:
    """The unit of these sequences."""
    return Unit(tuple(members), sum(1 << op for chain in members for op in chain))


class _Sequences:
    """The graph of sequences, with its dominators and post-dominators as bit sets."""

    def __init__(self, problem: Compiled, chains: Sequence[tuple[int, ...]]) -> None:
        self.problem = problem
        self.chains = chains
        of = {op: i for i, chain in enumerate(chains) for op in chain}
        self.before = [
            sorted({of[p] for op in chain for p in problem.predecessors[op]} - {i})
            for i, chain in enumerate(chains)
        ]
        self.after: list[list[int]] = [[] for _ in chains]
        for i, before in enumerate(self.before):
            for other in before:
                self.after[other].append(i)
        rank = _rank(problem)
        order = sorted(range(len(chains)), key=lambda i: rank[chains[i][0]])
        self.dominators = _dominators(order, self.before)
        self.post_dominators = _dominators(order[::-1], self.after)

    def cell(self, out: int) -> list[int]:
        """Sequences that `out` post-dominates and that do not dominate it; `out` is the last."""
        members, pending = {out}, [out]
        while pending:
            for other in self.before[pending.pop()]:
                inside = self.post_dominators[other] >> out & 1
                if other not in members and inside and not self.dominators[out] >> other & 1:
                    members.add(other)
                    pending.append(other)
        return sorted(members)

    def intrusion(self, out: int, free: set[int]) -> list[int]:
        """The subset of what `out` dominates that leaves the least to be kept; [] if none does."""
        region = [s for s in range(len(self.chains)) if s in free and self.dominators[s] >> out & 1]
        region = [s for s in region if s != out]
        if not 1 < len(region) <= LARGEST_INTRUSION:
            return []
        best: list[int] = []
        least = self._kept_bytes({out})
        for choice in range(1, 1 << len(region)):
            chosen = {region[i] for i in bits(choice)}
            if all(p in chosen or p == out for s in chosen for p in self.before[s]):
                size = self._kept_bytes(chosen | {out})
                if size < least or (size == least and len(chosen) > len(best) > 0):
                    best, least = sorted(chosen), size
        return best if len(best) > 1 else []

    def _kept_bytes(self, chosen: set[int]) -> int:
        """Bytes of what the chosen sequences touch and others still need."""
        problem = self.problem
        ops = {op for s in chosen for op in self.chains[s]}
        touched = {b for op in ops for b in problem.uses[op]}
        return sum(
            problem.sizes[b]
            for b in touched
            if problem.late[b] or not all(u in ops for u in problem.users[b])
        )


def _rank(problem: Compiled) -> dict[int, int]:
    return {op: rank for rank, op in enumerate(problem.topological)}


def _dominators(order: Sequence[int], before: Sequence[Sequence[int]]) -> list[int]:
    """Bit sets, for each vertex, of the vertices on every path to it, itself included."""
    result = [0] * len(order)
    for vertex in order:
        common = -1
        for other in before[vertex]:
            common &= result[other]
        result[vertex] = (common if before[vertex] else 0) | 1 << vertex
    return result


def hierarchy(problem: Compiled, chains: Sequence[tuple[int, ...]]) -> list[Unit]:
    """Groups, and the sequences outside of them; together they hold every operator once."""
    graph = _Sequences(problem, chains)
    joins = [i for i in range(len(chains)) if len(graph.before[i]) > 1]
    cells = [(cell, out) for out in joins if len(cell := graph.cell(out)) >= SMALLEST_GROUP]
    cells = [(cell, out) for cell, out in cells if len(cell) <= LARGEST_GROUP]
    cells.sort(key=lambda entry: (-len(entry[0]), entry[1]))
    free = set(range(len(chains)))
    groups: list[list[int]] = []
    for cell, out in cells:
        if not free.issuperset(cell) or not _keeps_order(problem, chains, [*groups, cell]):
            continue
        groups.append(cell)
        free.difference_update(cell)
        behind = graph.intrusion(out, free)
        if behind and _keeps_order(problem, chains, [*groups, behind]):
            groups.append(behind)
            free.difference_update(behind)
    units = [unit([chains[s] for s in group]) for group in groups]
    units += [unit([chains[s]]) for s in sorted(free)]
    rank = _rank(problem)
    return sorted(units, key=lambda u: rank[u.members[0][0]])


def _keeps_order(
    problem: Compiled, chains: Sequence[tuple[int, ...]], groups: Sequence[Sequence[int]]
) -> bool:
    group_of = {s: index for index, group in enumerate(groups) for s in group}
    unit_of = [0] * problem.count
    units = len(groups)
    for index, chain in enumerate(chains):
        unit = group_of.get(index, units)
        units += unit == units
        for op in chain:
            unit_of[op] = unit
    return is_acyclic(problem, unit_of, units)


def needs(problem: Compiled, mask: int) -> int:
    """The operators outside that must run before the last of `mask`'s can, as a bit set."""
    before = 0
    for op in bits(mask):
        for predecessor in problem.predecessors[op]:
            before |= 1 << predecessor
    return before & ~mask
