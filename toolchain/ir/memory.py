"""What the schedulers and allocators see of a graph: buffers, uses, scratch, overlaps.

A *buffer* is a run of bytes in the arena that holds one tensor, or several that are views of one
another. Views own no bytes, so two tensors of one buffer differ only in their offset inside it.

Accounting (one meaning everywhere). At the step that runs operator `i` of an order, the *stable
footprint* is the size of every live buffer, those that `i` reads and writes included, plus the
scratch bytes of `i`, less what an allowed overlap saves. *Peak* is its maximum over the steps.
Graph inputs live from the start to their last use; graph outputs to the end; states throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Member:
    """A tensor that lives in a buffer, `offset_bytes` from the buffer's start."""

    tensor: str
    offset_bytes: int = 0


@dataclass(frozen=True)
class Buffer:
    """Bytes that live and die together.

    `from_start`: holds a graph input; `to_end`: an output; both: a state, which outlives the run.
    """

    name: str
    size_bytes: int
    members: tuple[Member, ...]
    alignment_bytes: int = 4
    from_start: bool = False
    to_end: bool = False


@dataclass(frozen=True)
class Overlap:
    """While `op` runs, its output buffer may share bytes with its input buffer, if that dies there.

    Safe where offset(input) >= offset(output) + lead_bytes, `exact`: only where the two are equal;
    the kernel has then read every input byte before it writes over it. Elementwise kernels have
    lead 0 (in place). Negative leads arise where the input is a view into its buffer.
    """

    op: int
    input: int
    output: int
    lead_bytes: int = 0
    exact: bool = False


@dataclass(frozen=True)
class MemoryProblem:
    """A graph by index. `uses[i]`: buffers that operator i reads or writes, ascending.

    `predecessors[i]`: operators that must run before operator i (indices need not be a
    topological order). `scratch_bytes[i]`: working memory while i runs, and only then.
    """

    ops: tuple[str, ...]
    predecessors: tuple[tuple[int, ...], ...]
    uses: tuple[tuple[int, ...], ...]
    scratch_bytes: tuple[int, ...]
    buffers: tuple[Buffer, ...]
    overlaps: tuple[Overlap, ...] = ()

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """For each buffer the operators that touch it, ascending."""
        table: list[list[int]] = [[] for _ in self.buffers]
        for op, used in enumerate(self.uses):
            for buffer in used:
                table[buffer].append(op)
        return tuple(tuple(users) for users in table)

    @cached_property
    def overlaps_of(self) -> tuple[tuple[Overlap, ...], ...]:
        """For each operator the overlaps that an order can make possible.

        None over a graph output or a state, which never die, nor with a graph input or a state,
        which no operator bears.
        """
        table: list[list[Overlap]] = [[] for _ in self.ops]
        for overlap in self.overlaps:
            if (
                not self.buffers[overlap.input].to_end
                and not self.buffers[overlap.output].from_start
            ):
                table[overlap.op].append(overlap)
        return tuple(tuple(entries) for entries in table)

    def lifetimes(self, order: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Half-open [start, end) in steps of `order` for each buffer; (0, 0) if nothing touches it.

        A graph input that nothing reads still arrives: it lives through step 0. An output lives
        to the last step; where it is also an input it lives throughout.
        """
        position = {op: step for step, op in enumerate(order)}
        last = max(len(order), 1)
        result = []
        for buffer, users in zip(self.buffers, self.users, strict=True):
            steps = [position[user] for user in users]
            if not steps and not (buffer.from_start or buffer.to_end):
                result.append((0, 0))
                continue
            start = 0 if buffer.from_start or not steps else min(steps)
            end = last if buffer.to_end else max(steps, default=0) + 1
            result.append((start, end))
        return tuple(result)


def applied_overlaps(problem: MemoryProblem, order: Sequence[int]) -> tuple[Overlap, ...]:
    """The overlaps that `order` makes possible: the input dies where the output is born.

    Each buffer takes part at most once as input and once as output; where several are possible
    the largest saving wins, then the lowest input index.
    """
    lifetimes = problem.lifetimes(order)
    chosen: list[Overlap] = []
    for step, op in enumerate(order):
        possible = [
            o
            for o in problem.overlaps_of[op]
            if lifetimes[o.input][1] == step + 1
            and lifetimes[o.output][0] == step
            and saving_bytes(problem, o) > 0
        ]
        possible.sort(key=lambda o: (-saving_bytes(problem, o), o.input, o.output))
        taken: set[int] = set()
        for overlap in possible:
            if overlap.input not in taken and overlap.output not in taken:
                taken.update((overlap.input, overlap.output))
                chosen.append(overlap)
    return tuple(chosen)


def together_bytes(dying_bytes: int, born_bytes: int, lead_bytes: int, exact: bool) -> int:
    """The fewest bytes that hold a dying block and one born over it, at the lead or beyond."""
    distance = lead_bytes if exact else max(lead_bytes, 0)
    return max(born_bytes, distance + dying_bytes) - min(distance, 0)


def saving_bytes(problem: MemoryProblem, overlap: Overlap) -> int:
    """Bytes that the overlap takes off the sum of its two buffers."""
    size_in = problem.buffers[overlap.input].size_bytes
    size_out = problem.buffers[overlap.output].size_bytes
    together = together_bytes(size_in, size_out, overlap.lead_bytes, overlap.exact)
    return size_in + size_out - together


def footprint(problem: MemoryProblem, order: Sequence[int]) -> tuple[int, ...]:
    """Stable footprint in bytes at each step of `order`, which must be a permutation of the ops."""
    steps = [problem.scratch_bytes[op] for op in order] or [0]
    lifetimes = problem.lifetimes(order)
    for buffer, (start, end) in zip(problem.buffers, lifetimes, strict=True):
        for step in range(start, end):
            steps[step] += buffer.size_bytes
    position = {op: step for step, op in enumerate(order)}
    for overlap in applied_overlaps(problem, order):
        steps[position[overlap.op]] -= saving_bytes(problem, overlap)
    return tuple(steps)


def peak_bytes(problem: MemoryProblem, order: Sequence[int]) -> int:
    """The largest stable footprint over the steps of `order`."""
    return max(footprint(problem, order))


def check_order(problem: MemoryProblem, order: Sequence[int]) -> None:
    """Raise ValueError, naming the operator, unless `order` runs every operator once, in time."""
    seen: set[int] = set()
    for op in order:
        if not 0 <= op < len(problem.ops):
            raise ValueError(f"order names operator {op}, which does not exist")
        if op in seen:
            raise ValueError(f"operator {problem.ops[op]!r} is scheduled twice")
        missing = [p for p in problem.predecessors[op] if p not in seen]
        if missing:
            raise ValueError(
                f"operator {problem.ops[op]!r} runs before its predecessor "
                f"{problem.ops[missing[0]]!r}"
            )
        seen.add(op)
    if len(seen) != len(problem.ops):
        absent = next(i for i in range(len(problem.ops)) if i not in seen)
        raise ValueError(f"operator {problem.ops[absent]!r} is never scheduled")
