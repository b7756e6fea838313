"""Memory problems, the view that schedulers and allocators have of a graph: buffers, uses, scratch,
overlaps.

A *buffer* is a run of bytes in the arena that holds one tensor, or several that are views of one
another. Views own no bytes, so two tensors of one buffer differ only in their offset inside it.

Accounting (the same everywhere): at the step that runs operator `i` of an order, the *stable
footprint* is the size of every live buffer, including those that `i` reads and writes, plus the
scratch bytes of `i`, minus what an allowed overlap saves. The *peak* is its maximum over the steps.
Graph inputs live from the start to their last use, graph outputs to the end, states throughout.
Where a problem gives the bytes that an operator touches (`accesses`), only the live run of a buffer
counts, not the whole buffer (`ir.progress`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from toolchain.ir.progress import NOTHING, Access, LiveRun, Takeover, Touch, live_runs
from toolchain.ir.tensor import Serial


@dataclass(frozen=True)
class Member:
    """A tensor that lies in a buffer, `offset_bytes` from the buffer's start.

    `pitch_bytes`: for an image that is a strided view of a larger one, the bytes from one line to
    the next; 0 where lines are contiguous.
    """

    tensor: str
    offset_bytes: int = 0
    pitch_bytes: int = 0


@dataclass(frozen=True)
class Buffer:
    """Bytes that become live, and die, together.

    `from_start`: it holds a graph input. `to_end`: it holds a graph output. Both: a state, which
    outlives the run. `serial`: that of the tensor that takes all of it.
    """

    name: str
    size_bytes: int
    members: tuple[Member, ...]
    alignment_bytes: int = 4
    from_start: bool = False
    to_end: bool = False
    serial: Serial | None = None


@dataclass(frozen=True)
class Overlap:
    """While `op` runs, its output buffer may share bytes with an input buffer that dies there.

    If the buffers are live only in part, the bytes that the operator writes may share bytes with
    those that it reads for the last time.

    Safe where offset(input) >= offset(output) + lead_bytes; with `exact`, only where the two sides
    are equal. The kernel has then read every input byte before it overwrites it. Elementwise
    kernels have lead 0 (in place). Leads are negative where the input is a view at an offset into
    its buffer.
    """

    op: int
    input: int
    output: int
    lead_bytes: int = 0
    exact: bool = False


@dataclass(frozen=True)
class MemoryProblem:
    """A graph by index. `uses[i]`: buffers that operator i reads or writes, ascending.

    predecessors[i]   operators that must run before operator i; indices need not be in topological
                      order.
    scratch_bytes[i]  working memory while i runs, and only then.
    accesses[i]       the bytes that i reads or writes of its buffers, where only those shall count;
                      empty where all its outputs are views. Schedulers that search always look at
                      whole buffers.
    serials[i]        that of the first output of i; () where no operator is a block of another.
    """

    ops: tuple[str, ...]
    predecessors: tuple[tuple[int, ...], ...]
    uses: tuple[tuple[int, ...], ...]
    scratch_bytes: tuple[int, ...]
    buffers: tuple[Buffer, ...]
    overlaps: tuple[Overlap, ...] = ()
    accesses: tuple[tuple[Access, ...], ...] = ()
    serials: tuple[Serial | None, ...] = ()

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """Operators that read or write a buffer, for each buffer, ascending."""
        table: list[list[int]] = [[] for _ in self.buffers]
        for op, used in enumerate(self.uses):
            for buffer in used:
                table[buffer].append(op)
        return tuple(tuple(users) for users in table)

    @cached_property
    def overlaps_of(self) -> tuple[tuple[Overlap, ...], ...]:
        """Overlaps that some order can make possible, for each operator.

        Excluded are inputs that are a graph output or a state, which never die, and outputs that
        are a graph input or a state, which no operator makes live.
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
        """Half-open [start, end) in steps of `order` for each buffer; (0, 0) if nothing uses it.

        A graph input that nothing reads still arrives, and lives through step 0. An output lives to
        the last step; where it is also an input it lives throughout.
        """
        if self.accesses:
            return tuple(
                (runs[0].step, runs[-1].step) if runs else (0, 0) for runs in self.live_runs(order)
            )
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

    def live_runs(self, order: Sequence[int]) -> tuple[tuple[LiveRun, ...], ...]:
        """The live run of each buffer from step to step, the empty run after its death last.

        () for a buffer that never lives. The caller writes all of a graph input before the first
        step, and reads all of an output after the last one.
        """
        if not self.accesses:
            return tuple(
                (LiveRun(start, 0, buffer.size_bytes), LiveRun(end, 0, 0)) if start < end else ()
                for buffer, (start, end) in zip(self.buffers, self.lifetimes(order), strict=True)
            )
        touches: list[list[Touch]] = [[] for _ in self.buffers]
        for step, op in enumerate(order):
            for access in self.accesses[op]:
                touches[access.buffer].append((step, access.begin_bytes, access.end_bytes))
        for buffer, touched in zip(self.buffers, touches, strict=True):
            if buffer.from_start:
                touched.append((0, 0, buffer.size_bytes))
            if buffer.to_end:
                touched.append((max(len(order), 1) - 1, 0, buffer.size_bytes))
        return tuple(live_runs(touched) for touched in touches)


