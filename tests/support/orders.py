"""Brute force over orders, and random memory problems with everything that makes them hard."""

from __future__ import annotations

import random
from functools import cache

from toolchain.ir import Buffer, Member, MemoryProblem, Overlap
from toolchain.ir.memory import saving_bytes


def step_bytes(problem: MemoryProblem, done: frozenset[int], op: int) -> int:
    """Footprint of running `op` after exactly `done`, from the definition in `ir.memory`."""
    total = problem.scratch_bytes[op]
    now = done | {op}
    dies, born = set(), set()
    for index, (buffer, users) in enumerate(zip(problem.buffers, problem.users, strict=True)):
        if not users:
            live = buffer.to_end or (buffer.from_start and not done)
        else:
            begun = buffer.from_start or any(u in now for u in users)
            over = not buffer.to_end and all(u in done for u in users)
            live = begun and not over
            if live and not buffer.to_end and all(u in now for u in users):
                dies.add(index)
            if live and not buffer.from_start and not any(u in done for u in users):
                born.add(index)
        total += buffer.size_bytes if live else 0
    possible = [
        o
        for o in problem.overlaps_of[op]
        if o.input in dies and o.output in born and saving_bytes(problem, o) > 0
    ]
    possible.sort(key=lambda o: (-saving_bytes(problem, o), o.input, o.output))
    taken: set[int] = set()
    for overlap in possible:
        if overlap.input not in taken and overlap.output not in taken:
            taken |= {overlap.input, overlap.output}
            total -= saving_bytes(problem, overlap)
    return total


def least_peak(problem: MemoryProblem) -> int:
    """The smallest peak of any order, by dynamic programming over all sets of operators."""
    everything = frozenset(range(len(problem.ops)))

    @cache
    def rest(done: frozenset[int]) -> int:
        if done == everything:
            return 0
        return min(
            max(step_bytes(problem, done, op), rest(done | {op}))
            for op in sorted(everything - done)
            if done.issuperset(problem.predecessors[op])
        )

    return rest(frozenset())


def hard_problem(seed: int, most_ops: int = 9) -> MemoryProblem:
    """A random problem: several inputs and outputs, scratch, in place, shared buffers, loose parts.

    A buffer may have several writers (a concatenation laid in place), be both input and output,
    or be touched by nothing at all.
    """
    rng = random.Random(seed)
    count = rng.randint(1, most_ops)
    top = rng.choice([2, 4, 20])
    buffers: list[Buffer] = []
    users: list[set[int]] = []
    writers: list[int | None] = []

    def add(name: str, writer: int | None, **ends: bool) -> int:
        buffers.append(Buffer(name, rng.randint(0, top), (Member(name),), **ends))
        users.append(set() if writer is None else {writer})
        writers.append(writer)
        return len(buffers) - 1

    for i in range(rng.randint(0, 2)):
        add(f"in{i}", None, from_start=True, to_end=rng.random() < 0.1)
    if rng.random() < 0.1:
        add("loose", None, to_end=rng.random() < 0.5)
    before: list[set[int]] = []
    overlaps: list[Overlap] = []
    reach = rng.choice([2, 4, 9])
    for op in range(count):
        known = list(range(max(0, len(buffers) - reach), len(buffers)))
        reads = rng.sample(known, min(len(known), rng.choice([0, 1, 1, 2, 2, 3])))
        before.append({w for b in reads if (w := writers[b]) is not None})
        outputs = [
            add(f"t{op}.{port}", op, to_end=rng.random() < 0.12)
            for port in range(rng.choice([1, 1, 1, 2]))
        ]
        if rng.random() < 0.15 and op:
            shared = rng.choice(range(len(buffers)))
            users[shared].add(op)
            if rng.random() < 0.4:
                outputs.append(shared)
        for buffer in reads:
            users[buffer].add(op)
        for source in reads:
            for target in outputs:
                if rng.random() < 0.4 and source != target:
                    overlaps.append(Overlap(op, source, target, rng.choice([0, 0, 1, 3])))
    uses = [tuple(b for b in range(len(buffers)) if op in users[b]) for op in range(count)]
    relabel = list(range(count))
    rng.shuffle(relabel)
    by_new = sorted(range(count), key=lambda op: relabel[op])
    return MemoryProblem(
        ops=tuple(f"op{op}" for op in range(count)),
        predecessors=tuple(tuple(sorted(relabel[p] for p in before[op])) for op in by_new),
        uses=tuple(uses[op] for op in by_new),
        scratch_bytes=tuple(rng.choice([0, 0, 0, rng.randint(0, top)]) for _ in range(count)),
        buffers=tuple(buffers),
        overlaps=tuple(Overlap(relabel[o.op], o.input, o.output, o.lead_bytes) for o in overlaps),
    )
