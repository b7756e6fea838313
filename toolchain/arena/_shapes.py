"""Blocks that move together, over the sections of time that matter.

Blocks that may share bytes are tied: the dying block lies as low over the born one as its lead
allows. A chain of tied blocks is one rigid shape. Its bottom and top may differ from section to
section, as may those of a block that is live only in part. Every other block is a shape by itself:
a rectangle.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import attrgetter

from toolchain.ir import ArenaProblem, Block


@dataclass(frozen=True)
class Shape:
    """A rigid shape at an offset; `bottoms` and `heights` are in bytes, one per section.

    It is live in the half-open sections [first, last). `members`: (block, bytes above the offset).
    """

    first: int
    last: int
    bottoms: tuple[int, ...]
    heights: tuple[int, ...]
    alignment_bytes: int
    members: tuple[tuple[int, int], ...]
    area: int
    steps: int

    @cached_property
    def top_bytes(self) -> int:
        """One past the highest byte, above the offset."""
        return max(map(sum, zip(self.bottoms, self.heights, strict=True)))


@dataclass(frozen=True)
class Shapes:
    """The shapes that a skyline search places. `rigid`: some shape consists of tied blocks, or
    varies in time.
    """

    shapes: tuple[Shape, ...]
    sections: int
    rigid: bool


def shapes(problem: ArenaProblem) -> Shapes:
    """Tie the blocks of `problem` that share bytes, and find its sections.

    A section is a step whose set of live shapes is not a subset of its neighbour's. Other steps add
    no constraint.
    """
    chains, rigid = _chains(problem)
    blocks = problem.blocks
    spans = [
        (min(blocks[i].start for i, _ in chain), max(blocks[i].end for i, _ in chain))
        for chain in chains
    ]
    changing = any(len(chain) > 1 or blocks[chain[0][0]].profile for chain in chains)
    steps = _sections(problem, spans, keep_ends=changing)
    made = []
    for chain, (start, end) in zip(chains, spans, strict=True):
        first, last = bisect_left(steps, start), bisect_left(steps, end)
        bottoms, heights = [], []
        for step in steps[first:last]:
            bottom, top = _extent(blocks, chain, step)
            bottoms.append(bottom)
            heights.append(top - bottom)
        made.append(
            Shape(
                first=first,
                last=last,
                bottoms=tuple(bottoms),
                heights=tuple(heights),
                alignment_bytes=math.lcm(*(blocks[i].alignment_bytes for i, _ in chain)),
                members=tuple(chain),
                area=sum(
                    (blocks[i].end - blocks[i].start) * blocks[i].size_bytes for i, _ in chain
                ),
                steps=end - start,
            )
        )
    return Shapes(tuple(made), len(steps), rigid)


def _extent(
    blocks: Sequence[Block], chain: Sequence[tuple[int, int]], step: int
) -> tuple[int, int]:
    """The bytes [bottom, top) that a chain needs at a step, above its offset."""
    bottoms, tops = [], []
    for i, up in chain:
        if blocks[i].start <= step < blocks[i].end:
            runs = blocks[i].runs
            run = runs[bisect_right(runs, step, key=attrgetter("step")) - 1]
            bottoms.append(up + run.bottom_bytes)
            tops.append(up + run.top_bytes)
    return min(bottoms, default=0), max(tops, default=0)


def _chains(problem: ArenaProblem) -> tuple[list[list[tuple[int, int]]], bool]:
    """Tied blocks with their offsets in the chain; and whether any block may share at all."""
    blocks = problem.blocks
    born_of = {}
    dying_of = {}
    common = math.lcm(*(block.alignment_bytes for block in blocks))
    for pair in filter(problem.successive, problem.shared):
        if pair.exact and pair.lead_bytes % common:
            continue
        if pair.dying not in born_of and pair.born not in dying_of:
            born_of[pair.dying] = pair
            dying_of[pair.born] = pair.dying
    chains = []
    for index, block in enumerate(blocks):
        if block.start >= block.end or not block.size_bytes or index in dying_of:
            continue
        chain = [(index, 0)]
        unit = block.alignment_bytes
        while chain[-1][0] in born_of:
            above, at = chain[-1]
            pair = born_of[above]
            unit = math.lcm(unit, blocks[pair.born].alignment_bytes)
            down = -(-pair.lead_bytes // unit) * unit
            chain.append((pair.born, at - (down if pair.exact else max(0, down))))
        lowest = min(at for _, at in chain)
        chains.append([(i, at - lowest) for i, at in chain])
    return chains, bool(problem.shared) or any(block.profile for block in blocks)


def _sections(
    problem: ArenaProblem, spans: Sequence[tuple[int, int]], *, keep_ends: bool
) -> list[int]:
    """One step for each section."""
    starts = {start for start, _ in spans}
    if keep_ends:  # a shape changes where one of its members does, or dies
        starts |= {step for b in problem.blocks for step in (b.start, b.end)}
        starts |= {run.step for b in problem.blocks for run in b.profile}
        return _covered(sorted(starts), spans)
    kept: list[tuple[int, set[int]]] = []
    for step in sorted(starts):
        live = {i for i, (start, end) in enumerate(spans) if start <= step < end}
        while kept and kept[-1][1] <= live:
            kept.pop()
        if not (kept and live <= kept[-1][1]):
            kept.append((step, live))
    return [step for step, _ in kept]


def _covered(steps: Sequence[int], spans: Sequence[tuple[int, int]]) -> list[int]:
    """Drop the steps at which nothing is live."""
    changes = dict.fromkeys(steps, 0)
    for start, end in spans:
        changes[start] += 1
        changes[end] -= 1
    return [step for step, live in zip(steps, accumulate(changes.values()), strict=True) if live]