def applied_overlaps(problem: MemoryProblem, order: Sequence[int]) -> tuple[Overlap, ...]:
    """The overlaps that `order` makes possible: the input, or bytes of it, dies where the output is
    born.

    At each step a buffer takes part at most once as input and once as output. Where several
    overlaps are possible the largest saving wins, then the lowest input index.
    """
    return tuple(overlap for overlap, _ in _savings(problem, order, problem.live_runs(order)))


def _savings(
    problem: MemoryProblem, order: Sequence[int], runs: Sequence[Sequence[LiveRun]]
) -> list[tuple[Overlap, int]]:
    """The overlaps that `order` makes possible, and what each saves at its step."""
    changes = [{run.step: i for i, run in enumerate(of_buffer)} for of_buffer in runs]
    chosen: list[tuple[Overlap, int]] = []
    for step, op in enumerate(order):
        possible = []
        for o in problem.overlaps_of[op]:
            after, now = changes[o.input].get(step + 1, 0), changes[o.output].get(step)
            if after and now is not None:
                if problem.accesses:
                    dying, born = runs[o.input], runs[o.output]
                    saved = Takeover(
                        (dying[after - 1], dying[after]),
                        (born[now - 1] if now else NOTHING, born[now]),
                        o.lead_bytes,
                        o.exact,
                    ).shared_bytes()
                else:
                    saved = saving_bytes(problem, o)
                if saved > 0:
                    possible.append((o, saved))
        possible.sort(key=lambda p: (-p[1], p[0].input, p[0].output))
        taken: set[int] = set()
        for overlap, saved in possible:
            if overlap.input not in taken and overlap.output not in taken:
                taken.update((overlap.input, overlap.output))
                chosen.append((overlap, saved))
    return chosen


def together_bytes(dying_bytes: int, born_bytes: int, lead_bytes: int, exact: bool) -> int:
    """The fewest bytes that hold a dying block and one born over it, at the lead or further
    apart.
    """
    distance = lead_bytes if exact else max(lead_bytes, 0)
    return max(born_bytes, distance + dying_bytes) - min(distance, 0)


def saving_bytes(problem: MemoryProblem, overlap: Overlap) -> int:
    """Bytes that the overlap saves from the sum of its two buffers, both live as a whole."""
    buffers = problem.buffers[overlap.input], problem.buffers[overlap.output]
    sizes = buffers[0].size_bytes, buffers[1].size_bytes
    return sum(sizes) - together_bytes(*sizes, overlap.lead_bytes, overlap.exact)


def footprint(problem: MemoryProblem, order: Sequence[int]) -> tuple[int, ...]:
    """Stable footprint in bytes at each step of `order`, which must be a permutation of the
    operators.
    """
    scratch = [problem.scratch_bytes[op] for op in order] or [0]
    changes = [0] * (len(scratch) + 1)
    runs = problem.live_runs(order)
    for of_buffer in runs:
        before = 0
        for run in of_buffer:
            changes[run.step] += run.size_bytes - before
            before = run.size_bytes
    steps = [
        working + live for working, live in zip(scratch, accumulate(changes[:-1]), strict=True)
    ]
    position = {op: step for step, op in enumerate(order)}
    for overlap, saved in _savings(problem, order, runs):
        steps[position[overlap.op]] -= saved
    return tuple(steps)


def peak_bytes(problem: MemoryProblem, order: Sequence[int]) -> int:
    """The largest stable footprint over the steps of `order`."""
    return max(footprint(problem, order))


def check_order(problem: MemoryProblem, order: Sequence[int]) -> None:
    """Raise ValueError, naming the operator, unless `order` runs every operator once and after its
    predecessors.
    """
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
