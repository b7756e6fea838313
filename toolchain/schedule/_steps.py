"""Costs of single steps from a set of operators, by bit sets, for methods that keep many states."""

from __future__ import annotations

from toolchain.ir import MemoryProblem
from toolchain.schedule._exact.compiled import (
    Compiled,
    Saving,
    compiled,
    greedy_saving_bytes,
    unread_bytes,
)


class Steps:
    """Costs of operators that run after a set `done` of others (a bit set), and the bytes left
    live."""

    def __init__(self, problem: MemoryProblem) -> None:
        resolved = compiled(problem)
        self.resolved: Compiled = resolved
        self.start_bytes = resolved.base_bytes + sum(
            size for size, early in zip(resolved.sizes, resolved.early, strict=True) if early
        )
        self._unread = unread_bytes(problem)
        self.users = [sum(1 << user for user in users) for users in resolved.users]
        self.before = [sum(1 << p for p in row) for row in resolved.predecessors]
        self._savings: dict[int, list[Saving]] = {}
        for saving in resolved.savings:
            self._savings.setdefault(saving.op, []).append(saving)

    def cost(self, done: int, live_bytes: int, op: int) -> tuple[int, int]:
        """Footprint of the step that runs `op`, and the live bytes after it."""
        resolved, bit = self.resolved, 1 << op
        step = live_bytes + resolved.scratch_bytes[op] + (0 if done else self._unread)
        after = live_bytes
        dying, born = set(), set()
        for buffer in resolved.uses[op]:
            users, size = self.users[buffer], resolved.sizes[buffer]
            if not users & done and not resolved.early[buffer]:
                step += size
                after += size
                born.add(buffer)
            if not users & ~done & ~bit and not resolved.late[buffer]:
                after -= size
                dying.add(buffer)
        if op in self._savings:
            step -= greedy_saving_bytes(
                [s for s in self._savings[op] if s.dying in dying and s.born in born]
            )
        return step, after

    def run(self, done: int, live_bytes: int, ops: tuple[int, ...]) -> tuple[int, int, int]:
        """Run several in turn: the set after them, their peak, and the live bytes after them."""
        peak = 0
        for op in ops:
            step, live_bytes = self.cost(done, live_bytes, op)
            peak = max(peak, step)
            done |= 1 << op
        return done, peak, live_bytes

    def cuts(self) -> list[int]:
        """Sets that every order passes, ascending, including the empty set and the whole.

        They lie before and after an operator that is comparable with all others.
        """
        resolved = self.resolved
        everything = (1 << resolved.count) - 1
        states = {0, everything}
        for op in range(resolved.count):
            above, below = resolved.ancestors[op], resolved.descendants[op]
            if above | below | 1 << op == everything:
                states |= {above, above | 1 << op}
        return sorted(states, key=int.bit_count)
