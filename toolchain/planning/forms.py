"""Which operators take quicker forms of their kernels, whose constants take more flash.

The choice is over the whole network, by predicted cycles within a budget of flash: at most one form
of each operator, as `search.knapsack` packs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from toolchain.search.knapsack import Packed, pack


@dataclass(frozen=True)
class Way:
    """One way to compute an operator, or all its blocks: what it takes beyond the first way.

    functions  those that it calls instead of the kernel's own.
    """

    functions: frozenset[str]
    more_bytes: int
    saved: int


def within(
    items: Sequence[Sequence[Way]], spare: int, code_bytes: Callable[[frozenset[str]], int]
) -> Packed:
    """Choose at most one way for each item: the most time saved within so many bytes of flash.
    `code_bytes`: what functions add to the code, each once, however many ways call them.
    """
    functions = sorted({name for ways in items for way in ways for name in way.functions})
    best: tuple[int | None, ...] = (None,) * len(items)
    worth, optimal = (0, 0), True
    for count in range(1, len(functions) + 1):
        for allowed in combinations(functions, count):
            code = code_bytes(frozenset(allowed))
            left = spare - code
            if left < 0:
                continue
            usable = [
                [
                    at
                    for at, way in enumerate(ways)
                    if way.functions <= set(allowed) and way.saved > 0
                ]
                for ways in items
            ]
            sizes = [
                [(ways[at].more_bytes, ways[at].saved) for at in each]
                for ways, each in zip(items, usable, strict=True)
            ]
            packed = pack(sizes, left)
            chosen = tuple(
                None if at is None else each[at]
                for each, at in zip(usable, packed.choices, strict=True)
            )
            taken = [ways[at] for ways, at in zip(items, chosen, strict=True) if at is not None]
            size = code + sum(way.more_bytes for way in taken)
            optimal &= packed.optimal
            if (figures := (sum(way.saved for way in taken), -size)) > worth:
                best, worth = chosen, figures
    return Packed(best, optimal)
