"""Einsum as transposes, reshapes and matrix products."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

_DOTS = "..."


class Writer(Protocol):
    """What adds operators: see `compositions`."""

    def op(self, operator: str, inputs: Sequence[str], **attributes: Any) -> str: ...

    def constant(self, values: Any, dtype: type[np.generic] = ...) -> str: ...

    def reduction(self, operator: str, x: str, axes: Sequence[int] | None, keep: bool) -> str: ...


Labels = tuple[str, ...]
"""One label for each dimension; those that an ellipsis stands for are '0', '1', ... from the last
one on.
"""


@dataclass(frozen=True)
class Equation:
    """Example: 'bij,bjk->bik' has the operands ('b', 'i', 'j') and ('b', 'j', 'k')."""

    operands: tuple[Labels, ...]
    result: Labels
    sizes: Mapping[str, int]

    @staticmethod
    def read(text: str, shapes: Sequence[tuple[int, ...]]) -> Equation | None:
        """None for what is no chain of products: a label twice in one operand, or sizes of 1 that
        broadcast.
        """
        left, arrow, right = text.replace(" ", "").partition("->")
        terms = left.split(",")
        if len(terms) != len(shapes):
            return None
        operands = tuple(_labels(t, len(s)) for t, s in zip(terms, shapes, strict=True))
        sizes: dict[str, int] = {}
        for labels, shape in zip(operands, shapes, strict=True):
            if len(labels) != len(shape) or len(set(labels)) != len(labels):
                return None
            for label, size in zip(labels, shape, strict=True):
                if sizes.setdefault(label, size) != size:
                    return None
        dots = sorted((label for label in sizes if label.isdigit()), key=int, reverse=True)
        if arrow:
            before, found, after = right.partition(_DOTS)
            result: Labels = (*before, *(dots if found else ()), *after)
        else:
            every = [label for labels in operands for label in labels if not label.isdigit()]
            result = (*dots, *sorted(label for label in set(every) if every.count(label) == 1))
        if len(set(result)) != len(result) or not set(result) <= sizes.keys():
            return None
        return Equation(operands, result, sizes)


def _labels(term: str, rank: int) -> Labels:
    before, found, after = term.partition(_DOTS)
    hidden = rank - len(before) - len(after) if found else 0
    return (*before, *(str(number) for number in range(hidden)[::-1]), *after)


def summed(writer: Writer, x: str, labels: Labels, wanted: Collection[str]) -> tuple[str, Labels]:
    """`x` summed over every label that is not wanted."""
    places = [place for place, label in enumerate(labels) if label not in wanted]
    if not places:
        return x, labels
    left = tuple(label for label in labels if label in wanted)
    return writer.reduction("ReduceSum", x, places, keep=False), left


def product(
    writer: Writer,
    sizes: Mapping[str, int],
    first: tuple[str, Labels],
    second: tuple[str, Labels],
    wanted: Collection[str],
) -> tuple[str, Labels]:
    """One matrix product for each index of the labels that both have and that are wanted.

    Labels that both have and nobody wants are multiplied and added.
    """
    x, left = summed(writer, *first, set(wanted) | set(second[1]))
    y, right = summed(writer, *second, set(wanted) | set(left))
    both = [label for label in left if label in right]
    batch = tuple(label for label in both if label in wanted)
    inner = tuple(label for label in both if label not in wanted)
    rows = tuple(label for label in left if label not in both)
    columns = tuple(label for label in right if label not in both)
    x = _matrices(writer, sizes, (x, left), (batch, rows, inner))
    y = _matrices(writer, sizes, (y, right), (batch, inner, columns))
    result = (*batch, *rows, *columns)
    shape = writer.constant([sizes[label] for label in result], np.int64)
    return writer.op("Reshape", [writer.op("MatMul", [x, y]), shape]), result


def _matrices(
    writer: Writer,
    sizes: Mapping[str, int],
    operand: tuple[str, Labels],
    groups: tuple[Labels, Labels, Labels],
) -> str:
    """The operand as [each of the first group, second group, third group]."""
    x, labels = operand
    order = [labels.index(label) for group in groups for label in group]
    if order != sorted(order):
        x = writer.op("Transpose", [x], perm=order)
    batch, *matrix = groups
    shape = [sizes[label] for label in batch]
    shape += [math.prod(sizes[label] for label in group) for group in matrix]
    return writer.op("Reshape", [x, writer.constant(shape, np.int64)])
