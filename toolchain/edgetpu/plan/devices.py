"""Parts of models on devices: what each takes there, and how models share a stick's cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from toolchain.edgetpu.model.figures import EdgeTpuCost, HostCost, StageOf, layer_bytes, measure
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.plan.chains import host_ms
from toolchain.edgetpu.plan.cuts import Cuts, Floats, Integers
from toolchain.edgetpu.plan.demand import Demand
from toolchain.edgetpu.plan.queueing import Bus, Estimate, Flow, estimate


class Sharing(StrEnum):
    """How a device holds its parts.

    `resident`: one call of the compiler, all that a part alone could keep stays cached. `divided`:
    one call, models with more requests first; what does not fit streams with every request.
    `swapped`: compiled apart; a part's weights are loaded where the request before was of another
    model.
    """

    RESIDENT = "resident"
    DIVIDED = "divided"
    SWAPPED = "swapped"
    HOST = "host"


@dataclass(frozen=True)
class Part:
    """A stage of a model. `fixed_ms`: all but streaming; `layers`: parameter bytes of each
    operator; `streamed_bytes`: what its stick streams with every request where it is alone.
    `in_bytes`, `out_bytes`: tensors that it receives and passes on.
    """

    operators: tuple[int, ...]
    fixed_ms: float
    layers: tuple[int, ...]
    streamed_bytes: int
    in_bytes: int
    out_bytes: int

    @cached_property
    def param_bytes(self) -> int:
        return sum(self.layers)


@dataclass(frozen=True)
class Place:
    """A stage of a model at a device: `part`, and what it streams and swaps there."""

    device: int
    part: Part
    sharing: Sharing
    streamed_bytes: int
    swapped_bytes: int


@dataclass(frozen=True)
class Visit:
    """A stage of a model on a device; times in ms, of one request, alone on the bus.

    `fixed_ms`: all but streaming. `stream_ms`, `swap_ms`: as in `queueing.Flow`. `feeds`: the later
    stages of the model that take its result; None: the next one.
    """

    device: int
    fixed_ms: float
    stream_ms: float
    swap_ms: float = 0.0
    feeds: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Setting:
    """The devices: `sticks` of them, numbered from 0, and the host behind them if there is one."""

    sticks: int
    cost: EdgeTpuCost
    host: HostCost | None = None

    @property
    def devices(self) -> int:
        return self.sticks + (self.host is not None)

    @property
    def bus(self) -> Bus:
        return Bus(self.cost.alone_bytes_per_ms / self.cost.hub_bytes_per_ms)

    def stream_ms(self, size_bytes: int) -> float:
        return size_bytes / self.cost.alone_bytes_per_ms

    def alone_ms(self, place: Place) -> float:
        """A request's service at a place, without swaps and while nothing else streams."""
        return place.part.fixed_ms + self.stream_ms(place.streamed_bytes)

    def visit(self, place: Place) -> Visit:
        """A request's times at a place."""
        streamed, swapped = map(self.stream_ms, (place.streamed_bytes, place.swapped_bytes))
        return Visit(place.device, place.part.fixed_ms, streamed, swapped)

    def name(self, device: int) -> str:
        return "host" if device == self.sticks else f"stick {device}"


Path = tuple[tuple[int, Part], ...]
"""A model's stages in order: device and part."""
Stages = tuple[tuple[int, int], ...]
"""A path by cuts: the cut at the end of each stage, and its device."""


def steps(stages: Stages) -> Iterator[tuple[int, int, int]]:
    """The stages of a path: the cuts where each begins and ends, and its device."""
    begin = 0
    for end, device in stages:
        yield begin, end, device
        begin = end


def places_of(setting: Setting, paths: Sequence[Path], rates: Sequence[float]) -> list[list[Place]]:
    """How the parts share their devices: on each stick, as fewer bytes go over the bus."""
    here: dict[int, list[tuple[int, Part]]] = {}
    for model, path in enumerate(paths):
        for device, part in path:
            here.setdefault(device, []).append((model, part))
    places: dict[tuple[int, int], Place] = {}
    for device, parts in here.items():
        for model, place in _shared(setting, device, parts, rates):
            places[model, device] = place
    return [[places[model, device] for device, _ in path] for model, path in enumerate(paths)]


def _shared(
    setting: Setting, device: int, parts: Sequence[tuple[int, Part]], rates: Sequence[float]
) -> list[tuple[int, Place]]:
    if device == setting.sticks:
        return [(m, Place(device, part, Sharing.HOST, 0, 0)) for m, part in parts]
    cache = setting.cost.cache_bytes
    if len(parts) == 1 or sum(part.param_bytes for _, part in parts) <= cache:
        return [
            (m, Place(device, part, Sharing.RESIDENT, part.streamed_bytes, 0)) for m, part in parts
        ]
    everything = sum(rates[m] for m, _ in parts)
    swapped, swapped_load = [], 0.0
    for model, part in parts:
        kept = part.param_bytes - part.streamed_bytes
        swapped.append((model, Place(device, part, Sharing.SWAPPED, part.streamed_bytes, kept)))
        share = 1 - rates[model] / everything
        swapped_load += rates[model] * (part.streamed_bytes + share * kept)
    divided, divided_load, free = [], 0.0, cache
    for model, part in sorted(parts, key=lambda pair: -rates[pair[0]]):
        streamed, free = setting.cost.first_fit(part.layers, free)
        divided.append((model, Place(device, part, Sharing.DIVIDED, streamed, 0)))
        divided_load += rates[model] * streamed
    return divided if divided_load <= swapped_load else swapped


