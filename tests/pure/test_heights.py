"""Blocks of different heights: which ones a limit on the bytes allows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.support.split_graphs import inverted_bottleneck
from toolchain.ir import Graph
from toolchain.partition import CannotSplitError, Mode, Scheme, split
from toolchain.partition.heights import shifted, uneven
from toolchain.partition.program import BlockProgram, Heights
from toolchain.partition.region import Region, region
from toolchain.partition.walk import live_bytes

ROWS = 10


def bottleneck() -> Graph:
    return inverted_bottleneck(np.random.default_rng(5), ROWS, 8, 24, 8)


def rows_of(graph: Graph) -> Region:
    return region(graph, range(len(graph.ops)), (graph.outputs[0], 1))


def compositions(size: int) -> list[Heights]:
    """All heights of blocks that together have so many indices."""
    found = []
    for cuts in range(1 << (size - 1)):
        ends = [0, *(at for at in range(1, size) if cuts >> (at - 1) & 1), size]
        found.append(tuple(end - begin for begin, end in pairwise(ends)))
    return found


@pytest.mark.parametrize("mode", [Mode.SLIDING, Mode.TILES])
def test_no_blocks_of_as_few_bytes_have_fewer_calls(mode: Mode) -> None:
    """Against all heights that there are, each walked by itself."""
    whole = rows_of(bottleneck())
    dying = frozenset(whole.sliced)

    def program_of(heights: list[Heights]) -> BlockProgram:
        return BlockProgram(whole, [len(each) for each in heights], mode, heights=heights)

    every = program_of(compositions(ROWS))
    peaks = np.maximum.reduceat(live_bytes(every, dying), every.starts)
    calls = np.add.reduceat(sum(step.computed for step in every.steps), every.starts)
    found = uneven(program_of(shifted(ROWS)), ROWS, dying)
    assert len(found) >= 2
    for heights in found:
        at = compositions(ROWS).index(heights)
        assert len(set(heights)) > 1
        assert calls[at] == calls[(peaks <= peaks[at]) & every.valid].min()


@pytest.mark.parametrize("size", [1, 2, 9, 23])
def test_a_block_of_each_height_begins_at_each_place(size: int) -> None:
    found = set()
    tried = shifted(size)
    for heights in tried:
        assert sum(heights) == size and min(heights) > 0
        ends = np.cumsum(heights).tolist()
        found |= set(zip([0, *ends], ends, strict=False))
    for height in range(1, min(size, 10)):
        assert {(at, at + height) for at in range(size - height + 1)} <= found


def test_heights_are_in_proportion_and_one_for_each_block() -> None:
    graph = bottleneck()
    names = tuple(op.name for op in graph.ops)
    seed = graph.outputs[0], 1
    finer = split(graph, Scheme(names, seed, 3, Mode.TILES, heights=(1, 1, 3)))
    last = [op for op in finer.ops if op.part_of == names[-1] and op.kind == "conv2d"]
    assert [finer.output(op).shape[1] for op in last] == [2, 2, 6]
    for heights in ((1, 1), (1, 0, 1)):
        with pytest.raises(CannotSplitError, match=r"3 blocks cannot have the heights \(1, "):
            split(graph, Scheme(names, seed, 3, heights=heights))
