"""Simulates plans event by event, under the cost model.

A pipeline (`simulate`): each stage takes a frame, spends its call, arithmetic and transfers,
streams the parameters that its cache cannot hold over the shared hub, and passes the frame on as
soon as every queue that it fills has room.

Requests at their rates (`simulate_requests`): each device takes requests in the order of their
arrival there, one at a time. A request spends its fixed time, then streams: what does not fit the
cache, and all of its model's weights where the request before was of another model that does not
fit beside it. Sticks that stream at the same time share the bus.

In the first, a full queue stops a stage; in the second, none is ever full: two loops of events.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from toolchain.edgetpu.model.cost import EdgeTpuCost
from toolchain.edgetpu.plan.devices import Place, Setting
from toolchain.edgetpu.plan.queueing import PERCENTILE, Bus
from toolchain.edgetpu.plan.rates import RatePlan

_EPSILON = 1e-12
_BATCHES = 20
_STUDENT = 2.093
"""Of 95% and 19 degrees of freedom: the means of `_BATCHES` batches."""
_WARM = 0.1


@dataclass(frozen=True)
class Load:
    """The work of one frame in a stage. `fixed_ms`: all but streaming. `feeds`: stages it sends
    to.
    """

    fixed_ms: float
    streamed_bytes: int
    feeds: tuple[int, ...]


@dataclass(frozen=True)
class StageTrace:
    """Milliseconds of one stage, summed over all frames, and when it worked on each."""

    busy_ms: float
    stream_ms: float
    starved_ms: float
    blocked_ms: float
    queue_ms: float
    spans: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Simulation:
    """`period_ms` is the steady period, over the second half of the frames."""

    frames: int
    period_ms: float
    latency_ms: float
    first_ms: float
    hub_share: float
    stages: tuple[StageTrace, ...]

    def stages_json(self) -> list[dict[str, float]]:
        """Milliseconds of a frame in each stage, as --json names them."""
        names = ("busy_ms", "queue_ms", "stream_ms", "starved_ms", "blocked_ms")
        return [
            {name: getattr(stage, name) / self.frames for name in names} for stage in self.stages
        ]


@dataclass
class _Stage:
    load: Load
    sources: tuple[int, ...]
    phase: str = "waiting"
    left: float = 0.0
    since: float = 0.0
    frame: int = 0
    busy: float = 0.0
    stream: float = 0.0
    starved: float = 0.0
    blocked: float = 0.0
    queued: float = 0.0
    spans: list[tuple[float, float]] = field(default_factory=list)


def simulate(
    loads: Sequence[Load],
    cost: EdgeTpuCost,
    frames: int = 200,
    capacity: int = 1,
    arrival_ms: float = 0.0,
) -> Simulation:
    """Run `frames` frames that arrive every `arrival_ms` (0: as fast as they are taken).

    `capacity`: frames that an inner queue holds; the outer ones are unbounded, as Google's are.
    """
    stages = [
        _Stage(load, tuple(s for s, other in enumerate(loads) if k in other.feeds))
        for k, load in enumerate(loads)
    ]
    queues: dict[tuple[int, int], list[float]] = {
        (s, k): [] for k, stage in enumerate(stages) for s in stage.sources
    }
    entered: list[float] = [0.0] * frames
    done: list[float] = []
    now = hub = 0.0
    while len(done) < frames:
        while _advance(stages, queues, now, frames, capacity, arrival_ms, entered, done):
            pass
        streaming = [stage for stage in stages if stage.phase == "streaming"]
        rate = 0.0
        if streaming:
            rate = min(cost.stream_bytes_per_ms, cost.hub_bytes_per_ms / len(streaming))
        steps = [stage.left for stage in stages if stage.phase == "fixed"]
        steps += [stage.left / rate for stage in streaming]
        first = stages[0]
        if first.phase == "waiting" and first.frame < frames:
            steps.append(max(0.0, first.frame * arrival_ms - now))
        if not steps:
            break
        step = min(steps)
        now += step
        for stage in stages:
            if stage.phase == "fixed":
                stage.left -= step
                stage.busy += step
            elif stage.phase == "streaming":
                stage.left -= step * rate
                stage.busy += step
                stage.stream += step
                hub += step * rate / cost.hub_bytes_per_ms
    half = len(done) // 2
    period = (done[-1] - done[half - 1]) / (len(done) - half) if half else done[-1]
    return Simulation(
        len(done),
        period,
        sum(d - e for d, e in zip(done, entered, strict=True)) / len(done),
        done[0] - entered[0],
        hub / now if now else 0.0,
        tuple(
            StageTrace(s.busy, s.stream, s.starved, s.blocked, s.queued, tuple(s.spans))
            for s in stages
        ),
    )


def _advance(
    stages: Sequence[_Stage],
    queues: dict[tuple[int, int], list[float]],
    now: float,
    frames: int,
    capacity: int,
    arrival_ms: float,
    entered: list[float],
    done: list[float],
) -> bool:
    """One change of phase that needs no time; False where there is none."""
    for k, stage in enumerate(stages):
        if stage.phase == "waiting" and stage.frame < frames:
            if stage.sources:
                ready = all(queues[s, k] for s in stage.sources)
            else:
                ready = k > 0 or stage.frame * arrival_ms <= now + _EPSILON
            if ready:
                stage.starved += now - stage.since
                if stage.sources:
                    stage.queued += now - max(queues[s, k].pop(0) for s in stage.sources)
                if k == 0:
                    entered[stage.frame] = stage.frame * arrival_ms if arrival_ms else now
                    stage.queued += now - entered[stage.frame]
                stage.phase, stage.left, stage.since = "fixed", stage.load.fixed_ms, now
                return True
        elif stage.phase == "fixed" and stage.left <= _EPSILON:
            stage.phase, stage.left = "streaming", float(stage.load.streamed_bytes)
            if stage.left:
                return True
            stage.phase = "streamed"
            return True
        elif stage.phase == "streaming" and stage.left <= _EPSILON * 1e6:
            stage.phase = "streamed"
            return True
        elif stage.phase == "streamed":
            stage.spans.append((stage.since, now))
            stage.phase, stage.since = "blocked", now
            return True
        elif stage.phase == "blocked" and all(
            len(queues[k, target]) < capacity for target in stage.load.feeds
        ):
            for target in stage.load.feeds:
                queues[k, target].append(now)
            stage.blocked += now - stage.since
            if k == len(stages) - 1:
                done.append(now)
            stage.phase, stage.since, stage.frame = "waiting", now, stage.frame + 1
            return True
    return False


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
