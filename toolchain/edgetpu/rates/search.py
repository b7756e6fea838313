"""Plans for rates: a start, each model in turn on the quickest path that the others leave, moves;
then a proof, or a bound and a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from toolchain.edgetpu.rates.demand import Demand
from toolchain.edgetpu.rates.parts import Path, Score, Setting, Table, estimate_of, score
from toolchain.edgetpu.rates.shortest import (
    Device,
    Stages,
    devices_of,
    quickest_of_some,
    stage_costs,
    walk,
)

_MOST_ROUNDS = 8
_WALKED = 12
_GAIN = 1 - 1e-9


@dataclass
class Search:
    """One demand on one setting; `tables` by model. `scores` remembers what was weighed."""

    setting: Setting
    tables: Sequence[Table]
    demand: Demand
    scores: dict[tuple[Stages, ...], Score] = field(default_factory=dict)

    def paths(self, found: Sequence[Stages]) -> list[Path]:
        return [table.path(stages) for table, stages in zip(self.tables, found, strict=True)]

    def score(self, found: tuple[Stages, ...]) -> Score:
        if found not in self.scores:
            estimate = estimate_of(self.setting, self.paths(found), self.demand.rates_a_ms)
            self.scores[found] = score(estimate, self.demand)
        return self.scores[found]


def better(one: Score, other: Score) -> bool:
    """Whether a score is less by more than rounding."""
    for a, b in zip(one, other, strict=True):
        if a < b * _GAIN:
            return True
        if b < a * _GAIN:
            return False
    return False


def local_search(search: Search, starts: Sequence[tuple[Stages, ...]] = ()) -> tuple[Stages, ...]:
    """The best plan found from `starts`, or where there are none from its own."""
    best: tuple[Stages, ...] | None = None
    for start in dict.fromkeys(starts or _starts(search)):
        found = _moved(search, _descended(search, start))
        if best is None or better(search.score(found), search.score(best)):
            best = found
    assert best is not None
    return best


def _starts(search: Search) -> Iterator[tuple[Stages, ...]]:
    """Models one after another where they add least, in both orders; each whole on a device of its
    own; each alone on all devices.
    """
    rates = search.demand.rates_a_ms
    order = sorted(
        range(len(rates)),
        key=lambda m: -rates[m] * float(search.tables[m].least_ms[0, -1]),
    )
    for turn in (order, order[::-1]):
        paths: list[Path] = [()] * len(rates)
        found: list[Stages] = [()] * len(rates)
        for model in turn:
            devices = devices_of(search.setting, paths, rates, model)
            table = search.tables[model]
            costs = [stage_costs(table, d, rates[model], own_waiting=True) for d in devices]
            chosen = quickest_of_some(table, devices, costs)
            assert chosen is not None
            found[model], paths[model] = chosen, table.path(chosen)
        yield tuple(found)
    whole = []
    for number, model in enumerate(order):
        last = len(search.tables[model].lattice.cuts) - 1
        whole.append((model, ((last, number % search.setting.devices),)))
    yield tuple(stages for _, stages in sorted(whole))
    alone = []
    for model, table in enumerate(search.tables):
        idle = devices_of(search.setting, [()] * len(rates), rates, model)
        alone.append(_best_of_walk(search, model, table, idle))
    yield tuple(alone)


def _best_of_walk(search: Search, model: int, table: Table, devices: Sequence[Device]) -> Stages:
    """The quickest path of a model on idle devices, nobody else there."""
    demand = Demand(
        search.demand.names[model : model + 1],
        search.demand.rates[model : model + 1],
        search.demand.deadlines_ms[model : model + 1],
        search.demand.objective,
    )
    alone = Search(search.setting, [table], demand)
    found = list(walk(table, devices, demand.rates_a_ms[0]))
    return min(found, key=lambda stages: alone.score((stages,)))


def _descended(search: Search, start: tuple[Stages, ...]) -> tuple[Stages, ...]:
    """Each model in turn on the best path that the others leave, until none gains."""
    best, idle = start, 0
    rates = search.demand.rates_a_ms
    for turn in range(_MOST_ROUNDS * len(rates)):
        model = turn % len(rates)
        table = search.tables[model]
        devices = devices_of(search.setting, search.paths(best), rates, model)
        costs = [stage_costs(table, d, rates[model], own_waiting=True) for d in devices]
        tried = quickest_of_some(table, devices, costs)
        candidates = [] if tried is None else [tried]
        most = _WALKED if len(rates) > 1 else 1 << 30
        candidates += walk(table, devices, rates[model], most)
        idle += 1
        for stages in candidates:
            changed = (*best[:model], stages, *best[model + 1 :])
            if better(search.score(changed), search.score(best)):
                best, idle = changed, 0
        if idle >= len(rates):
            break
    return best


def _moved(search: Search, start: tuple[Stages, ...]) -> tuple[Stages, ...]:
    """Small moves while one gains: a cut to one beside it, a stage to another device, two devices
    of a model or the paths of two models changed over.
    """
    best = start
    for _ in range(_MOST_ROUNDS * 4):
        gained = False
        for tried in _moves(search, best):
            if better(search.score(tried), search.score(best)):
                best, gained = tried, True
                break
        if not gained:
            break
    return best


def _moves(search: Search, now: tuple[Stages, ...]) -> Iterator[tuple[Stages, ...]]:
    for model, stages in enumerate(now):
        valid = search.tables[model].lattice.valid
        for changed in _changed(stages, search.setting.devices, len(valid)):
            begins = [0, *(end for end, _ in changed)]
            if all(valid[b, e] for b, (e, _) in zip(begins, changed, strict=False)):
                yield (*now[:model], changed, *now[model + 1 :])


def _changed(stages: Stages, devices: int, cuts: int) -> Iterator[Stages]:
    """Paths one step away; some of them have stages that are none."""
    used = {device for _, device in stages}
    for k, (end, device) in enumerate(stages):
        before, behind = stages[:k], stages[k + 1 :]
        for other in range(devices):
            if other not in used:
                yield (*before, (end, other), *behind)
                continue
            yield tuple(
                (e, other if d == device else device if d == other else d) for e, d in stages
            )
        if behind:
            for step in (-8, -3, -2, -1, 1, 2, 3, 8):
                if 0 < end + step < cuts - 1:
                    yield (*before, (end + step, device), *behind)
            yield (*before, *behind)
            yield (*before, (behind[0][0], device), *behind[1:])
