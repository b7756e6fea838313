"""Paths of models through devices: the quickest of one while the others stay, and a local search.

A state is a cut and the set of devices used so far; devices that no other model uses are alike, so
that they are taken in order. The cost of a stage on a device is what it adds to the latency of all
requests there, by the Pollaczek-Khinchine formula. The search starts from some plans, takes each
model in turn on its quickest path, and then makes small moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from toolchain.edgetpu.plan.cuts import Floats
from toolchain.edgetpu.plan.demand import Demand
from toolchain.edgetpu.plan.devices import (
    Part,
    Path,
    Score,
    Setting,
    Stages,
    Table,
    estimate_of,
    score,
    steps,
)

MOST_DEVICES = 8
"""Devices that a path may choose from: those that others use least."""
_MOST_STEPS = 400
_MOST_WORK = 10_000_000
"""Sums of two costs for one path; beyond, a search looks at some of the cuts only."""
_FULL = 0.999
_OVERLOAD_MS = 1e6
_MOST_ROUNDS = 8
_WALKED = 12
"""Paths that a model tries in its turn, beside the quickest, where there are several models."""
_GAIN = 1 - 1e-9


@dataclass(frozen=True)
class Device:
    """A device as a model finds it: its number, and the other models' parts with their rates."""

    number: int
    others: tuple[tuple[float, Part], ...]


def devices_of(
    setting: Setting,
    paths: Sequence[Sequence[tuple[int, Part]]],
    rates: Sequence[float],
    model: int,
) -> list[Device]:
    """The devices that a model may choose, the least busy of them, in order."""
    ranked = []
    for number in range(setting.devices):
        others = tuple(
            (rates[other], part)
            for other, path in enumerate(paths)
            if other != model
            for device, part in path
            if device == number
        )
        busy = sum(rate * part.fixed_ms for rate, part in others)
        ranked.append((busy, Device(number, others)))
    kept = sorted(ranked, key=lambda pair: pair[0])[:MOST_DEVICES]
    return sorted((device for _, device in kept), key=lambda device: device.number)


def stage_costs(table: Table, device: Device, rate: float, *, own_waiting: bool) -> Floats:
    """Each stage's share of the sum of rate times latency on a device; infinite where there is no
    stage. `own_waiting`: with what requests of the model wait for each other.
    """
    setting = table.setting
    alone = table.alone(device.number)
    valid = np.isfinite(alone)
    mean = np.where(valid, alone, 0.0)
    if not device.others:
        if not own_waiting:
            return np.where(valid, rate * mean, np.inf)
        load = rate * mean
        wait = rate * mean * mean / 2 / np.maximum(1 - _FULL, 1 - load)
        cost = rate * (mean + wait) + np.where(load > _FULL, _OVERLOAD_MS * load, 0.0)
        return np.where(valid, cost, np.inf)
    square = mean * mean
    total = rate + sum(r for r, _ in device.others)
    still = [(r, p.fixed_ms + setting.stream_ms(p.streamed_bytes), 0.0) for r, p in device.others]
    sums = [np.array(_sums(still))]
    crowded = np.zeros(mean.shape, bool)
    if device.number != setting.sticks:
        held = sum(part.param_bytes for _, part in device.others)
        params = table.cuts.costs.params
        crowded = params + held > setting.cost.cache_bytes
        more = (params - table.streamed) / setting.cost.alone_bytes_per_ms
        swaps = np.where(crowded, (1 - rate / total) * more, 0.0)
        square = square + swaps * (2 * mean + more)
        mean = mean + swaps
        moved = [
            (r, s, (1 - r / total) * setting.stream_ms(p.param_bytes - p.streamed_bytes))
            for (r, s, _), (_, p) in zip(still, device.others, strict=True)
        ]
        sums.append(np.array(_sums(moved)))
    load_o, work_o, service_o = (np.where(crowded, sums[-1][k], sums[0][k]) for k in range(3))
    own = rate * square / 2
    load = load_o + rate * mean
    room = np.maximum(1 - _FULL, 1 - load)
    if own_waiting:
        waits = total * (work_o + own) / room
    else:
        waits = (total - rate) * (work_o + own) / room
        waits = waits + rate * work_o / np.maximum(1 - _FULL, 1 - load_o)
    now = float(sums[0][2] + (total - rate) * sums[0][1] / max(1 - _FULL, 1 - sums[0][0]))
    cost = rate * mean + service_o + waits - now
    return np.where(valid, cost + np.where(load > _FULL, _OVERLOAD_MS * load, 0.0), np.inf)


