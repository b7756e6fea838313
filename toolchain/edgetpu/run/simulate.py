"""Simulates a pipeline of sticks, event by event, under the cost model.

Each stage takes a frame, spends its call, arithmetic and transfers, streams the parameters that its
cache cannot hold over the shared hub, and passes the frame on as soon as every queue that it fills
has room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from toolchain.edgetpu.model.cost import EdgeTpuCost

_EPSILON = 1e-12


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
