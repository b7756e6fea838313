"""Bytes and times of an assignment of operators to stages.

The time of a stage on a USB stick is fitted to published measurements of Edge TPUs. A stage takes a
fixed time per call, and time for its arithmetic, for the parameters that its cache cannot hold, and
for its transfers. Sticks behind one hub share the bus over which parameters stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from toolchain.edgetpu.model.graph import PipelineGraph

BALANCES = ("file", "compiled")
CACHE_BYTES = int(7.7 * (1 << 20))
"""Usable parameter cache of a stick: 8 MiB minus activations and code."""


@dataclass(frozen=True)
class EdgeTpuCost:
    """Rates in bytes (or MACs) per millisecond. The defaults fit USB 3 sticks behind one hub.

    A layer is cached whole or streamed whole. `whole_layers=False` counts what exceeds the cache to
    the byte, as the formulation's spill does.
    """

    cache_bytes: int = CACHE_BYTES
    call_ms: float = 0.3
    macs_per_ms: float = 0.5e9
    stream_bytes_per_ms: float = 500e3
    in_bytes_per_ms: float = 311e3
    out_bytes_per_ms: float = 53e3
    hub_bytes_per_ms: float = 445e3
    whole_layers: bool = True

    @property
    def alone_bytes_per_ms(self) -> float:
        """How quickly one stick streams while no other does."""
        return min(self.stream_bytes_per_ms, self.hub_bytes_per_ms)

    def spill_bytes(self, param_bytes: int) -> int:
        """Parameters beyond the cache, to the byte (formulation (8))."""
        return max(0, param_bytes - self.cache_bytes)

    def first_fit(self, layers: Iterable[int], free: int) -> tuple[int, int]:
        """Parameter bytes sent with every frame, and what is left of `free` bytes of the cache:
        layers in order, each cached if it fits.
        """
        if not self.whole_layers:
            total = sum(layers)
            return max(0, total - free), max(0, free - total)
        streamed = 0
        for size in layers:
            if size <= free:
                free -= size
            else:
                streamed += size
        return streamed, free

    def overhead_ms(self, streamed: int, in_bytes: int, out_bytes: int) -> float:
        """Time of a call of a stage without its arithmetic, alone on its bus."""
        return (
            self.call_ms
            + streamed / self.stream_bytes_per_ms
            + in_bytes / self.in_bytes_per_ms
            + out_bytes / self.out_bytes_per_ms
        )

    def fixed_ms(self, time_ms: float, streamed: int) -> float:
        """All but streaming, of a stage's time alone on its bus."""
        return time_ms - streamed / self.stream_bytes_per_ms

    def period_ms(self, stages_ms: Sequence[float], streamed: int) -> float:
        """Time between results: the slowest stage, or the shared bus if that is slower."""
        return max(max(stages_ms), streamed / self.hub_bytes_per_ms)


@dataclass(frozen=True)
class HostCost:
    """The time of a stage on the computer that the sticks are plugged into, on one of its cores.

    Its tensors stay in memory: only the sticks beside it send and receive. `times_ms`: measured
    milliseconds of each operator, instead of `macs_per_ms`.
    """

    macs_per_ms: float = 10e6
    call_ms: float = 0.02
    times_ms: tuple[float, ...] | None = None

    def weights_ms(self, macs: Sequence[int]) -> tuple[float, ...]:
        """Milliseconds of each operator. Raises ValueError for times of another model."""
        if self.times_ms is None:
            return tuple(count / self.macs_per_ms for count in macs)
        if len(self.times_ms) != len(macs):
            raise ValueError(f"{len(self.times_ms)} times for {len(macs)} operators")
        return self.times_ms


PROCESSOR = EdgeTpuCost(
    cache_bytes=1 << 40,
    call_ms=0.02,
    macs_per_ms=1e6,
    stream_bytes_per_ms=1e9,
    in_bytes_per_ms=1e7,
    out_bytes_per_ms=1e7,
    hub_bytes_per_ms=1e9,
)
"""Stages on the processor, for replanning from a profile that was measured there."""

_EVERYTHING = 1 << 60
"""The cache of a stage that is on no stick."""
StageOf = tuple[int, ...]
"""The stage of each operator of one model."""
Free = tuple[int, int]
"""Bytes of a cache that the models before leave, by the byte and by the layer."""


@dataclass(frozen=True)
class StageFigures:
    """One stage of one model. `in_bytes` and `out_bytes` include the model's own inputs and
    outputs.

    `spill_bytes` is what exceeds the cache. `streamed_bytes` is what is sent with every frame when
    layers are cached whole.
    """

    operators: tuple[int, ...]
    param_bytes: int
    spill_bytes: int
    streamed_bytes: int
    in_bytes: int
    out_bytes: int
    macs: int
    time_ms: float


Figures = tuple[StageFigures, ...]
"""The stages of one model."""


@dataclass(frozen=True)
class Totals:
    """All models on the same sticks. `stages_ms`: one frame of every model.

    `communication_bytes`: tensors between stages, once per reading stage.
    """

    max_stage_bytes: int
    spill_bytes: int
    streamed_bytes: int
    communication_bytes: int
    stages_ms: tuple[float, ...]
    period_ms: float


@dataclass(frozen=True)
class HostStage:
    """Which stage is on the host, and what it costs there."""

    stage: int
    cost: HostCost


@dataclass(frozen=True)
class McuStage:
    """Which stage is on a microcontroller: an inference takes `time_ms`, and the link is idle then.

    Every byte that the stage receives or sends passes the link.
    """

    stage: int
    time_ms: float
    link_bytes_per_ms: float

    def stage_ms(self, moved_bytes: int) -> float:
        return self.time_ms + moved_bytes / self.link_bytes_per_ms


