"""A graph inside of an operator: a branch, or the condition or body of a loop.

It has an arena of its own, which lies in the scratch of the operator. Its inputs take no bytes
there: its operators read them where the operator's own operands lie, and nothing is written over
them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from toolchain.ir.printer import graph_text
from toolchain.ir.values import identity_of
from toolchain.ops import kit, spec_of
from toolchain.ops.check import check
from toolchain.ops.lowering import Lowered, lower

_ALIGNMENT_BYTES = 8


@dataclass(frozen=True)
class Layout:
    """The order of a graph's operators, and where its tensors lie in an arena of their own.

    `scratch_bytes`: those of each operator's kernel, for which it was made, by `preference`.
    """

    order: tuple[int, ...]
    arena: kit.ArenaPlan
    scratch_bytes: tuple[int, ...]
    preference: kit.Preference = kit.Preference.AUTO


@dataclass(frozen=True, eq=False)
class Body:
    """A graph, and its layout once it is planned. Equal are bodies of the same graph (by
    `ir.values`, with all names), wherever it lies.

    `results_outside`: its outputs lie where those of the operator do; else in its own arena.
    """

    graph: kit.Graph
    layout: Layout | None = None
    results_outside: bool = False

    @cached_property
    def _identity(self) -> Hashable:
        return identity_of((self.graph, self.results_outside))

    def __repr__(self) -> str:
        return f"{self.graph.name}#{zlib.crc32(graph_text(self.graph).encode()):08x}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Body) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)


def with_bodies(op: kit.Op, changed: Callable[[Body], Body]) -> kit.Op:
    """The operator with each graph that it holds changed so."""
    attributes = op.attributes
    held = {field.name: getattr(attributes, field.name) for field in fields(attributes)}
    bodies = {name: changed(body) for name, body in held.items() if isinstance(body, Body)}
    return replace(op, attributes=replace(attributes, **bodies)) if bodies else op


def hollow(body: Body, graph: kit.Graph) -> kit.Graph:
    """The body's `graph` as its memory is planned: what lies elsewhere is like a constant."""
    outside = {*graph.inputs, *(graph.outputs if body.results_outside else ())}
    table = {
        name: replace(tensor, constant=_somewhere(tensor)) if name in outside else tensor
        for name, tensor in graph.tensors.items()
    }
    outputs = () if body.results_outside else graph.outputs
    return replace(graph, tensors=MappingProxyType(table), inputs=(), outputs=outputs)


def _somewhere(tensor: kit.Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """Takes no memory, whatever the shape."""
    return np.broadcast_to(np.zeros((), tensor.dtype.numpy), tensor.shape)


def laid_out(body: Body, core: kit.Core) -> tuple[Lowered, Layout]:
    """The body's kernels, and its layout; one where no bytes are shared if it is not planned for
    this core.
    """
    layout = body.layout
    preference = kit.Preference.AUTO if layout is None else layout.preference
    lowered = lower(body.graph, core, preference)
    scratch = tuple(kernel.scratch_bytes for kernel in lowered.kernels)
    if layout is None or layout.scratch_bytes != scratch:
        layout = _side_by_side(hollow(body, body.graph), lowered.kernels)
    return lowered, layout


def _side_by_side(graph: kit.Graph, kernels: Sequence[kit.Kernel]) -> Layout:
    """In the order of the graph, with a place for each tensor and each scratch."""
    offsets: dict[str, int] = {}
    scratch: dict[str, int] = {}
    end = 0
    for tensor in graph.activations():
        offsets[tensor.name] = end
        end += -(-tensor.size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
    for op, kernel in zip(graph.ops, kernels, strict=True):
        scratch[op.name] = end
        end += -(-kernel.scratch_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
    nowhere: Mapping[str, tuple[int, int]] = MappingProxyType({})
    arena = kit.ArenaPlan(end, end, _ALIGNMENT_BYTES, "side by side", offsets, nowhere, scratch)
    sizes = tuple(kernel.scratch_bytes for kernel in kernels)
    return Layout(tuple(range(len(graph.ops))), arena, sizes)


def check_body(what: str, graph: kit.Graph, given: Sequence[kit.Tensor]) -> kit.TensorTypes:
    """The types of the outputs of a nested graph that takes `given`.

    Raises ValueError where it contradicts itself or takes other tensors.
    """
    check(graph)
    if graph.states or graph.pushed:
        raise ValueError(f"{what} keeps a state")
    if len(graph.inputs) != len(given):
        raise ValueError(f"{what} takes {len(graph.inputs)} operands, not {len(given)}")
    for name, operand in zip(graph.inputs, given, strict=True):
        taken = graph.tensors[name]
        if not alike(taken, operand):
            raise ValueError(f"{what} takes {taken} and is given {operand}")
    for name in graph.outputs:
        if name in graph.inputs:
            raise ValueError(f"{what} gives back its operand {name!r}")
    return tuple(
        kit.TensorType(graph.tensors[name].shape, graph.tensors[name].dtype)
        for name in graph.outputs
    )


def alike(one: kit.Tensor, other: kit.Tensor) -> bool:
    """Whether the bytes of one tensor mean the same in the other."""
    return (one.shape, one.dtype, one.quantisation) == (
        other.shape,
        other.dtype,
        other.quantisation,
    )


def check_results(what: str, graph: kit.Graph, wanted: Sequence[kit.Tensor]) -> None:
    """Raises ValueError where the outputs of a nested graph are not what the operator gives."""
    for name, tensor in zip(graph.outputs, wanted, strict=True):
        if not alike(graph.tensors[name], tensor):
            raise ValueError(f"{what} gives {graph.tensors[name]} for {tensor}")


def macs_of(graph: kit.Graph) -> int:
    """Multiply-accumulates of one run of a nested graph."""
    return sum(spec_of(op.kind).macs(op, graph) for op in graph.ops)
