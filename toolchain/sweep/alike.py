"""Kernels of operators that are alike, chosen once for all candidates of a search.

Operators are alike that have the same attributes, the same types of tensors, and the very same
constants, as layers of one shape have where `quantise.as_int8` makes them up. They have the same
kernel, with the same overlaps and loop counts, whatever the operators are called.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from toolchain.boards import Core
from toolchain.errors import ThimbleError
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import kernel_of
from toolchain.ops.kernel import Kernel
from toolchain.ops.lowering import Lowered, lower

_REMEMBERED = 4096

_Type = tuple[tuple[int, ...], DType, Quantisation | None]
_Operand = _Type | Tensor | int | None
"""A value by its type, a constant itself, an earlier operand by its place, or none."""


@dataclass(frozen=True)
class _Alike:
    """An operator without names."""

    kind: str
    attributes: Attributes
    inputs: tuple[_Operand, ...]
    outputs: tuple[_Type, ...]


def lower_alike(graph: Graph, core: Core) -> Lowered:
    """As `lower`. Kernels may be shared with other graphs; their constants name other operators.

    Raises UnsupportedError as `lower` does.
    """
    try:
        kernels = tuple(_kernel_of(op, graph, core) for op in graph.ops)
    except (ThimbleError, ArithmeticError, ValueError):
        return lower(graph, core)  # which names the operators at fault
    return Lowered(graph, core, kernels)


def _kernel_of(op: Op, graph: Graph, core: Core) -> Kernel:
    if op.attributes.nested:
        return kernel_of(op, graph, core)
    return _kernel(_alike(op, graph), core)


def _alike(op: Op, graph: Graph) -> _Alike:
    places: dict[str, int] = {}
    inputs: list[_Operand] = []
    for place, name in enumerate(op.inputs):
        tensor = graph.tensors[name] if name else None
        if tensor is None:
            inputs.append(None)
        elif name in places:
            inputs.append(places[name])
        else:
            places[name] = place
            inputs.append(tensor if tensor.is_constant else _type(tensor))
    outputs = tuple(_type(graph.tensors[name]) for name in op.outputs)
    return _Alike(op.kind, op.attributes, tuple(inputs), outputs)


def _type(tensor: Tensor) -> _Type:
    return tensor.shape, tensor.dtype, tensor.quantisation


@lru_cache(maxsize=_REMEMBERED)
def _kernel(alike: _Alike, core: Core) -> Kernel:
    """Of an operator in a graph of its own, so that no other graph is kept."""
    tensors: list[Tensor] = []
    names: list[str] = []
    for place, operand in enumerate(alike.inputs):
        name = f"input {place}"
        if operand is None:
            names.append("")
            continue
        if isinstance(operand, int):
            names.append(names[operand])
            continue
        made = (
            replace(operand, name=name) if isinstance(operand, Tensor) else Tensor(name, *operand)
        )
        tensors.append(made)
        names.append(name)
    outputs = [Tensor(f"output {n}", *each) for n, each in enumerate(alike.outputs)]
    op = Op(
        alike.kind, "alike", tuple(names), tuple(each.name for each in outputs), alike.attributes
    )
    inputs = [each.name for each in tensors if not each.is_constant]
    graph = Graph.build("alike", [*tensors, *outputs], [op], inputs, op.outputs)
    return kernel_of(op, graph, core)
