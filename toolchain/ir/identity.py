"""The identity of an operator, by which results that follow from it are kept.

A result that follows from an operator and the core alone (its kernel, its forms, their cycles) is
kept by `operator_identity`. Two operators have one identity if they agree in

- the kind, and every field of the attributes, with the bodies of branches and loops, and where
  these lie once they are planned;
- for each operand and each result the shape, the element type, and the quantisation: all scales,
  all zero points, the axis;
- for each operand whether it is a constant, and the constant's bytes;
- which operands are one tensor.

Names do not count, nor which block of a split an operator is. A core, a preference for kernels, and
options are no part of an operator: who keeps results for several of them adds them to the key.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from toolchain.ir.graph import Graph, Op
from toolchain.ir.values import identity_of


@dataclass(frozen=True)
class OperatorIdentity:
    """An operator without names. Equal for two that compute the same in the same way."""

    kind: str
    attributes: Hashable
    inputs: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]


def operator_identity(op: Op, graph: Graph) -> OperatorIdentity:
    """The identity of an operator. A repeated operand stands as its first position, an absent one
    as None."""
    places: dict[str, int] = {}
    inputs: list[Hashable] = []
    for place, name in enumerate(op.inputs):
        if not name or name in places:
            inputs.append(places.get(name))
            continue
        places[name] = place
        inputs.append(graph.tensors[name].identity)
    outputs = tuple(graph.tensors[name].identity for name in op.outputs)
    return OperatorIdentity(op.kind, identity_of(op.attributes), tuple(inputs), outputs)
