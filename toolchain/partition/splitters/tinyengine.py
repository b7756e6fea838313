"""Patch-based inference: the first stage in overlapping tiles, everything after it unsplit.

Lin et al., "MCUNetV2: Memory-Efficient Patch-based Inference for Tiny Deep Learning" (NeurIPS
2021), section 3, as TinyEngine does it. A stage of layers from the input on is computed patch by
patch, and each patch computes its halo anew. Where the stage ends and how many patches it has are
searched together. Here all stages that end where one tensor is live are tried with all numbers of
patches. A patch is a band of rows; TinyEngine's is a square. For the same buffers, bands recompute
less.
"""

from __future__ import annotations

from dataclasses import replace

from toolchain.partition.front import Front, Point, Task, Watch
from toolchain.partition.program import Mode
from toolchain.partition.segments import Segment, Segments

_MOST_PATCHES = 64


class _TinyEngine:
    name = "tinyengine"

    def front(self, task: Task, watch: Watch) -> Front:
        segments = Segments(replace(task, names=None), watch.work)
        steps = segments.step_bytes
        last = len(steps)
        stages: list[Segment] = []
        with watch:
            for end in _ends(segments):
                spans = [segments.span(0, end, seed) for seed in segments.rows(end)]
                span = spans[0] if spans else None
                if span is None or len(span.region.ops) < 2 or span.least_bytes >= max(steps):
                    continue
                rest = max(steps[end:], default=0)
                if watch.over():
                    break
                watch.tell(f"patches for {end} of {last} steps", *_best(segments, stages))
                counts = range(2, min(span.size, _MOST_PATCHES) + 1)
                for made in segments.split(span, counts, Mode.TILES):
                    stages.append(made._replace(peak_bytes=max(made.peak_bytes, rest)))
        whole = Segment(0, last, max(steps, default=0), 0)
        kept: list[Point] = []
        for segment in sorted([whole, *stages], key=lambda s: (s.extra, s.peak_bytes, s.end)):
            if not kept or segment.peak_bytes < kept[-1].peak_bytes:
                schemes = () if segment.scheme is None else (segment.scheme,)
                kept.append(Point(segment.peak_bytes, segment.extra, schemes))
        return Front(tuple(kept), segments.total, watch.seconds, watch.stopped)


SPLITTER = _TinyEngine()


def _ends(segments: Segments) -> list[int]:
    """Borders of the order that only one tensor crosses."""
    graph = segments.graph
    place = {name: step for step, op in enumerate(graph.ops) for name in op.outputs}
    crossing = [0] * (len(graph.ops) + 1)
    for name, at in {**dict.fromkeys(graph.inputs, -1), **place}.items():
        readers = graph.consumers[name]
        until = len(graph.ops) if name in graph.outputs else max(readers, default=at)
        for border in range(at + 1, until + 1):
            crossing[border] += 1
    return [at for at in range(2, len(graph.ops) + 1) if crossing[at] == 1]


def _best(segments: Segments, candidates: list[Segment]) -> tuple[float, float]:
    best = min(candidates, key=lambda s: (s.peak_bytes, s.extra), default=None)
    if best is None:
        return float("inf"), 0.0
    return best.peak_bytes, best.extra / max(segments.total, 1)