def _sums(services: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    """Load, half of rate times square, rate times mean: of rate, service and swaps."""
    load = sum(r * (s + m) for r, s, m in services)
    work = sum(r * (s + m) ** 2 for r, s, m in services) / 2
    return load, work, load


def quickest_of_some(
    table: Table, devices: Sequence[Device], costs: Sequence[Floats]
) -> Stages | None:
    """The path of `quickest`; where that is much work, the quickest through some of the cuts."""
    cuts, busy = len(table.cuts), sum(not _alike(d, table.setting) for d in devices)
    steps = (len(devices) - busy + 1) * 2**busy * (1 + busy / 2)
    most = int((_MOST_WORK / steps) ** 0.5)
    if cuts <= most:
        return quickest(table, devices, costs)
    kept = np.unique(np.linspace(0, cuts - 1, max(2, most)).round().astype(int))
    path = quickest(table, devices, [cost[np.ix_(kept, kept)] for cost in costs])
    return None if path is None else tuple((int(kept[end]), device) for end, device in path)


def quickest(table: Table, devices: Sequence[Device], costs: Sequence[Floats]) -> Stages | None:
    """The path with the least sum of costs (from, to), each device once at most; None where there
    is none.
    """
    last = len(costs[0]) - 1
    idle = [k for k, device in enumerate(devices) if _alike(device, table.setting)]
    reached: dict[int, Floats] = {0: np.full(last + 1, np.inf)}
    reached[0][0] = 0.0
    came: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    best, best_mask = np.inf, 0
    for mask in sorted(_masks(len(devices), idle), key=lambda m: (m.bit_count(), m)):
        if mask == 0:
            continue
        least = np.full(last + 1, np.inf)
        via = np.zeros(last + 1, int)
        origin = np.zeros(last + 1, int)
        for k in range(len(devices)):
            before = mask & ~(1 << k)
            if not mask >> k & 1 or before not in reached:
                continue
            sums = reached[before][:, None] + costs[k]
            at = sums.argmin(0)
            values = sums[at, np.arange(last + 1)]
            better = values < least
            least = np.where(better, values, least)
            via = np.where(better, k, via)
            origin = np.where(better, at, origin)
        reached[mask], came[mask] = least, (via, origin)
        if least[last] < best:
            best, best_mask = float(least[last]), mask
    if not np.isfinite(best):
        return None
    stages, at, mask = [], last, best_mask
    while mask:
        via, origin = came[mask]
        k = int(via[at])
        stages.append((at, devices[k].number))
        at, mask = int(origin[at]), mask & ~(1 << k)
    return tuple(reversed(stages))


def _alike(device: Device, setting: Setting) -> bool:
    return not device.others and device.number != setting.sticks


def _masks(count: int, idle: Sequence[int]) -> Iterator[int]:
    """Sets of devices in which those that are alike are taken in order."""
    busy = [k for k in range(count) if k not in idle]
    for taken in range(len(idle) + 1):
        alike = sum(1 << k for k in idle[:taken])
        for chosen in range(1 << len(busy)):
            yield alike | sum(1 << k for place, k in enumerate(busy) if chosen >> place & 1)


def walk(
    table: Table, devices: Sequence[Device], rate: float, most: int = _MOST_STEPS
) -> Iterator[Stages]:
    """Paths from the least sum of services (and of what others wait) to the least longest stage.

    On idle devices these are all that can be the quickest for any waiting time that grows with the
    longest stage: where the services add no more than before, no longer stage can gain.
    """
    costs = [stage_costs(table, device, rate, own_waiting=False) for device in devices]
    times = [table.alone(device.number) for device in devices]
    for _ in range(most):
        path = quickest_of_some(table, devices, costs)
        if path is None:
            return
        yield path
        number = {device.number: k for k, device in enumerate(devices)}
        longest = max(times[number[device]][begin, end] for begin, end, device in steps(path))
        costs = [
            np.where(time < longest, cost, np.inf) for time, cost in zip(times, costs, strict=True)
        ]


@dataclass
class Search:
    """One demand on one setting; `tables` by model. `scores` remembers what was weighed."""

    setting: Setting
    tables: Sequence[Table]
    demand: Demand
    scores: dict[tuple[Stages, ...], Score] = field(default_factory=dict)

    def paths(self, plan: Sequence[Stages]) -> list[Path]:
        return [table.path(stages) for table, stages in zip(self.tables, plan, strict=True)]

    def score(self, plan: tuple[Stages, ...]) -> Score:
        if plan not in self.scores:
            estimate = estimate_of(self.setting, self.paths(plan), self.demand.rates_a_ms)
            self.scores[plan] = score(estimate, self.demand)
        return self.scores[plan]


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
        plan = _moved(search, _descended(search, start))
        if best is None or better(search.score(plan), search.score(best)):
            best = plan
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
        plan: list[Stages] = [()] * len(rates)
        for model in turn:
            devices = devices_of(search.setting, paths, rates, model)
            table = search.tables[model]
            costs = [stage_costs(table, d, rates[model], own_waiting=True) for d in devices]
            chosen = quickest_of_some(table, devices, costs)
            assert chosen is not None
            plan[model], paths[model] = chosen, table.path(chosen)
        yield tuple(plan)
    whole = []
    for number, model in enumerate(order):
        last = len(search.tables[model].cuts) - 1
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
    paths = list(walk(table, devices, demand.rates_a_ms[0]))
    return min(paths, key=lambda stages: alone.score((stages,)))


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
        valid = search.tables[model].cuts.valid
        for changed in _changed(stages, search.setting.devices, len(valid)):
            if all(valid[begin, end] for begin, end, _ in steps(changed)):
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
