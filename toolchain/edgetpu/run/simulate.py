"""Simulates plans event by event, under the cost model.

Each device takes what has come to it in that order, one stage at a time. A stage spends its fixed
time, then streams the parameters that do not fit the cache, and all of its model's weights where
the stage before was of another model that does not fit beside it; devices that stream at the same
time share the bus. It passes its result on as soon as every queue that it fills has room.

`simulate`: frames through a pipeline, a device for each stage, whose queues are bounded.
`simulate_requests`: requests of several models at their rates, whose queues are not.
"""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from toolchain.edgetpu.plan.devices import Visit
from toolchain.edgetpu.plan.queueing import PERCENTILE, Bus
from toolchain.edgetpu.plan.rates import Routes

_BATCHES = 20
_STUDENT = 2.093
"""Student's t of 95% and 19 degrees of freedom: the means of `_BATCHES` batches."""
_WARM = 0.1


@dataclass(slots=True)
class StageTrace:
    """Milliseconds of one stage, summed over all frames, and when it worked on each."""

    busy_ms: float = 0.0
    stream_ms: float = 0.0
    starved_ms: float = 0.0
    blocked_ms: float = 0.0
    queue_ms: float = 0.0
    spans: list[tuple[float, float]] = field(default_factory=list)


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


@dataclass(slots=True)
class _Work:
    """A stage of one request. `ready`: the moment when all that it needs has come."""

    model: int
    stage: int
    number: int
    ready: float


@dataclass(slots=True)
class _Device(StageTrace):
    """`until`: the end of the fixed time of `work`; `left`: its milliseconds of streaming; `since`:
    when it began to wait for work, or for room to pass its result on.
    """

    queue: deque[_Work] = field(default_factory=deque)
    work: _Work | None = None
    last: int = -1
    until: float = math.inf
    left: float = 0.0
    since: float = 0.0
    ended: bool = False


class _Run:
    """Devices at work; `now` is in ms.

    `paths`: the stages of each model. `capacity`: results that a queue between two stages holds.
    `saturated`: a request enters when its first stage takes it, not when it comes. `done`: when
    each request of each model entered and left, in the order of leaving.
    """

    def __init__(
        self,
        paths: Sequence[Sequence[Visit]],
        devices: int,
        bus: Bus,
        capacity: float = math.inf,
        saturated: bool = False,
    ) -> None:
        self._paths, self._share = paths, bus.share
        self._capacity, self._saturated = capacity, saturated
        self._bounded = capacity < math.inf
        self._feeds = [
            [
                visit.feeds if visit.feeds is not None else (k + 1,) * (k + 1 < len(path))
                for k, visit in enumerate(path)
            ]
            for path in paths
        ]
        self._sources = [
            [[s for s, targets in enumerate(feeds) if k in targets] for k in range(len(feeds))]
            for feeds in self._feeds
        ]
        self.devices = [_Device() for _ in range(devices)]
        self.now = self.streamed = 0.0
        self._streaming: list[_Device] = []
        self._held: Counter[tuple[int, int, int]] = Counter()
        self._left = 0
        self._come: Counter[tuple[int, int, int]] = Counter()
        self._entered: list[list[float]] = [[] for _ in paths]
        self.done: list[list[tuple[float, float]]] = [[] for _ in paths]

    def run(self, coming: Sequence[tuple[float, int]]) -> None:
        """Serve requests: their moments and models, in order. Ends when all are served."""
        following, streaming = 0, self._streaming
        while self._left < len(coming):
            pace = 1.0
            if len(streaming) > 1:
                pace = min(1.0, 1 / (len(streaming) * self._share))
            moment = coming[following][0] if following < len(coming) else math.inf
            ready: _Device | None = None
            for device in self.devices:
                if device.until < moment:
                    moment, ready = device.until, device
            streamed = False
            for device in streaming:
                at = self.now + device.left / pace
                if at < moment:
                    moment, ready, streamed = at, device, True
            step = moment - self.now
            for device in streaming:
                device.left -= step * pace
                device.stream_ms += step
                self.streamed += step * pace
            self.now = moment
            if ready is None:
                self._enter(coming[following][1])
                following += 1
            elif streamed or not ready.left > 0:
                if streamed:
                    streaming.remove(ready)
                self._end(ready)
            else:
                ready.until = math.inf
                streaming.append(ready)

    def _enter(self, model: int) -> None:
        """A request comes, to every stage that needs no other's result."""
        number = len(self._entered[model])
        self._entered[model].append(self.now)
        for stage, sources in enumerate(self._sources[model]):
            if not sources:
                self._put(_Work(model, stage, number, self.now))

    def _put(self, work: _Work) -> None:
        device = self.devices[self._paths[work.model][work.stage].device]
        device.queue.append(work)
        if device.work is None:
            self._begin(device)

    def _begin(self, device: _Device) -> None:
        """Take the next work. The stages whose results it takes may have waited for room."""
        work = device.work = device.queue.popleft()
        visit, sources = self._paths[work.model][work.stage], self._sources[work.model][work.stage]
        device.starved_ms += self.now - device.since
        device.since = self.now
        if sources or not self._saturated:
            device.queue_ms += self.now - work.ready
        if work.stage == 0 and self._saturated:
            self._entered[work.model][work.number] = self.now
        swapped = visit.swap_ms if device.last not in (-1, work.model) else 0.0
        device.last = work.model
        device.left = visit.stream_ms + swapped
        device.until = self.now + visit.fixed_ms
        device.busy_ms -= self.now
        if self._bounded:
            for source in sources:
                self._held[work.model, source, work.stage] -= 1
                self._pass_on(self.devices[self._paths[work.model][source].device])

    def _end(self, device: _Device) -> None:
        device.busy_ms += self.now
        device.spans.append((device.since, self.now))
        device.until, device.since, device.ended = math.inf, self.now, True
        self._pass_on(device)

    def _pass_on(self, device: _Device) -> None:
        """Hand the result to the stages that need it, if it is there and all have room."""
        work = device.work
        if work is None or not device.ended:
            return
        model, stage = work.model, work.stage
        feeds = self._feeds[model][stage]
        if self._bounded:
            if any(self._held[model, stage, target] >= self._capacity for target in feeds):
                return
            self._held.update((model, stage, target) for target in feeds)
        device.blocked_ms += self.now - device.since
        device.work, device.since, device.ended = None, self.now, False
        if stage == len(self._paths[model]) - 1:
            self.done[model].append((self._entered[model][work.number], self.now))
            self._left += 1
        for target in feeds:
            needed, key = len(self._sources[model][target]), (model, target, work.number)
            if needed > 1:
                self._come[key] += 1
            if needed == 1 or self._come[key] == needed:
                self._come.pop(key, None)
                self._put(_Work(*key, self.now))
        if device.queue and device.work is None:
            self._begin(device)


