"""Off-chip traffic of an order on a two-level memory (SERENITY, MLSys 2020, section 4.2).

A buffer is on chip or off chip as a whole. An operator needs its buffers on chip. To make room, the
buffer whose next use is furthest away leaves first (Belady, IBM Systems Journal 1966); a graph
output after its last use is the furthest of all. A buffer that leaves costs a write unless an equal
copy is off chip already, and a buffer that comes back costs a read. Dead buffers cost nothing.
Graph inputs begin on chip, so an order whose peak fits causes no traffic. Where a single operator's
own buffers do not fit, some are streamed: inputs are read and outputs written once, in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.ir import MemoryProblem
from toolchain.ir.memory import applied_overlaps, check_order, saving_bytes


@dataclass(frozen=True)
class Traffic:
    """Bytes that cross the chip's boundary during one run of an order."""

    read_bytes: int
    written_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.read_bytes + self.written_bytes


def off_chip_traffic(problem: MemoryProblem, order: Sequence[int], on_chip_bytes: int) -> Traffic:
    """Traffic of `order` with `on_chip_bytes` of memory. Raises ValueError for an invalid order.

    Constants are not counted: every order reads them once.
    """
    check_order(problem, order)
    return _Replay(problem, order, on_chip_bytes).run()


class _Replay:
    def __init__(self, problem: MemoryProblem, order: Sequence[int], on_chip_bytes: int) -> None:
        self._problem = problem
        self._order = order
        self._room = on_chip_bytes
        self._sizes = [buffer.size_bytes for buffer in problem.buffers]
        self._lifetimes = problem.lifetimes(order)
        self._uses: list[list[int]] = [[] for _ in problem.buffers]
        for step in range(len(order) - 1, -1, -1):
            for buffer in problem.uses[order[step]]:
                self._uses[buffer].append(step)
        self._saved = [0] * len(order)
        position = {op: step for step, op in enumerate(order)}
        for overlap in applied_overlaps(problem, order):
            self._saved[position[overlap.op]] += saving_bytes(problem, overlap)
        self._on_chip: set[int] = set()
        self._copied: set[int] = set()
        self._read = 0
        self._written = 0

    def run(self) -> Traffic:
        for step, op in enumerate(self._order):
            self._arrive(step)
            self._execute(step, op)
            for buffer in self._problem.uses[op]:
                self._uses[buffer].pop()
            self._on_chip = {b for b in self._on_chip if self._lifetimes[b][1] > step + 1}
        return Traffic(self._read, self._written)

    def _arrive(self, step: int) -> None:
        """Graph inputs come at the first step, and outputs that nobody writes."""
        if step == 0:
            self._on_chip = {
                index
                for index, (start, end) in enumerate(self._lifetimes)
                if start == 0
                and end > 0
                and (self._problem.buffers[index].from_start or not self._problem.users[index])
            }

    def _execute(self, step: int, op: int) -> None:
        needed = set(self._problem.uses[op])
        room = self._room - self._problem.scratch_bytes[op] + self._saved[step]
        streamed: set[int] = set()
        for buffer in sorted(needed, key=lambda b: self._cost_of_streaming(b, step)):
            if sum(self._sizes[b] for b in needed - streamed) <= room:
                break
            streamed.add(buffer)
        kept = needed - streamed
        for buffer in sorted(streamed):
            self._stream(buffer, step)
        taken = sum(self._sizes[b] for b in kept | (self._on_chip - streamed))
        for buffer in self._furthest_first(needed):
            if taken <= room:
                break
            self._send_away(buffer)
            taken -= self._sizes[buffer]
        for buffer in kept:
            if self._lifetimes[buffer][0] < step and buffer not in self._on_chip:
                self._read += self._sizes[buffer]
            elif self._writes(op, buffer):
                self._copied.discard(buffer)
            self._on_chip.add(buffer)

    def _cost_of_streaming(self, buffer: int, step: int) -> tuple[int, int, int]:
        """The order in which buffers are streamed: those that must be read anyway, then outputs,
        then those on chip; large ones first."""
        born = self._lifetimes[buffer][0] == step
        rank = 2 if buffer in self._on_chip else 1 if born else 0
        return rank, -self._sizes[buffer], buffer

    def _stream(self, buffer: int, step: int) -> None:
        """Pass a buffer that does not fit through the chip."""
        if self._lifetimes[buffer][0] < step or self._problem.buffers[buffer].from_start:
            if buffer in self._on_chip and buffer not in self._copied:
                self._written += self._sizes[buffer]
            self._read += self._sizes[buffer]
        else:
            self._written += self._sizes[buffer]
        self._on_chip.discard(buffer)
        self._copied.add(buffer)

    def _furthest_first(self, needed: set[int]) -> list[int]:
        away = len(self._order) + 1
        others = self._on_chip - needed
        return sorted(
            others,
            key=lambda b: (-(self._uses[b][-1] if self._uses[b] else away), -self._sizes[b], b),
        )

    def _send_away(self, buffer: int) -> None:
        if buffer not in self._copied:
            self._written += self._sizes[buffer]
            self._copied.add(buffer)
        self._on_chip.discard(buffer)

    def _writes(self, op: int, buffer: int) -> bool:
        """Whether `op` may change the buffer: it is the first to touch it, or one of several."""
        users = self._problem.users[buffer]
        return not any(user in self._problem.predecessors[op] for user in users)