def estimate_of(setting: Setting, paths: Sequence[Path], rates: Sequence[float]) -> Estimate:
    """The latency of every model under the queueing model; `rates` a millisecond."""
    flows = []
    for model, places in enumerate(places_of(setting, paths, rates)):
        before: tuple[int, ...] = ()
        for visit in map(setting.visit, places):
            times = (visit.fixed_ms, visit.stream_ms, visit.swap_ms)
            flows.append(Flow(model, visit.device, rates[model], *times, before))
            before = (*before, visit.device)
    return estimate(flows, len(paths), setting.devices, setting.bus)


class Score(NamedTuple):
    """How good a plan is, the least first.

    `load`: the utilisation of the busiest where that is 1 or more, else 0. `late`: the largest
    share of a deadline that a 99th percentile takes, where that is above 1, else 0. `objective_ms`:
    0 where a device is overloaded.
    """

    load: float
    late: float
    objective_ms: float

    @property
    def met(self) -> bool:
        """Whether no device is overloaded and every deadline is met."""
        return not self.load and not self.late

    @property
    def latency_ms(self) -> float | None:
        """The objective; None where a device is overloaded."""
        return None if self.load else self.objective_ms


def score(predicted: Estimate, demand: Demand) -> Score:
    if predicted.load >= 1:
        return Score(predicted.load, 0.0, 0.0)
    return score_in_time(predicted.mean_ms, predicted.tail_ms, demand)


def score_in_time(means: Sequence[float], tails: Sequence[float], demand: Demand) -> Score:
    """The score of latencies in ms, by model, where no device is overloaded."""
    limits = zip(tails, demand.deadlines_ms, strict=True)
    late = max((tail / limit for tail, limit in limits if limit is not None), default=0.0)
    if demand.objective == "worst":
        objective_ms = max(tails)
    else:
        weighed = sum(rate * mean for rate, mean in zip(demand.rates, means, strict=True))
        objective_ms = weighed / sum(demand.rates)
    return Score(0.0, late if late > 1 else 0.0, objective_ms)


def parts_of(
    graph: PipelineGraph,
    stage_of: StageOf,
    stages: int,
    setting: Setting,
    balance: str,
) -> tuple[Part, ...]:
    """The stages of any assignment as parts, each alone on a stick."""
    figures, _ = measure([graph], [stage_of], stages, setting.cost, balance)
    return tuple(
        Part(
            stage.operators,
            setting.cost.fixed_ms(stage.time_ms, stage.streamed_bytes),
            tuple(layer_bytes(graph, stage.operators, balance)),
            stage.streamed_bytes,
            stage.in_bytes,
            stage.out_bytes,
        )
        for stage in figures[0]
    )


@dataclass(frozen=True)
class Table:
    """All stages of a model between two cuts, as matrices (from, to), and its parts."""

    cuts: Cuts
    setting: Setting

    @cached_property
    def streamed(self) -> Integers:
        """Bytes that a stick streams with every request of a stage that it has alone."""
        streamed = np.zeros_like(self.cuts.costs.params)
        rows, columns = np.nonzero(self.cuts.valid)
        missed, _ = self.cuts.costs.first_fit(rows, columns, self.setting.cost.cache_bytes)
        streamed[rows, columns] = missed
        return streamed

    @cached_property
    def stick_ms(self) -> Floats:
        """Service on a stick of its own; infinite where there is no stage."""
        times = (
            self.cuts.costs.time_without_streams
            + self.streamed / self.setting.cost.alone_bytes_per_ms
        )
        return np.where(self.cuts.valid, times, np.inf)

    @cached_property
    def least_stream_ms(self) -> Floats:
        """Streaming (ms) that no sharing of a stick goes below: to the byte."""
        spill = np.maximum(0, self.cuts.costs.params - self.setting.cost.cache_bytes)
        return np.where(self.cuts.valid, spill / self.setting.cost.alone_bytes_per_ms, np.inf)

    @cached_property
    def no_stream_ms(self) -> Floats:
        """Streaming (ms) of a stage on the host: none."""
        return np.where(self.cuts.valid, 0.0, np.inf)

    @cached_property
    def least_ms(self) -> Floats:
        """Times (ms) of the stages that no sharing of a stick goes below."""
        return self.cuts.costs.time_without_streams + self.least_stream_ms

    @cached_property
    def host_ms(self) -> Floats:
        host = self.setting.host
        if host is None:
            return np.full(self.cuts.costs.params.shape, np.inf)
        return np.where(self.cuts.valid, host_ms(self.cuts, host), np.inf)

    def least(self, device: int) -> Floats:
        return self.host_ms if device == self.setting.sticks else self.least_ms

    def alone(self, device: int) -> Floats:
        return self.host_ms if device == self.setting.sticks else self.stick_ms

    @cached_property
    def _parts(self) -> dict[tuple[int, int, bool], Part]:
        return {}

    def part(self, begin: int, end: int, device: int) -> Part:
        on_host = device == self.setting.sticks
        key = (begin, end, on_host)
        if key not in self._parts:
            operators = self.cuts.inside(begin, end)
            layers = layer_bytes(self.cuts.model.graph, operators, self.cuts.model.balance)
            times = self.host_ms if on_host else self.cuts.costs.time_without_streams
            streamed = 0 if on_host else int(self.streamed[begin, end])
            self._parts[key] = Part(
                operators,
                float(times[begin, end]),
                tuple(layers),
                streamed,
                int(self.cuts.costs.incoming[1][begin, end]),
                int(self.cuts.costs.outgoing[begin, end]),
            )
        return self._parts[key]

    def path(self, stages: Stages) -> Path:
        return tuple(
            (device, self.part(begin, end, device)) for begin, end, device in steps(stages)
        )
