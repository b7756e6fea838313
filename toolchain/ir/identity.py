"""What makes two operators, tensors or graphs the same: the one notion by which results are kept.

A result that follows from an operator and the core alone (its kernel, its forms, their cycles) is
kept by `operator_identity`. Two operators are the same that agree in all of

- the kind, and every field of the attributes, with the bodies of branches and loops, and where
  these lie once they are planned;
- for each operand and each result the shape, the element type, and the quantisation: all scales,
  all zero points, the axis;
- for each operand whether it is a constant, and the constant's bytes;
- which operands are one tensor.

Names do not count, nor which block of a split an operator is. A core, a preference for kernels, and
options are no part of an operator: who keeps results for several of them adds them to the key.

Python's own equality is no identity: it takes 0.0 for -0.0, 1 for True, and arrays for sequences.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from toolchain.ir.graph import Graph, Op
    from toolchain.ir.tensor import Tensor


@dataclass(frozen=True)
class OperatorIdentity:
    """An operator without names. Equal for two that compute the same in the same way."""

    kind: str
    attributes: Hashable
    inputs: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]


def operator_identity(op: Op, graph: Graph) -> OperatorIdentity:
    """An operand that was there before stands as its first place; an absent one as None."""
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


def tensor_identity(tensor: Tensor) -> Hashable:
    """Shape, element type, quantisation and constant. `Tensor.identity` keeps it."""
    return tuple(
        identity_of(part)
        for part in (tensor.shape, tensor.dtype, tensor.quantisation, tensor.constant)
    )


def identity_of(value: Any) -> Hashable:
    """Equal for two values of the same types and bits, down to the last field: an array by its
    element type, shape and SHA-256, a float by its bits, a mapping by its sorted items. A value of
    another kind, such as a function, stands for itself.
    """
    match value:
        case float():
            return "float", value.hex()
        case Enum():
            return type(value), value.name
        case None | bool() | int() | str() | bytes():
            return type(value), value
        case tuple() | list():
            return type(value), tuple(identity_of(one) for one in value)
        case Mapping():
            return "mapping", tuple((name, identity_of(value[name])) for name in sorted(value))
        case np.ndarray() | np.generic():
            digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).digest()
            return "array", value.dtype.str, value.shape, digest
    if is_dataclass(value):
        held = (identity_of(getattr(value, entry.name)) for entry in fields(value))
        return type(value), tuple(held)
    return type(value), value
