"""Kernels of operators that are alike, chosen once for all candidates of a search.

Operators are alike that are the same by `ir.identity`, constants included, as layers of one shape
are where `quantise.as_int8` makes constants up. They have the same kernel, with the same overlaps
and loop counts, whatever the operators are called.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from toolchain.boards import Core
from toolchain.errors import ThimbleError
from toolchain.ir import Graph, Op, Tensor
from toolchain.ir.identity import OperatorIdentity, operator_identity
from toolchain.ops import kernel_of
from toolchain.ops.kernel import Kernel
from toolchain.ops.lowering import Lowered, lower

_REMEMBERED = 4096


@dataclass(frozen=True)
class _Alike:
    """An operator without names. Two are equal by `identity` alone; the rest makes it again."""

    identity: OperatorIdentity
    op: Op = field(compare=False)
    inputs: tuple[Tensor, ...] = field(compare=False)
    outputs: tuple[Tensor, ...] = field(compare=False)


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
    """The operator with each operand and result called by its place."""
    places = {name: f"input {place}" for place, name in reversed(list(enumerate(op.inputs)))}
    results = {name: f"output {place}" for place, name in enumerate(op.outputs)}
    inputs = tuple(places[name] if name else "" for name in op.inputs)
    return _Alike(
        operator_identity(op, graph),
        Op(op.kind, "alike", inputs, tuple(results.values()), op.attributes),
        tuple(_called(graph.tensors[name], called) for name, called in places.items() if name),
        tuple(_called(graph.tensors[name], called) for name, called in results.items()),
    )


def _called(tensor: Tensor, name: str) -> Tensor:
    return replace(tensor, name=name, serial=None)


@lru_cache(maxsize=_REMEMBERED)
def _kernel(alike: _Alike, core: Core) -> Kernel:
    """The kernel of an operator in a graph of its own, so that no other graph is kept."""
    tensors, op = (*alike.inputs, *alike.outputs), alike.op
    inputs = [tensor.name for tensor in alike.inputs if not tensor.is_constant]
    return kernel_of(op, Graph.build("alike", tensors, [op], inputs, op.outputs), core)
