"""Rewrite operators with several outputs as operators with one, which have axes to split along."""

from __future__ import annotations

from collections.abc import Iterator

from toolchain.ir import Graph, Op
from toolchain.ir.names import GraphNames, Names
from toolchain.ops.movement.slice import Slice
from toolchain.ops.movement.split import Split


def single_outputs(graph: Graph, order: tuple[int, ...]) -> Graph:
    """The graph in this order, with each `split` as one slice per output: the same bytes."""
    names = GraphNames.of(graph).ops
    ops = [made for index in order for made in _parts(graph, graph.ops[index], names)]
    return graph.with_ops(ops, graph.tensors.values())


def _parts(graph: Graph, op: Op, names: Names) -> Iterator[Op]:
    if not isinstance(op.attributes, Split):
        yield op
        return
    rank = len(graph.input(op, 0).shape)
    begin = [0] * rank
    for name in op.outputs:
        shape = graph.tensors[name].shape
        part = Slice(tuple(begin), shape, (1,) * rank, shape)
        yield Op("slice", names.fresh(f"{op.name}[{name}]"), op.inputs, (name,), part)
        begin[op.attributes.axis % rank] += shape[op.attributes.axis % rank]
