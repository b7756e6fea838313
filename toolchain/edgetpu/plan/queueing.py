"""Mean latency of requests that pass through devices, each a first-come first-served server.

Requests of each model arrive at random (Poisson) and take a fixed time on each device of the
model's path. The parts of this, with what each is:

- A device that serves requests from outside alone: the Pollaczek-Khinchine formula, exact for any
  mix of models whose weights stay on the device.
- One model on devices of its own: the waiting of all its stages together is that of the longest,
  exact (Friedman, "Reduction methods for tandem queuing systems", Operations Research 13, 1965):
  the device before has spaced its requests.
- Both at once: workloads of the groups of requests that come from the same device are joined by
  Brumelle's identity, V = sum of rate (S^2 / 2 + S W). Requests of other groups are met at their
  average, those of the same group as far as the device before has not spaced them. An
  approximation.
- A device that loads weights when the model changes: a request of a model pays with the probability
  that the last one was of another (SwapLess, arXiv 2602.17808, models such swaps, too). The mean
  service is exact, the dependence of neighbouring services is left out. An approximation.
- Parameters over the bus that all sticks share: a transfer takes 1 / (1 - the others' share of the
  bus) as long, and a model whose stages stream from several sticks waits at least as long as behind
  all its streams on one server. An approximation, and the weakest: 8% off on average, more where
  the bus is busy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

PERCENTILE = 0.99
_MOST_OTHERS = 0.99
TAIL = -math.log(1 - PERCENTILE)


@dataclass(frozen=True)
class Flow:
    """Requests of a model at one device of its path; times in ms, of one request.

    `stream_ms` and `swap_ms`: parameters sent with every request, and those sent when the request
    before was of another model, alone on the bus. `before`: devices that it comes through.
    """

    model: int
    device: int
    rate: float
    fixed_ms: float
    stream_ms: float
    swap_ms: float
    before: tuple[int, ...]


@dataclass(frozen=True)
class Bus:
    """The bus of the sticks. `share`: the part of it that one stick alone takes."""

    share: float

    @property
    def crowding(self) -> float:
        """How much longer a transfer takes while another streams too."""
        return max(0.0, 2 * self.share - 1)


@dataclass(frozen=True)
class Service:
    """A flow's service: mean and mean square (ms, ms^2); the share of its requests that swap."""

    mean: float
    square: float
    swaps: float


@dataclass(frozen=True)
class Estimate:
    """`busy`: utilisation of each device; `bus`: of the shared bus. By model, in ms: the service of
    all stages, waiting, and the 99th percentile of latency; infinite where a device is overloaded.
    `busy` is then without what others on the bus add, unless that alone is what overloads.
    """

    busy: tuple[float, ...]
    bus: float
    service_ms: tuple[float, ...]
    wait_ms: tuple[float, ...]
    tail_ms: tuple[float, ...]

    @property
    def mean_ms(self) -> tuple[float, ...]:
        return tuple(s + w for s, w in zip(self.service_ms, self.wait_ms, strict=True))

    @property
    def load(self) -> float:
        """The utilisation of what is busiest."""
        return max(*self.busy, self.bus)

    @property
    def busiest(self) -> int:
        """The device with the highest utilisation; -1 for the bus."""
        if self.bus >= max(self.busy):
            return -1
        return max(range(len(self.busy)), key=lambda device: self.busy[device])


def estimate(
    flows: Sequence[Flow], models: int, devices: int, bus: Bus, *, least: bool = False
) -> Estimate:
    """Latency of every model. A model without flows has none.

    `least`: what no plan with these flows among others can go below. Then nobody swaps, and
    requests that come from other devices do not meet each other.
    """
    here: list[list[int]] = [[] for _ in range(devices)]
    for index, flow in enumerate(flows):
        here[flow.device].append(index)
    rates = [sum(flows[i].rate for i in members) for members in here]
    swaps = [
        1 - flow.rate / rates[flow.device] if flow.swap_ms and not least else 0.0 for flow in flows
    ]
    streams = [0.0] * devices
    for flow, swap in zip(flows, swaps, strict=True):
        streams[flow.device] += flow.rate * (flow.stream_ms + swap * flow.swap_ms)
    everything = sum(streams)
    services = []
    for flow, swap in zip(flows, swaps, strict=True):
        crowd = _crowding(bus, streams, flow.device)
        base, more = flow.fixed_ms + crowd * flow.stream_ms, crowd * flow.swap_ms
        services.append(
            Service(base + swap * more, base * base + swap * more * (2 * base + more), swap)
        )
    busy = tuple(sum(flows[i].rate * services[i].mean for i in members) for members in here)
    service_ms, wait_ms, none = [0.0] * models, [0.0] * models, [1.0] * models
    for flow, service in zip(flows, services, strict=True):
        service_ms[flow.model] += service.mean
    taken = everything * bus.share
    if max(*busy, taken) >= 1:
        lost = (math.inf,) * models
        plain = [0.0] * devices
        for flow, swap in zip(flows, swaps, strict=True):
            alone_ms = flow.fixed_ms + flow.stream_ms + swap * flow.swap_ms
            plain[flow.device] += flow.rate * alone_ms
        overloaded = tuple(plain) if max(*plain, taken) >= 1 else busy
        return Estimate(overloaded, taken, tuple(service_ms), lost, lost)
    alone: dict[tuple[int, int], float] = {}
    for flow, service in zip(flows, services, strict=True):
        alone[flow.model, flow.device] = wait_alone(flow.rate, service)
    for members in here:
        for index, wait, met in _waits(flows, services, members, alone, least):
            wait_ms[flows[index].model] += wait
            none[flows[index].model] *= 1 - met
    for model in range(models):
        sent = [flow for flow in flows if flow.model == model and flow.stream_ms]
        if len(sent) > 1:
            work = sum(flow.stream_ms for flow in sent) * bus.share
            behind = wait_alone(sent[0].rate, Service(work, work * work, 0.0))
            wait_ms[model] = max(wait_ms[model], behind)
    if least:
        for model in range(models):
            own = [wait for (m, _), wait in alone.items() if m == model]
            wait_ms[model] = max([wait_ms[model], *own])
        tails = [s + w * TAIL for s, w in zip(service_ms, wait_ms, strict=True)]
    else:
        tails = [s + tail_of(w, 1 - n) for s, w, n in zip(service_ms, wait_ms, none, strict=True)]
    return Estimate(busy, taken, tuple(service_ms), tuple(wait_ms), tuple(tails))


