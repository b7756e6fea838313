"""Which operators a plan computes in blocks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from toolchain.ir import Graph, Op

_BETWEEN_BLOCKS = ("slice", "concat", "block_concat")
"""Kinds of the operators that cut tensors into blocks and join them again."""


@dataclass(frozen=True)
class Split:
    """Operators of the model by name, each computed in so many blocks."""

    operators: tuple[str, ...]
    blocks: int


def is_block(op: Op) -> bool:
    """Whether it computes, and does not cut or join blocks."""
    return op.kind not in _BETWEEN_BLOCKS


def splits_of(graph: Graph) -> tuple[Split, ...]:
    """The operators of a graph that are split, those of as many blocks together."""
    parts = Counter(op.part_of for op in graph.ops if op.part_of and is_block(op))
    alike: dict[int, list[str]] = {}
    for name, count in parts.items():
        alike.setdefault(count, []).append(name)
    return tuple(Split(tuple(names), count) for count, names in alike.items())
