"""A local search over the orders in which a list allocator places the blocks.

The block at the top decides the size. The search moves this block, or one that is live with it, to
another place in the order. An order that needs no more bytes is kept. After `_STALE` orders without
a smaller arena the best order is shaken. Unlike the skyline search it does not tie blocks that
share bytes, and unlike CP-SAT it proves nothing; on chains of operators it mostly meets the bound
after some ten orders.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import permutations

from toolchain.arena._fit import Fitter
from toolchain.ir import ArenaProblem
from toolchain.search import Work

_NS_A_BLOCK, _NS_AN_INTERVAL = 800, 130
"""Nanoseconds to place a block, and for each interval that its offset may not fall in."""
_STALE = 400
"""Orders without a smaller arena before the best one is shaken."""
_SHAKEN = 4
"""Blocks that are moved when the best order is shaken."""
FEW = 7
"""Blocks of which every order is tried where none was found for long: 5,040."""


def smaller(
    problem: ArenaProblem,
    fitter: Fitter,
    orders: Sequence[Sequence[int]],
    wanted_bytes: int,
    work: Work,
) -> tuple[int, ...]:
    """Search from these orders for the smallest placement; end at `wanted_bytes`.

    It also ends at what the best order of few blocks needs. That counts as all the work there is,
    which a search without end would have spent: what follows has no more, and gives the same.
    """
    rng = random.Random(1)
    blocks = problem.blocks
    sizes = [block.size_bytes for block in blocks]
    cost = _NS_A_BLOCK * len(blocks) + _NS_AN_INTERVAL * fitter.intervals

    def fitted(order: Sequence[int]) -> tuple[int, tuple[int, ...]]:
        work.spend(cost)
        offsets = fitter.fit(order)
        return fitter.size_bytes(offsets), offsets

    (size, offsets), order = min(((fitted(order), [*order]) for order in orders), key=_size)
    best, stale, least = (size, offsets, order), 0, 0
    while best[0] > max(wanted_bytes, least) and not work.over:
        if stale == _STALE:
            if not least and len(order) <= FEW:
                least = min(fitter.size_bytes(fitter.fit(each)) for each in permutations(order))
                if best[0] == least:
                    break
            size, offsets, order = best
            for _ in range(_SHAKEN):
                order = _moved(order, rng.choice(order), rng.randrange(len(order)))
            size, offsets = fitted(order)
            stale = 0
        top = rng.choice([i for i in order if offsets[i] + sizes[i] == size])
        if rng.random() < 0.5:
            moved, place = top, rng.randrange(order.index(top) + 1)
        else:
            start, end = blocks[top].start, blocks[top].end
            beside = [i for i in order if blocks[i].start < end and start < blocks[i].end]
            moved, place = rng.choice(beside), rng.randrange(len(order))
        tried = _moved(order, moved, place)
        work.spend(cost)
        placed = fitter.fit_again(tried, moved, order, offsets)
        needs = fitter.size_bytes(placed)
        if needs <= size:
            size, offsets, order = needs, placed, tried
        stale += 1
        if needs < best[0]:
            best, stale = (needs, placed, tried), 0
    if best[0] == least > wanted_bytes:
        work.spend_seconds(work.left_seconds)
    return best[1]


def _size(candidate: tuple[tuple[int, tuple[int, ...]], list[int]]) -> int:
    return candidate[0][0]


def _moved(order: Sequence[int], block: int, place: int) -> list[int]:
    """The order with a block at another place."""
    rest = [i for i in order if i != block]
    return [*rest[:place], block, *rest[place:]]