def _beside(
    figures: Figures, graph: PipelineGraph, host: HostStage | None, mcu: McuStage | None
) -> Figures:
    """With the times of the stages that are on no stick."""
    stages = list(figures)
    if host is not None:
        weights = host.cost.weights_ms([op.macs for op in graph.ops])
        stage = stages[host.stage]
        time_ms = host.cost.call_ms + sum(weights[i] for i in stage.operators)
        stages[host.stage] = replace(stage, time_ms=time_ms)
    if mcu is not None:
        stage = stages[mcu.stage]
        time_ms = mcu.stage_ms(stage.in_bytes + stage.out_bytes)
        stages[mcu.stage] = replace(stage, time_ms=time_ms)
    return tuple(stages)


def layer_bytes(graph: PipelineGraph, operators: Sequence[int], balance: str) -> list[int]:
    """Parameter bytes of each operator in turn; a shared constant counts at its first reader."""
    if balance == "compiled":
        return [graph.ops[index].compiled_bytes for index in operators]
    met: set[int] = set()
    sizes = []
    for index in operators:
        fresh = [c for c in graph.ops[index].constants if c not in met]
        met.update(fresh)
        sizes.append(sum(graph.constant_bytes[c] for c in fresh))
    return sizes


def operator_weights_ms(graph: PipelineGraph, cost: EdgeTpuCost) -> tuple[float, ...]:
    """Arithmetic of each operator under the cost model."""
    return tuple(op.macs / cost.macs_per_ms for op in graph.ops)


def measure(
    graphs: Sequence[PipelineGraph],
    stage_of: Sequence[StageOf],
    stages: int,
    cost: EdgeTpuCost,
    balance: str = "file",
    times_ms: Sequence[float] | None = None,
    host: HostStage | None = None,
    mcu: McuStage | None = None,
) -> tuple[tuple[Figures, ...], Totals]:
    """Figures of every model, and of all together; earlier models fill the caches first.

    `times_ms`, if measured, replaces the arithmetic of the first model: one time per operator. One
    stage may be on the `host` and one on a microcontroller, `mcu`: both stream nothing.
    """
    caches = [(cost.cache_bytes, cost.cache_bytes)] * stages
    for beside in (host, mcu):
        if beside is not None:
            caches[beside.stage] = (_EVERYTHING, _EVERYTHING)
    measured, communication = [], 0
    for number, (graph, assigned) in enumerate(zip(graphs, stage_of, strict=True)):
        weights = times_ms if times_ms is not None and number == 0 else None
        members: list[list[int]] = [[] for _ in caches]
        for index, stage in enumerate(assigned):
            members[stage].append(index)
        alone = (
            stage_figures(graph, assigned, operators, cost, free, balance, weights)
            for operators, free in zip(members, caches, strict=True)
        )
        figures = _beside(tuple(alone), graph, host, mcu)
        caches = [
            (
                max(0, by_byte - stage.param_bytes),
                by_layer - (stage.param_bytes - stage.streamed_bytes),
            )
            for (by_byte, by_layer), stage in zip(caches, figures, strict=True)
        ]
        measured.append(figures)
        communication += sum(stage.in_bytes for stage in figures)
        communication -= sum(
            graph.tensors[t].size_bytes * len({assigned[user] for user in graph.consumers[t]})
            for t in {t for t in graph.inputs if t in graph.consumers}
        )
    columns = list(zip(*measured, strict=True))
    stages_ms = tuple(sum(stage.time_ms for stage in column) for column in columns)
    streamed = sum(stage.streamed_bytes for column in columns for stage in column)
    totals = Totals(
        max(sum(stage.param_bytes for stage in column) for column in columns),
        sum(stage.spill_bytes for column in columns for stage in column),
        streamed,
        communication,
        stages_ms,
        cost.period_ms(stages_ms, streamed),
    )
    return tuple(measured), totals


def stage_figures(
    graph: PipelineGraph,
    stage_of: Sequence[int],
    operators: Sequence[int],
    cost: EdgeTpuCost,
    free: Free,
    balance: str,
    times_ms: Sequence[float] | None = None,
) -> StageFigures:
    """The stage of these operators, in their order, on a stick with so much `free` cache."""
    sizes = layer_bytes(graph, operators, balance)
    read = {t for i in operators for t in graph.ops[i].inputs}
    written = {t for i in operators for t in graph.ops[i].outputs}
    stage = stage_of[operators[0]] if operators else -1
    leaving = {
        t for t in written if any(stage_of[user] != stage for user in graph.consumers.get(t, ()))
    } | (written & set(graph.outputs))
    macs = sum(graph.ops[i].macs for i in operators)
    by_byte, by_layer = free
    streamed, _ = cost.first_fit(sizes, by_layer)
    in_bytes, out_bytes = _size(graph, read - written), _size(graph, leaving)
    arithmetic_ms = (
        macs / cost.macs_per_ms if times_ms is None else sum(times_ms[i] for i in operators)
    )
    return StageFigures(
        tuple(operators),
        sum(sizes),
        max(0, sum(sizes) - by_byte),
        streamed,
        in_bytes,
        out_bytes,
        macs,
        arithmetic_ms + cost.overhead_ms(streamed, in_bytes, out_bytes),
    )


def _size(graph: PipelineGraph, tensors: set[int]) -> int:
    return sum(graph.tensors[t].size_bytes for t in tensors)
