"""Runs operators and takes them back, and keeps what each one would cost up to date.

At a state D (the set of operators that have run), for every operator v not in D:

    rise[v] = bytes born at v + scratch - savings      M(D) + rise[v] is the footprint of its step
    net[v]  = bytes born at v - bytes that die at v    M(D) + net[v] is live after it

Both change only in two cases: an operator was the last but one user of a shared buffer (the last
user now frees it), or the first of several possible writers. `trail`, `nets` and `steps` hold the
operators that have run, and the net and the footprint of each. `moves` counts all runs ever made,
`looks` everything else that was examined; together they are the work of a search. The index of the
last user is kept as a sum, so a change costs O(1).
"""

from __future__ import annotations

from toolchain.schedule._exact.compiled import Compiled, Saving, greedy_saving_bytes


class Machine:
    """A state of `problem`, from which operators can be run and taken back, last first."""

    def __init__(self, problem: Compiled) -> None:
        count = problem.count
        self.problem = problem
        self.full = (1 << count) - 1
        self.key = 0
        self.live_bytes = problem.base_bytes + sum(
            size for size, early in zip(problem.sizes, problem.early, strict=True) if early
        )
        self.moves = 0
        self.looks = 0
        self.trail: list[int] = []
        self.nets: list[int] = []
        self.steps: list[int] = []
        self.waiting = [len(before) for before in problem.predecessors]
        self.ready = {op for op in range(count) if not self.waiting[op]}
        self.rise = list(problem.scratch_bytes)
        self.net = [0] * count
        self._bits = [1 << op for op in range(count)]
        self._left = [len(users) for users in problem.users]
        self._left_sum = [sum(users) for users in problem.users]
        self._several_writers = [False] * len(problem.users)
        self._watched: list[list[int]] = [[] for _ in range(count)]
        for buffer in range(len(problem.users)):
            self._count_buffer(buffer)
        self._savings: dict[int, list[Saving]] = {}
        self._savers: dict[int, list[int]] = {}
        for saving in problem.savings:
            self._savings.setdefault(saving.op, []).append(saving)
            self._savers.setdefault(saving.born, []).append(saving.op)
        self._saved = dict.fromkeys(self._savings, 0)
        for op in self._savings:
            self._save(op)
        self.movable = [not careful for careful in self._spoilers()]

    def _count_buffer(self, buffer: int) -> None:
        """Charge a buffer to those who may be its first and its last user."""
        problem = self.problem
        users, size = problem.users[buffer], problem.sizes[buffer]
        writers: tuple[int, ...] = ()
        if not problem.early[buffer]:
            mask = sum(self._bits[user] for user in users)
            first = [u for u in users if not (mask ^ self._bits[u]) & ~problem.descendants[u]]
            writers = tuple(first) or users
        for writer in writers:
            self.rise[writer] += size
            self.net[writer] += size
        self._several_writers[buffer] = len(writers) > 1
        if len(users) == 1:
            if not problem.late[buffer]:
                self.net[users[0]] -= size
        elif not problem.late[buffer] or len(writers) > 1:
            for user in users:
                self._watched[user].append(buffer)

    def _spoilers(self) -> list[bool]:
        """Operators that may touch a buffer before the operator that would write it in place."""
        spoils = [False] * self.problem.count
        for saving in self.problem.savings:
            after = self.problem.descendants[saving.op]
            for user in self.problem.users[saving.born]:
                if user != saving.op and not after >> user & 1:
                    spoils[user] = True
        return spoils

    def _save(self, op: int) -> None:
        """Update the saving of `op`."""
        left, several, users = self._left, self._several_writers, self.problem.users
        possible = [
            s
            for s in self._savings[op]
            if left[s.dying] == 1 and not (several[s.born] and left[s.born] < len(users[s.born]))
        ]
        now = possible[0].size_bytes if len(possible) == 1 else greedy_saving_bytes(possible)
        self.rise[op] += self._saved[op] - now
        self._saved[op] = now

    def run(self, op: int) -> None:
        """Run a ready operator."""
        problem, left, left_sum = self.problem, self._left, self._left_sum
        change = self.net[op]
        self.moves += 1
        self.steps.append(self.live_bytes + self.rise[op])
        self.live_bytes += change
        self.trail.append(op)
        self.nets.append(change)
        self.key |= self._bits[op]
        for buffer in self._watched[op]:
            now = left[buffer] - 1
            left[buffer] = now
            left_sum[buffer] -= op
            if self._several_writers[buffer] and now + 1 == len(problem.users[buffer]):
                self._touch(buffer, op, -problem.sizes[buffer])
            if now == 1 and not problem.late[buffer]:
                last = left_sum[buffer]
                self.net[last] -= problem.sizes[buffer]
                if last in self._savings:
                    self._save(last)
        self.ready.discard(op)
        waiting = self.waiting
        for successor in problem.successors[op]:
            waiting[successor] -= 1
            if not waiting[successor]:
                self.ready.add(successor)

    def take_back(self) -> None:
        """Undo the last run."""
        problem, left, left_sum = self.problem, self._left, self._left_sum
        op = self.trail.pop()
        self.steps.pop()
        self.live_bytes -= self.nets.pop()
        self.key ^= self._bits[op]
        for buffer in self._watched[op]:
            before = left[buffer]
            last = left_sum[buffer]
            left[buffer] = before + 1
            left_sum[buffer] += op
            if before == 1 and not problem.late[buffer]:
                self.net[last] += problem.sizes[buffer]
                if last in self._savings:
                    self._save(last)
            if self._several_writers[buffer] and before + 1 == len(problem.users[buffer]):
                self._touch(buffer, op, problem.sizes[buffer])
        waiting = self.waiting
        for successor in problem.successors[op]:
            if not waiting[successor]:
                self.ready.discard(successor)
            waiting[successor] += 1
        self.ready.add(op)

    def _touch(self, buffer: int, writer: int, change_bytes: int) -> None:
        """The first of several writers came (or went): the others bear the buffer no more."""
        for user in self.problem.users[buffer]:
            if user != writer:
                self.rise[user] += change_bytes
                self.net[user] += change_bytes
        for op in self._savers.get(buffer, ()):
            if op != writer:
                self._save(op)

    def back_to(self, length: int) -> None:
        """Undo until `length` operators have run."""
        while len(self.trail) > length:
            self.take_back()

    def settle(self, limit_bytes: int) -> None:
        """Run every ready operator that frees at least what it adds and fits below the limit.

        Theorem 1 of docs/schedulers.md: if an order within the limit exists from here, then one
        exists that begins with such an operator.
        """
        net, rise, movable = self.net, self.rise, self.movable
        while True:
            room = limit_bytes - self.live_bytes
            self.looks += len(self.ready)
            safe = [v for v in self.ready if net[v] <= 0 and rise[v] <= room and movable[v]]
            if not safe:
                return
            safe.sort()
            for op in safe:
                self.run(op)

    def no_loss(self, start: int) -> bool:
        """Whether the state at `trail[:start]` loses nothing by moving on to the present state X.

        Theorem 2: it suffices that M(X) is the least among all states between the two. For that it
        suffices to pay for every rise on the way with falls among its own descendants. True if a
        greedy assignment finds the payments; False means only that it found none.
        """
        trail, nets, movable = self.trail, self.nets, self.movable
        falls = {trail[i]: -nets[i] for i in range(start, len(trail)) if nets[i] < 0}
        descendants = self.problem.descendants
        self.looks += len(trail) - start
        for i in range(len(trail) - 1, start - 1, -1):
            op = trail[i]
            if not movable[op]:
                return False
            debt = nets[i]
            if debt <= 0:
                continue
            below = descendants[op]
            self.looks += len(falls)
            for payer in list(falls):
                if below >> payer & 1:
                    credit = falls[payer]
                    if credit > debt:
                        falls[payer] = credit - debt
                        debt = 0
                        break
                    debt -= credit
                    del falls[payer]
                    if not debt:
                        break
            if debt:
                return False
        return True
