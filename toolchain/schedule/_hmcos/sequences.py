"""Sequences of operators that stay together (HMCOS, DAC 2022, section 3.1.1)."""

from __future__ import annotations

from toolchain.schedule._exact.compiled import Compiled


def sequences(problem: Compiled) -> list[tuple[int, ...]]:
    """Split the operators into chains, in topological order of their heads.

    An operator joins the chain before it if it is that chain's only successor, has no other
    predecessor, and one of two conditions holds: (1) it is element-wise, that is, it may run in
    place; (2) all that the chain's head reads has one consumer, and neither the transient nor the
    stable footprint rises above what the chain has reached so far.
    """
    joined: set[int] = set()
    chains = []
    for head in problem.topological:
        if head in joined:
            continue
        chain = [head]
        while (follower := _only_follower(problem, chain[-1])) is not None:
            if not _joins(problem, chain, follower):
                break
            chain.append(follower)
        joined.update(chain)
        chains.append(tuple(chain))
    return chains


def _only_follower(problem: Compiled, op: int) -> int | None:
    after = problem.successors[op]
    if len(after) == 1 and len(problem.predecessors[after[0]]) == 1:
        return after[0]
    return None


def _joins(problem: Compiled, chain: list[int], op: int) -> bool:
    if any(s.size_bytes == problem.sizes[s.born] for s in problem.savings_of[op]):
        return True
    if any(len(problem.successors[p]) != 1 for p in problem.predecessors[chain[0]]):
        return False
    profile = _profile(problem, [*chain, op])
    (transient, stable), before = profile[-1], profile[:-1]
    return transient <= max(t for t, _ in before) and stable <= max(s for _, s in before)


def _profile(problem: Compiled, chain: list[int]) -> list[tuple[int, int]]:
    """(transient, stable) bytes after each operator, if all that it reads died with it."""
    live = 0
    result = []
    for op in chain:
        out = _writes(problem, op)
        transient = live + sum(problem.sizes[b] for b in out)
        live = transient - sum(
            problem.sizes[b] for b in problem.uses[op] if b not in out and not problem.late[b]
        )
        result.append((transient, live))
    return result


def _writes(problem: Compiled, op: int) -> set[int]:
    """Buffers that no other operator can have touched before `op`."""
    below = problem.descendants[op]
    return {
        b
        for b in problem.uses[op]
        if not problem.early[b] and all(u == op or below >> u & 1 for u in problem.users[b])
    }


def is_acyclic(problem: Compiled, unit_of: list[int], units: int) -> bool:
    """Whether the units can be ordered one after another; `unit_of[op]` numbers them from 0."""
    after: list[set[int]] = [set() for _ in range(units)]
    for op, before in enumerate(problem.predecessors):
        for predecessor in before:
            if unit_of[predecessor] != unit_of[op]:
                after[unit_of[predecessor]].add(unit_of[op])
    waiting = [0] * units
    for row in after:
        for unit in row:
            waiting[unit] += 1
    ready = [unit for unit, count in enumerate(waiting) if not count]
    for unit in ready:
        for follower in after[unit]:
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    return len(ready) == units