def simulate(
    stages: Sequence[Visit],
    bus: Bus,
    frames: int = 200,
    capacity: int = 1,
    arrival_ms: float = 0.0,
) -> Simulation:
    """Run `frames` frames that arrive every `arrival_ms` (0: as fast as they are taken).

    `stages`: each on the device of its number. `capacity`: frames that an inner queue holds; the
    outer ones are unbounded, as Google's are.
    """
    run = _Run([stages], len(stages), bus, capacity, saturated=not arrival_ms)
    run.run([(number * arrival_ms, 0) for number in range(frames)])
    (done,) = run.done
    half = len(done) // 2
    last = done[-1][1]
    return Simulation(
        len(done),
        (last - done[half - 1][1]) / (len(done) - half) if half else last,
        sum(left - entered for entered, left in done) / len(done),
        done[0][1] - done[0][0],
        run.streamed * bus.share / run.now if run.now else 0.0,
        tuple(run.devices),
    )


class Arrivals(StrEnum):
    """How requests arrive: at random, or one every period from a random moment on."""

    POISSON = "poisson"
    PERIODIC = "periodic"


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
    """A simulation of requests. `busy`: the share of its time that each device worked."""

    models: tuple[Served, ...]
    busy: tuple[float, ...]
    bus: float


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
    least = coming[int(_WARM * len(coming))][0]
    run = _Run(paths, devices, bus)
    run.run(coming)
    limits = deadlines_ms or [None] * len(rates)
    return RequestTrace(
        tuple(
            _served([left - at for at, left in done if at >= least], limit)
            for done, limit in zip(run.done, limits, strict=True)
        ),
        tuple(device.busy_ms / run.now for device in run.devices),
        run.streamed * bus.share / run.now,
    )


def _arrivals(
    rates: Sequence[float], requests: int, arrivals: Arrivals, seed: int
) -> list[tuple[float, int]]:
    """Moments in ms and models, in order."""
    rng = random.Random(seed)
    span = requests / sum(rates)
    coming = []
    for model, rate in enumerate(rates):
        at = rng.random() / rate
        if arrivals is Arrivals.POISSON:
            at = rng.expovariate(rate)
        while at < span:
            coming.append((at, model))
            at += rng.expovariate(rate) if arrivals is Arrivals.POISSON else 1 / rate
    return sorted(coming)


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


def simulate_plan(
    plan: Routes,
    requests: int = 20_000,
    arrivals: Arrivals = Arrivals.POISSON,
    seed: int = 0,
) -> RequestTrace:
    """The plan event by event."""
    return simulate_requests(
        plan.paths,
        plan.demand.rates_a_ms,
        plan.setting.devices,
        plan.setting.bus,
        requests,
        arrivals,
        plan.demand.deadlines_ms,
        seed,
    )
