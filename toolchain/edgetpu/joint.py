"""Several models on the same sticks: each in turn is optimised while the others stay as they
are.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolchain.edgetpu.figures import StageOf, layer_bytes, measure
from toolchain.edgetpu.lattice import Lattice, StageLoad, least_period

_LEAST_GAIN = 1e-9
_MOST_ROUNDS = 12


def improve(
    lattices: Sequence[Lattice], stage_of: Sequence[StageOf], stages: int
) -> tuple[StageOf, ...]:
    """A plan with a period no longer than that of `stage_of`, which no single model can shorten.

    Each model in turn is replanned by enumeration of the cuts of its lattice, for the cache and
    time that the others leave on each stick, until none gains.
    """
    best = tuple(stage_of)
    period = _period_ms(lattices, best, stages)
    idle = 0
    for turn in range(_MOST_ROUNDS * len(lattices)):
        number = turn % len(lattices)
        loads = _loads(lattices, best, stages, number)
        found = least_period(lattices[number], loads, period * (1 + 1e-12))
        idle += 1
        if found is not None:
            tried = (*best[:number], found, *best[number + 1 :])
            reached = _period_ms(lattices, tried, stages)
            if reached < period * (1 - _LEAST_GAIN):
                best, period, idle = tried, reached, 0
        if idle == len(lattices):
            break
    return best


def _period_ms(lattices: Sequence[Lattice], stage_of: Sequence[StageOf], stages: int) -> float:
    first = lattices[0]
    graphs = [lattice.graph for lattice in lattices]
    return measure(graphs, stage_of, stages, first.cost, first.balance, first.times_ms)[1].period_ms


def _loads(
    lattices: Sequence[Lattice], stage_of: Sequence[StageOf], stages: int, number: int
) -> list[StageLoad]:
    """What all models but `number` put on each stick."""
    first = lattices[0]
    graphs = [lattice.graph for lattice in lattices]
    figures, _ = measure(graphs, stage_of, stages, first.cost, first.balance, first.times_ms)
    found = []
    for stage in range(stages):
        before = [figures[other].stages[stage] for other in range(number)]
        behind = [figures[other].stages[stage] for other in range(number + 1, len(lattices))]
        fixed_ms = sum(
            part.time_ms - part.streamed_bytes / first.cost.stream_bytes_per_ms
            for part in (*before, *behind)
        )
        later = [
            size
            for graph, part in zip(graphs[number + 1 :], behind, strict=True)
            for size in layer_bytes(graph, part.operators, first.balance)
            if size
        ]
        found.append(
            StageLoad(
                first.cost.cache_bytes - sum(p.param_bytes - p.streamed_bytes for p in before),
                fixed_ms,
                sum(part.streamed_bytes for part in before),
                tuple(later),
            )
        )
    return found