def _crowding(bus: Bus, streams: Sequence[float], device: int) -> float:
    """How much longer a transfer of one stick takes beside those of the others. `streams`: the
    share of time that each device would stream, alone on the bus.
    """
    others = (sum(streams) - streams[device]) * bus.share
    if not bus.crowding or others <= 0 or not streams[device]:
        return 1.0
    most = max(1.0, bus.share * sum(stream > 0 for stream in streams))
    return min(most, 1 + bus.crowding * others / (1 - min(_MOST_OTHERS, others)))


def tail_of(wait_ms: float, share: float) -> float:
    """The 99th percentile of a waiting time with this mean, where this share of requests waits: the
    waiting of those that do is taken as exponential.
    """
    if share <= 0:
        return 0.0
    return wait_ms * max(TAIL, math.log(max(1.0, share / (1 - PERCENTILE))) / share)


def wait_alone(rate: float, service: Service) -> float:
    """Pollaczek and Khinchine's mean waiting time (ms) of requests that come at random, behind each
    other alone; infinite where they come more quickly than they are served.
    """
    room = 1 - rate * service.mean
    return rate * service.square / 2 / room if room > 0 else math.inf


def _waits(
    flows: Sequence[Flow],
    services: Sequence[Service],
    indices: Sequence[int],
    alone: dict[tuple[int, int], float],
    least: bool,
) -> list[tuple[int, float, float]]:
    """Each flow at one device: mean waiting time in ms, and the share of requests that wait."""
    groups: dict[int | None, list[int]] = {}
    for index in indices:
        before = flows[index].before
        source = None if not before else (0 if least else before[-1])
        groups.setdefault(source, []).append(index)
    parts = []
    for source, members in groups.items():
        work = sum(flows[i].rate * services[i].square for i in members) / 2
        load = sum(flows[i].rate * services[i].mean for i in members)
        if source is None:
            seen = 1.0
        elif least:
            seen = 0.0
        else:
            own = _unspaced(flows, services, members, alone)
            seen = own / (work + load * own) if work else 0.0
        parts.append((members, work, load, seen))
    weights = [1 / (1 + load * (1 - seen)) for _, _, load, seen in parts]
    total = sum(part[1] * w for part, w in zip(parts, weights, strict=True)) / (
        1 - sum(part[2] * w for part, w in zip(parts, weights, strict=True))
    )
    everywhere = sum(load for _, _, load, _ in parts)
    result = []
    for (members, work, load, seen), weight in zip(parts, weights, strict=True):
        own = (work + load * total) * weight
        wait = total - (1 - seen) * own
        met = everywhere - (1 - seen) * load
        result += [(index, wait, met) for index in members]
    return result


def _unspaced(
    flows: Sequence[Flow],
    services: Sequence[Service],
    members: Sequence[int],
    alone: dict[tuple[int, int], float],
) -> float:
    """The time that requests from one device wait for each other: as if they came at random, less
    the time that they have waited for each other before.
    """
    least = 0.0
    for index in members:
        flow = flows[index]
        spaced = max(alone[flow.model, device] for device in flow.before)
        least = max(least, alone[flow.model, flow.device] - spaced)
    if len(members) == 1:
        return least
    rate = [flows[i].rate for i in members]
    shared = set.intersection(*(set(flows[i].before) for i in members))
    at = {(flow.model, flow.device): s for flow, s in zip(flows, services, strict=True)}

    last = [at[flows[i].model, flows[i].before[-1]] for i in members]

    def together(device: int) -> float:
        served = [at[flows[i].model, device] for i in members]
        work = sum(r * s.square for r, s in zip(rate, served, strict=True)) / 2
        return work / (1 - sum(r * s.mean for r, s in zip(rate, served, strict=True)))

    here = flows[members[0]].device
    return max(
        least,
        together(here) - max(together(device) for device in shared),
        _behind_longer(rate, [at[flows[i].model, here] for i in members], last),
    )


def _behind_longer(
    rate: Sequence[float], here: Sequence[Service], before: Sequence[Service]
) -> float:
    """The waiting time of a request straight behind another model's longer one."""
    load = sum(r * s.mean for r, s in zip(rate, before, strict=True))
    return (
        load
        * sum(
            follows * leads * max(0.0, longer.mean - spaced.mean)
            for follows, spaced in zip(rate, before, strict=True)
            for leads, longer in zip(rate, here, strict=True)
        )
        / sum(rate) ** 2
    )
