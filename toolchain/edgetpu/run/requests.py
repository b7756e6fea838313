"""Simulates requests on devices, event by event: arrivals, queues, swaps, the shared bus.

Each device takes requests in the order of their arrival there, one at a time. A request spends its
fixed time, then streams: what does not fit the cache, and all of its model's weights where the
request before was of another model that does not fit beside it. Sticks that stream at the same
time share the bus.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from toolchain.edgetpu.plan.devices import Place, Setting
from toolchain.edgetpu.plan.queueing import PERCENTILE, Bus
from toolchain.edgetpu.plan.rates import RatePlan

_BATCHES = 20
_STUDENT = 2.093
"""Of 95% and 19 degrees of freedom: the means of `_BATCHES` batches."""
_WARM = 0.1


class Arrivals(StrEnum):
    """How requests arrive: at random, or one every period from a random moment on."""

    POISSON = "poisson"
    PERIODIC = "periodic"


@dataclass(frozen=True)
class Visit:
    """A stage of a model on a device; times in ms, of one request, alone on the bus."""

    device: int
    fixed_ms: float
    stream_ms: float
    swap_ms: float


@dataclass(frozen=True)
class Served:
    """The requests of one model. Latencies in ms; `error_ms`: the mean's half width at 95%.

    `late` is the share of requests beyond the deadline, None without one.
    """

    requests: int
    mean_ms: float
    error_ms: float
    tail_ms: float
    worst_ms: float
    late: float | None


@dataclass(frozen=True)
class RequestTrace:
    """What a simulation found. `busy`: the share of its time that each device worked."""

    models: tuple[Served, ...]
    busy: tuple[float, ...]
    bus: float


@dataclass
class _Device:
    queue: deque[tuple[int, int, float]]
    model: int = -1
    last: int = -1
    stage: int = 0
    arrived: float = 0.0
    until: float = math.inf
    streaming: bool = False
    left: float = 0.0
    busy: float = 0.0


def simulate_requests(
    paths: Sequence[Sequence[Visit]],
    rates: Sequence[float],
    devices: int,
    bus: Bus,
    requests: int = 20_000,
    arrivals: Arrivals = Arrivals.POISSON,
    deadlines_ms: Sequence[float | None] | None = None,
    seed: int = 0,
) -> RequestTrace:
    """Run until `requests` requests of all models have come, and all are served.

    `paths`: the stages of each model; `rates`: its requests a millisecond. The first tenth of the
    requests is not counted.
    """
    coming = _arrivals(rates, requests, arrivals, seed)
    places = [_Device(deque()) for _ in range(devices)]
    finished: list[list[tuple[float, float]]] = [[] for _ in rates]
    now, following, done, streamed = 0.0, 0, 0, 0.0
    streaming: list[_Device] = []
    least = coming[int(_WARM * len(coming))][0]

    def begin(place: _Device) -> None:
        place.model, place.stage, place.arrived = place.queue.popleft()
        visit = paths[place.model][place.stage]
        swapped = visit.swap_ms if place.last not in (-1, place.model) else 0.0
        place.last = place.model
        place.left = visit.stream_ms + swapped
        place.until = now + visit.fixed_ms
        place.busy -= now

    while done < len(coming):
        pace = 1.0
        if len(streaming) > 1:
            pace = min(1.0, 1 / (len(streaming) * bus.share))
        moment = coming[following][0] if following < len(coming) else math.inf
        ready: _Device | None = None
        for place in places:
            if place.until < moment:
                moment, ready = place.until, place
        ended = False
        for place in streaming:
            at = now + place.left / pace
            if at < moment:
                moment, ready, ended = at, place, True
        step = moment - now
        for place in streaming:
            place.left -= step * pace
            streamed += step * pace
        now = moment
        if ready is None:
            _, model = coming[following]
            following += 1
            first = places[paths[model][0].device]
            first.queue.append((model, 0, now))
            if first.model < 0:
                begin(first)
            continue
        if not ended and ready.left > 0:
            ready.until = math.inf
            streaming.append(ready)
            continue
        if ended:
            streaming.remove(ready)
        ready.until = math.inf
        ready.busy += now
        model, stage, arrived = ready.model, ready.stage + 1, ready.arrived
        ready.model = -1
        if stage == len(paths[model]):
            finished[model].append((arrived, now - arrived))
            done += 1
        else:
            target = places[paths[model][stage].device]
            target.queue.append((model, stage, arrived))
            if target.model < 0:
                begin(target)
        if ready.queue and ready.model < 0:
            begin(ready)
    limits = deadlines_ms or [None] * len(rates)
    return RequestTrace(
        tuple(
            _served([ms for at, ms in found if at >= least], limit)
            for found, limit in zip(finished, limits, strict=True)
        ),
        tuple(place.busy / now for place in places),
        streamed * bus.share / now,
    )


def _arrivals(
    rates: Sequence[float], requests: int, arrivals: Arrivals, seed: int
) -> list[tuple[float, int]]:
    """Moments in ms and models, in order."""
    rng = random.Random(seed)
    span = requests / sum(rates)
    found = []
    for model, rate in enumerate(rates):
        at = rng.random() / rate
        if arrivals is Arrivals.POISSON:
            at = rng.expovariate(rate)
        while at < span:
            found.append((at, model))
            at += rng.expovariate(rate) if arrivals is Arrivals.POISSON else 1 / rate
    return sorted(found)


def _served(latencies: Sequence[float], deadline_ms: float | None) -> Served:
    if not latencies:
        return Served(0, 0.0, 0.0, 0.0, 0.0, None if deadline_ms is None else 0.0)
    values = np.array(latencies)
    error = math.inf
    if len(values) >= 2 * _BATCHES:
        means = [part.mean() for part in np.array_split(values, _BATCHES)]
        error = _STUDENT * float(np.std(means, ddof=1)) / math.sqrt(_BATCHES)
    late = None if deadline_ms is None else float((values > deadline_ms).mean())
    return Served(
        len(values),
        float(values.mean()),
        error,
        float(np.quantile(values, PERCENTILE)),
        float(values.max()),
        late,
    )


def visits_of(setting: Setting, places: Sequence[Sequence[Place]]) -> list[list[Visit]]:
    """The same for the simulation."""
    return [
        [
            Visit(
                place.device,
                place.part.fixed_ms,
                setting.stream_ms(place.streamed_bytes),
                setting.stream_ms(place.swapped_bytes),
            )
            for place in path
        ]
        for path in places
    ]


def simulate_plan(
    plan: RatePlan,
    requests: int = 20_000,
    arrivals: Arrivals = Arrivals.POISSON,
    seed: int = 0,
) -> RequestTrace:
    """The plan event by event."""
    return simulate_requests(
        visits_of(plan.setting, plan.places),
        plan.demand.rates_a_ms,
        plan.setting.devices,
        plan.setting.bus,
        requests,
        arrivals,
        plan.demand.deadlines_ms,
        seed,
    )
