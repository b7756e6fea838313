"""MOTES: partition schemes found by a beam search that is guided by the memory bottleneck.

Hu et al., "MoteNN: Memory Optimization via Fine-grained Scheduling for Deep Neural Networks on Tiny
Devices" (DAC 2024), first submitted as MoteS: Algorithm 1. A state is a set of schemes. For each
state of the beam, the search finds the operator that holds the peak and tries every scheme of its
cell that contains it, with several n. Schemes that overlap a new one are dropped. The `_BEAM` best
states within the latency budget go on, until the peak no longer falls.

Decisions where the paper, as far as it is public, leaves something open:

- A cell is the run of steps around the bottleneck between two narrow separators: borders that are
  local minima of the live bytes, with at most `_NARROW` of the bottleneck's. So networks without
  named cells have cells too, and cells grow as the bottleneck falls.
- A scheme's S is what the axis connecting graph connects between two such minima of the cell; the
  `_BORDERS` narrowest on each side are tried. Its axis is the first, or the last, of its output.
- n is 2, 3, 4, 6, 8, 12 and so on, and the axis's whole length.
- States are compared by their peak, the number of steps that hold it, and their cost: in networks
  of equal cells the peak falls only when the last of them is split.
- The operators keep the given order; blocks run in the order in which their rows are ready.
- Blocks that a later block reads keep only the rows that are still needed, not whole blocks:
  the peak is at most that of MOTES.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from toolchain.partition.front import Front, Point, Task, Watch
from toolchain.partition.program import Mode
from toolchain.partition.segments import Segment, Segments

_BEAM = 8
_NS_A_STATE, _NS_A_STEP, _NS_A_SCHEME = 3000, 90, 500
"""To weigh a set of schemes, for each step that they split; and to try one more scheme."""
_NARROW = 0.5
_BORDERS = 5
_MOST_BLOCKS = 256
_LADDER = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, math.inf)
"""Latency budgets, as fractions, of which each is searched for."""


@dataclass(frozen=True)
class _State:
    """A set of schemes, as segments by where they begin; its peak, and how often it is held.

    `bottleneck`: the first step of the order, or segment, that holds the peak.
    """

    chosen: tuple[Segment, ...]
    peak_bytes: int
    held: int
    extra: int
    bottleneck: tuple[int, int]

    @property
    def rank(self) -> tuple[int, int, int]:
        return (self.peak_bytes, self.held, self.extra)


class _Motes:
    name = "motes"

    def front(self, task: Task, watch: Watch) -> Front:
        search = _Search(task, watch)
        with watch:
            for budget in _LADDER:
                search.run(budget)
        return Front(search.points(), search.segments.total, watch.seconds, watch.stopped)


SPLITTER = _Motes()


class _Search:
    """Beam searches under several budgets, which share what they tried."""

    def __init__(self, task: Task, watch: Watch) -> None:
        self.segments = Segments(replace(task, names=None), watch.work)
        self._watch = watch
        self._schemes: dict[tuple[int, int], list[Segment]] = {}
        self._whole = self._state(())
        self._seen = {self._whole.chosen: self._whole}

    def run(self, budget: float) -> None:
        """Algorithm 1. `budget`: most extra cost, as a fraction of the unsplit graph's."""
        most = budget * self.segments.total
        beam = [self._whole]
        while beam:
            best = beam[0]
            states: dict[tuple[Segment, ...], _State] = {}
            for state in beam:
                for made in self._next(state, most):
                    if self._watch.over():
                        return
                    states[made.chosen] = made
                self._watch.tell(
                    f"beam search within {budget:.0%}",
                    best.peak_bytes,
                    best.extra / max(self.segments.total, 1),
                )
            beam = sorted(states.values(), key=lambda s: (s.rank, _names(s)))[:_BEAM]

    def points(self) -> tuple[Point, ...]:
        """All states that were seen, but those than which another is both smaller and cheaper, as
        points."""
        kept: list[Point] = []
        for state in sorted(
            self._seen.values(),
            key=lambda s: (s.extra, s.peak_bytes, len(s.chosen), s.rank, _names(s)),
        ):
            if not kept or state.peak_bytes < kept[-1].peak_bytes:
                schemes = tuple(s.scheme for s in state.chosen if s.scheme is not None)
                kept.append(Point(state.peak_bytes, state.extra, schemes))
        return tuple(kept)

    def _next(self, state: _State, most: float) -> Iterator[_State]:
        """The state with one scheme more that lowers its bottleneck."""
        for segment in self._schemes_at(*state.bottleneck, state.peak_bytes):
            self._watch.work.spend(_NS_A_SCHEME * (len(state.chosen) + 1))
            if segment.peak_bytes >= state.peak_bytes:
                continue
            kept = [s for s in state.chosen if s.end <= segment.begin or segment.end <= s.begin]
            if segment.extra + sum(s.extra for s in kept) > most:
                continue
            chosen = tuple(sorted((*kept, segment), key=lambda s: s.begin))
            made = self._seen.get(chosen)
            if made is None:
                made = self._seen[chosen] = self._state(chosen)
            if (made.peak_bytes, made.held) < (state.peak_bytes, state.held):
                yield made

    def _state(self, chosen: tuple[Segment, ...]) -> _State:
        self._watch.work.spend(_NS_A_STATE + _NS_A_STEP * sum(s.end - s.begin for s in chosen))
        peak, held, at = 0, 0, (0, 0)
        inside = {step for s in chosen for step in range(s.begin, s.end)}
        for step in self._highest:
            size = self.segments.step_bytes[step]
            if size < peak:
                break
            if step not in inside:
                peak, held = size, held + 1
                at = at if held > 1 else (step, step + 1)
        for segment in chosen:
            if segment.peak_bytes > peak:
                peak, held, at = segment.peak_bytes, 0, (segment.begin, segment.end)
            held += segment.peak_bytes == peak
        return _State(chosen, peak, held, sum(s.extra for s in chosen), at)

    @cached_property
    def _highest(self) -> Sequence[int]:
        """Steps from the one with the highest peak on."""
        sizes = self.segments.step_bytes
        return sorted(range(len(sizes)), key=lambda step: (-sizes[step], step))

    @cached_property
    def _minima(self) -> Sequence[int]:
        """Borders between steps at which as little is live as on neither side of them."""
        live = self.segments.live
        last = len(live) - 1
        return [
            at
            for at in range(last + 1)
            if at in (0, last) or (live[at] <= live[at - 1] and live[at] <= live[at + 1])
        ]

    def _schemes_at(self, begin: int, end: int, peak_bytes: int) -> list[Segment]:
        """All schemes of the cell of steps [begin, end) that contain them."""
        spans: list[Segment] = []
        live = self.segments.live
        low, high = self._cell(begin, end, peak_bytes)
        minima = [at for at in self._minima if low <= at <= high]
        before = sorted((at for at in minima if at <= begin), key=lambda at: (live[at], -at))
        after = sorted((at for at in minima if at >= end), key=lambda at: (live[at], at))
        for first in before[:_BORDERS]:
            for last in after[:_BORDERS]:
                spans += self._schemes_of(first, last)
        return spans

    def _cell(self, begin: int, end: int, peak_bytes: int) -> tuple[int, int]:
        """The narrow separators next to steps [begin, end)."""
        live, most = self.segments.live, _NARROW * peak_bytes
        last = len(live) - 1
        narrow = [at for at in self._minima if at in (0, last) or live[at] <= most]
        return (
            max(at for at in narrow if at <= begin),
            min(at for at in narrow if at >= end),
        )

    def _schemes_of(self, begin: int, end: int) -> list[Segment]:
        """Steps [begin, end) in ever more blocks, along each axis that is tried."""
        key = (begin, end)
        if key not in self._schemes:
            segments: list[Segment] = []
            last = self.segments.graph.ops[end - 1]
            shape = self.segments.graph.output(last).shape if len(last.outputs) == 1 else ()
            long = [axis for axis, size in enumerate(shape) if size > 1]
            for axis in dict.fromkeys([*long[:1], *long[-1:]]):
                span = self.segments.span(begin, end, (last.outputs[0], axis))
                if span is None or span.least_bytes >= self._whole.peak_bytes:
                    continue
                made = self.segments.split(span, _counts(span.size), Mode.SLIDING)
                segments += [s for s in made if s.peak_bytes < self._whole.peak_bytes]
            self._schemes[key] = segments
        return self._schemes[key]


def _counts(size: int) -> list[int]:
    """2, 3, 4, 6, 8, 12 and so on below the size of the axis, and the size."""
    powers = [2**i for i in range(1, 12)]
    counts = sorted([*powers, *(3 * p // 2 for p in powers)])
    return [n for n in counts if n < min(size, _MOST_BLOCKS)] + [size] * (1 < size <= _MOST_BLOCKS)


def _names(state: _State) -> list[tuple[int, int, int]]:
    """A key that tells states of equal rank apart, the same in every run."""
    return [(s.begin, s.end, s.scheme.count if s.scheme else 1) for s in state.chosen]
