"""Fusion that keeps the optimum (Zhong et al., ICCAD 2023, theorems IV.1 and IV.2, Algorithm 1).

A *unit* is a run of operators that run directly one after another. Fusing unit B behind unit A
keeps the optimum if, whatever else has run:

    (a) all that B needs is in A, or comes before A;
    (b) rise(B) <= slack(A): the live bytes at A's end, together with what B needs, are no
        more than some step of A needed. Behind A's step k the slack is
        slack_k = dead(k) + scratch(k) - saved(k) - sum of net(j) over A's later steps j,
        because what is born at k is live at its step and behind it;
    (c) every rise in B is paid for by falls among its own descendants in B.

Then B may move next to A in any order (theorem 2 of docs/schedulers.md; A's own peak is reached in
any case). If B is a single operator this is the monotonic fusion of theorem IV.1. If B is
everything between A's end and a single exit, in its best order, it is the fusion of isolated
subgraphs of theorem IV.2. Both hold for the reversed graph, too. Every term is bounded over all
contexts.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolchain.schedule._exact.compiled import Compiled
from toolchain.schedule._sets import bits

LARGEST_ISOLATED = 10

Unit = tuple[int, ...]


class _Worst:
    """The least favourable cost of operators, given that certain others have run before them."""

    def __init__(self, problem: Compiled) -> None:
        self.problem = problem
        self._users = [sum(1 << user for user in users) for users in problem.users]
        self._saved = [0] * problem.count
        for saving in problem.savings:
            self._saved[saving.op] += saving.size_bytes
        self._spoilers = {
            user
            for s in problem.savings
            for user in problem.users[s.born]
            if user != s.op and not problem.descendants[s.op] >> user & 1
        }

    def born(self, op: int, ran: int) -> int:
        problem = self.problem
        come = problem.ancestors[op] | ran
        return sum(
            problem.sizes[b]
            for b in problem.uses[op]
            if not problem.early[b] and not self._users[b] & come
        )

    def dies(self, buffer: int, op: int, ran: int) -> bool:
        come = self.problem.ancestors[op] | ran | 1 << op
        return not self.problem.late[buffer] and not self._users[buffer] & ~come

    def dead(self, op: int, ran: int) -> int:
        problem = self.problem
        return sum(problem.sizes[b] for b in problem.uses[op] if self.dies(b, op, ran))

    def rise(self, unit: Unit, ran: int) -> int:
        """The most that the unit can need on top of what is live before it."""
        problem = self.problem
        live = most = 0
        for op in unit:
            born = self.born(op, ran)
            saved = max(
                (s.size_bytes for s in problem.savings_of[op] if self.dies(s.dying, op, ran)),
                default=0,
            )
            most = max(most, live + born + problem.scratch_bytes[op] - saved)
            live += born - self.dead(op, ran)
            ran |= 1 << op
        return most

    def slack(self, unit: Unit) -> int:
        """How far some step of the unit surely rises above what is live behind the unit."""
        best = later = 0
        ran = sum(1 << op for op in unit)
        for op in reversed(unit):
            ran &= ~(1 << op)
            here = self.dead(op, ran) + self.problem.scratch_bytes[op] - self._saved[op]
            best = max(best, here - later)
            later += self.born(op, ran) - self.dead(op, ran)
        return best

    def pays(self, unit: Unit, ran: int) -> bool:
        """Whether (c) holds, by a greedy assignment; False for operators that may spoil an in-place
        write."""
        if self._spoilers.intersection(unit):
            return False
        nets = []
        for op in unit:
            nets.append(self.born(op, ran) - self.dead(op, ran))
            ran |= 1 << op
        falls = {op: -net for op, net in zip(unit, nets, strict=True) if net < 0}
        for op, net in reversed(list(zip(unit, nets, strict=True))):
            debt = net
            for payer in [p for p in falls if self.problem.descendants[op] >> p & 1]:
                if debt <= 0:
                    break
                paid = min(debt, falls[payer])
                debt -= paid
                falls[payer] -= paid
            if debt > 0:
                return False
        return True


def fuse(problem: Compiled) -> list[Unit]:
    """Fuse forwards and backwards until nothing changes. Together the units hold every operator."""
    units: list[Unit] = [(op,) for op in problem.topological]
    mirror = problem.reversed()
    while True:
        count = len(units)
        units = _fuse_behind(problem, units)
        units = [u[::-1] for u in _fuse_behind(mirror, [u[::-1] for u in reversed(units)])]
        units.reverse()
        if len(units) == count:
            return units


def _fuse_behind(problem: Compiled, units: Sequence[Unit]) -> list[Unit]:
    """One pass: behind each unit goes what may follow it at once."""
    worst = _Worst(problem)
    rank = {op: i for i, op in enumerate(problem.topological)}
    current = {unit[0]: unit for unit in units}
    of = {op: unit[0] for unit in units for op in unit}
    for head in [unit[0] for unit in units]:
        while head in current:
            followers = _followers(problem, worst, current, of, current[head])
            if not followers:
                break
            for follower in followers:
                del current[follower[0]]
                current[head] += follower
                of.update(dict.fromkeys(follower, head))
    return sorted(current.values(), key=lambda unit: rank[unit[0]])


def _followers(
    problem: Compiled, worst: _Worst, current: dict[int, Unit], of: dict[int, int], leader: Unit
) -> list[Unit]:
    """The units that may follow the leader at once, in their order; [] if there are none."""
    ran = sum(1 << op for op in leader)
    above = ran
    for op in leader:
        above |= problem.ancestors[op]
    slack = worst.slack(leader)
    heads = sorted({of[s] for op in leader for s in problem.successors[op]} - {leader[0]})
    for head in heads:
        follower = current[head]
        mask = sum(1 << op for op in follower)
        outside = sum(1 << p for p in {p for op in follower for p in problem.predecessors[op]})
        if outside & ~mask & ~above:
            continue
        if worst.rise(follower, above) <= slack and worst.pays(follower, above):
            return [follower]
    return _isolated(problem, worst, current, of, leader, above, slack)


def _isolated(
    problem: Compiled,
    worst: _Worst,
    current: dict[int, Unit],
    of: dict[int, int],
    leader: Unit,
    above: int,
    slack: int,
) -> list[Unit]:
    """A subgraph behind the leader that nothing else enters, closed by one exit, best order."""
    inside = sum(1 << op for op in leader)
    region: list[Unit] = []
    while len(region) < LARGEST_ISOLATED:
        covered = inside | sum(1 << op for unit in region for op in unit)
        frontier = sorted(
            {of[s] for op in bits(covered) for s in problem.successors[op] if not covered >> s & 1}
        )
        ready = [
            current[head]
            for head in frontier
            if all(
                (covered | above) >> p & 1 or p in current[head]
                for op in current[head]
                for p in problem.predecessors[op]
            )
        ]
        if not ready:
            return []
        region.append(ready[0])
        if len(frontier) == 1 and len(region) > 1:
            ordered = _best_order(problem, worst, region, above)
            flat = tuple(op for unit in ordered for op in unit)
            if worst.rise(flat, above) <= slack and worst.pays(flat, above):
                return ordered
    return []


def _best_order(problem: Compiled, worst: _Worst, region: Sequence[Unit], above: int) -> list[Unit]:
    """The order of the region with the least bound on its peak, among all orders."""
    best: tuple[int, list[Unit]] | None = None
    masks = [sum(1 << op for op in unit) for unit in region]
    needs = [
        sum(1 << p for p in {p for op in unit for p in problem.predecessors[op]}) & ~mask
        for unit, mask in zip(region, masks, strict=True)
    ]
    layer: dict[int, tuple[int, int, list[Unit]]] = {above: (0, 0, [])}
    for _ in region:
        following: dict[int, tuple[int, int, list[Unit]]] = {}
        for ran, (peak, live, done) in layer.items():
            for unit, mask, need in zip(region, masks, needs, strict=True):
                if ran & mask or need & ~ran:
                    continue
                high = max(peak, live + worst.rise(unit, ran))
                now = live
                seen = ran
                for op in unit:
                    now += worst.born(op, seen) - worst.dead(op, seen)
                    seen |= 1 << op
                if seen not in following or high < following[seen][0]:
                    following[seen] = (high, now, [*done, unit])
        layer = following
    for peak, _, order in layer.values():
        if best is None or peak < best[0]:
            best = (peak, order)
    return best[1] if best else list(region)
