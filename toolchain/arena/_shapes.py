"""Blocks that move as one, over the sections of time that matter.

Blocks that may share bytes are tied: the dying one lies as low over the born one as its lead
allows. A tied chain is one rigid shape, whose bottom and top may differ from section to section.
Every other block is a shape by itself: a rectangle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from toolchain.ir import ArenaProblem


@dataclass(frozen=True)
class Shape:
    """Rises and falls with its offset; `bottoms` and `heights` in bytes, one per section.

    Lives in the half-open sections [first, last). `members`: (block, bytes above the offset).
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
        """Of the highest byte, above the offset."""
        return max(map(sum, zip(self.bottoms, self.heights, strict=True)))


@dataclass(frozen=True)
class Shapes:
    """What a skyline search places. `rigid`: some shape is of tied blocks, or not of one kind."""

    shapes: tuple[Shape, ...]
    sections: int
    rigid: bool


def shapes(problem: ArenaProblem) -> Shapes:
    """Tie the blocks of `problem` that share, and find its sections.

    A section is a step whose set of live shapes is not part of its neighbour's: the others follow.
    """
    chains, rigid = _chains(problem)
    blocks = problem.blocks
    spans = [
        (min(blocks[i].start for i, _ in chain), max(blocks[i].end for i, _ in chain))
        for chain in chains
    ]
    tied = any(len(chain) > 1 for chain in chains)
    steps = _sections(problem, spans, keep_ends=tied)
    made = []
    for chain, (start, end) in zip(chains, spans, strict=True):
        inside = [k for k, step in enumerate(steps) if start <= step < end]
        bottoms, heights = [], []
        for k in inside:
            live = [(i, up) for i, up in chain if blocks[i].start <= steps[k] < blocks[i].end]
            bottom = min((up for _, up in live), default=0)
            top = max((up + blocks[i].size_bytes for i, up in live), default=0)
            bottoms.append(bottom)
            heights.append(top - bottom)
        made.append(
            Shape(
                first=inside[0],
                last=inside[-1] + 1,
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


def _chains(problem: ArenaProblem) -> tuple[list[list[tuple[int, int]]], bool]:
    """Tied blocks with their offsets in the chain; and whether any block may share at all."""
    blocks = problem.blocks
    born_of = {}
    dying_of = {}
    common = math.lcm(*(block.alignment_bytes for block in blocks))
    for pair in problem.shared:
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
    return chains, bool(problem.shared)


def _sections(
    problem: ArenaProblem, spans: Sequence[tuple[int, int]], *, keep_ends: bool
) -> list[int]:
    """One step for each section."""
    starts = {start for start, _ in spans}
    if keep_ends:  # a shape changes where one of its members dies
        last = max((end for _, end in spans), default=0)
        starts |= {step for b in problem.blocks for step in (b.start, b.end) if step < last}
        return [t for t in sorted(starts) if any(a <= t < b for a, b in spans)]
    kept: list[tuple[int, set[int]]] = []
    for step in sorted(starts):
        live = {i for i, (start, end) in enumerate(spans) if start <= step < end}
        while kept and kept[-1][1] <= live:
            kept.pop()
        if not (kept and live <= kept[-1][1]):
            kept.append((step, live))
    return [step for step, _ in kept]
