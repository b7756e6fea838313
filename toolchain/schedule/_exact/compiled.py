"""A memory problem with everything precomputed that an exact search would look up repeatedly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from toolchain.ir import MemoryProblem
from toolchain.ir.memory import saving_bytes


@dataclass(frozen=True)
class Saving:
    """`size_bytes` less at operator `op` if buffer `dying` dies there and `born` is born there."""

    op: int
    dying: int
    born: int
    size_bytes: int


@dataclass(frozen=True)
class Compiled:
    """Operators and buffers by index; every buffer here has at least one user.

    `early[b]`: live from the start. `late[b]`: live to the end. `base_bytes` are always live.
    `savings` are sorted by operator, in the order in which `ir.memory` applies them.
    """

    predecessors: tuple[tuple[int, ...], ...]
    scratch_bytes: tuple[int, ...]
    sizes: tuple[int, ...]
    users: tuple[tuple[int, ...], ...]
    early: tuple[bool, ...]
    late: tuple[bool, ...]
    savings: tuple[Saving, ...]
    base_bytes: int

    @property
    def count(self) -> int:
        return len(self.predecessors)

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        table: list[list[int]] = [[] for _ in self.predecessors]
        for op, before in enumerate(self.predecessors):
            for predecessor in before:
                table[predecessor].append(op)
        return tuple(tuple(row) for row in table)

    @cached_property
    def uses(self) -> tuple[tuple[int, ...], ...]:
        table: list[list[int]] = [[] for _ in self.predecessors]
        for buffer, users in enumerate(self.users):
            for user in users:
                table[user].append(buffer)
        return tuple(tuple(row) for row in table)

    @cached_property
    def savings_of(self) -> tuple[tuple[Saving, ...], ...]:
        """Savings of each operator, in their order."""
        table: list[list[Saving]] = [[] for _ in self.predecessors]
        for saving in self.savings:
            table[saving.op].append(saving)
        return tuple(tuple(row) for row in table)

    @cached_property
    def topological(self) -> tuple[int, ...]:
        waiting = [len(before) for before in self.predecessors]
        order = [op for op, left in enumerate(waiting) if not left]
        for op in order:
            for successor in self.successors[op]:
                waiting[successor] -= 1
                if not waiting[successor]:
                    order.append(successor)
        return tuple(order)

    @cached_property
    def descendants(self) -> tuple[int, ...]:
        """Bit sets, for each operator, of those that come after it in every order."""
        below = [0] * self.count
        for op in reversed(self.topological):
            for successor in self.successors[op]:
                below[op] |= below[successor] | 1 << successor
        return tuple(below)

    @cached_property
    def ancestors(self) -> tuple[int, ...]:
        """Bit sets, for each operator, of those that come before it in every order."""
        above = [0] * self.count
        for op in self.topological:
            for predecessor in self.predecessors[op]:
                above[op] |= above[predecessor] | 1 << predecessor
        return tuple(above)

    def reversed(self) -> Compiled:
        """The problem whose orders are this one's read backwards, with the same peaks."""
        return replace(
            self,
            predecessors=self.successors,
            early=self.late,
            late=self.early,
            savings=tuple(Saving(s.op, s.born, s.dying, s.size_bytes) for s in self.savings),
        )

    def after(self, first: int) -> Compiled:
        """This problem, with operator `first` forced to run before all others."""
        before = tuple(
            () if op == first else (*row, first) if first not in row else row
            for op, row in enumerate(self.predecessors)
        )
        return replace(self, predecessors=before)


def compiled(problem: MemoryProblem) -> Compiled:
    """Compile `problem`. Buffers that no operator touches become part of the base, or vanish."""
    kept = [b for b, users in enumerate(problem.users) if users]
    place = {old: new for new, old in enumerate(kept)}
    buffers = problem.buffers
    base = sum(b.size_bytes for i, b in enumerate(buffers) if b.to_end and i not in place)
    savings = [
        Saving(o.op, place[o.input], place[o.output], saving_bytes(problem, o))
        for o in problem.overlaps
        if saving_bytes(problem, o) > 0
        and not buffers[o.input].to_end
        and not buffers[o.output].from_start
    ]
    savings.sort(key=lambda s: (s.op, -s.size_bytes, s.dying, s.born))
    whole = Compiled(
        predecessors=problem.predecessors,
        scratch_bytes=problem.scratch_bytes,
        sizes=tuple(buffers[b].size_bytes for b in kept),
        users=tuple(problem.users[b] for b in kept),
        early=tuple(buffers[b].from_start for b in kept),
        late=tuple(buffers[b].to_end for b in kept),
        savings=tuple(savings),
        base_bytes=base,
    )
    possible = tuple(s for s in savings if _can_apply(whole, s))
    return whole if len(possible) == len(savings) else replace(whole, savings=possible)


def _can_apply(problem: Compiled, saving: Saving) -> bool:
    """Whether the operator can be the last to use the one and the first to use the other."""
    above, below = problem.ancestors[saving.op], problem.descendants[saving.op]
    return not any(below >> user & 1 for user in problem.users[saving.dying]) and not any(
        above >> user & 1 for user in problem.users[saving.born]
    )


def unread_bytes(problem: MemoryProblem) -> int:
    """Bytes of graph inputs that nothing reads and that are no outputs: they live through step 0
    only.
    """
    return sum(
        b.size_bytes
        for b, users in zip(problem.buffers, problem.users, strict=True)
        if b.from_start and not b.to_end and not users
    )


def greedy_saving_bytes(possible: Sequence[Saving]) -> int:
    """The bytes that `ir.memory.applied_overlaps` subtracts: the largest saving first, each buffer
    once."""
    taken: set[int] = set()
    total = 0
    for saving in possible:
        if saving.dying not in taken and saving.born not in taken:
            taken.update((saving.dying, saving.born))
            total += saving.size_bytes
    return total
