"""Einsum as transposes, reshapes and matrix products."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from toolchain.frontends.onnx.operators.row import Operator
from toolchain.frontends.onnx.writing import Writer

_DOTS = "..."


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
        """Read an equation. None where it is no chain of products: a label twice in one operand, or
        sizes of 1 that broadcast.
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
            before, ellipsis, after = right.partition(_DOTS)
            result: Labels = (*before, *(dots if ellipsis else ()), *after)
        else:
            every = [label for labels in operands for label in labels if not label.isdigit()]
            result = (*dots, *sorted(label for label in set(every) if every.count(label) == 1))
        if len(set(result)) != len(result) or not set(result) <= sizes.keys():
            return None
        return Equation(operands, result, sizes)


def _labels(term: str, rank: int) -> Labels:
    before, ellipsis, after = term.partition(_DOTS)
    hidden = rank - len(before) - len(after) if ellipsis else 0
    return (*before, *(str(number) for number in range(hidden)[::-1]), *after)


def _summed(writer: Writer, x: str, labels: Labels, wanted: Collection[str]) -> tuple[str, Labels]:
    """`x` summed over every label that is not wanted."""
    places = [place for place, label in enumerate(labels) if label not in wanted]
    if not places:
        return x, labels
    left = tuple(label for label in labels if label in wanted)
    return writer.sum(x, places, keep=False), left


def _product(
    writer: Writer,
    sizes: Mapping[str, int],
    first: tuple[str, Labels],
    second: tuple[str, Labels],
    wanted: Collection[str],
) -> tuple[str, Labels]:
    """One matrix product for each index of the labels that both have and that are wanted.

    Labels that both have and nobody wants are multiplied and added.
    """
    x, left = _summed(writer, *first, set(wanted) | set(second[1]))
    y, right = _summed(writer, *second, set(wanted) | set(left))
    both = [label for label in left if label in right]
    batch = tuple(label for label in both if label in wanted)
    inner = tuple(label for label in both if label not in wanted)
    rows = tuple(label for label in left if label not in both)
    columns = tuple(label for label in right if label not in both)
    x = _matrices(writer, sizes, (x, left), (batch, rows, inner))
    y = _matrices(writer, sizes, (y, right), (batch, inner, columns))
    result = (*batch, *rows, *columns)
    shape = [sizes[label] for label in result]
    return writer.reshaped(writer.op("MatMul", [x, y]), shape), result


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
    return writer.reshaped(x, shape)


def _einsum(writer: Writer) -> None:
    """Pairs of operands become matrix products, from left to right."""
    shapes = [writer.shapes[name] for name in writer.node.inputs]
    equation = Equation.read(str(writer.node.attributes["equation"]), shapes)
    if equation is None:
        return
    x, labels = writer.node.inputs[0], equation.operands[0]
    rest = list(zip(writer.node.inputs[1:], equation.operands[1:], strict=True))
    while rest:
        y, others = rest.pop(0)
        wanted = set(equation.result).union(*(later for _, later in rest))
        x, labels = _product(writer, equation.sizes, (x, labels), (y, others), wanted)
    x, labels = _summed(writer, x, labels, set(equation.result))
    permutation = [labels.index(label) for label in equation.result]
    writer.answer("Transpose", [x], perm=permutation)


ROWS = (
    Operator(
        "Einsum",
        composed=_einsum,
        written="each label once in an operand, and no size of 1 that broadcasts",
    ),
)
