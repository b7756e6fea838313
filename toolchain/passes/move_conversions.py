"""Quantise before moving data and dequantise after, so that int8 moves: a quarter of the bytes.

A float32 input that is transposed or reshaped and then quantised is quantised first. An output that
is dequantised and then transposed or reshaped is dequantised last. Conversions work element by
element, so the result is the same. At the graph's inputs and outputs `ConvertEnds` then removes
them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.passes._pass import Prepared

_MOVERS = frozenset({"reshape", "transpose"})


@dataclass(frozen=True)
class MoveConversions:
    """Move QUANTIZE in front of, and DEQUANTIZE behind, operators that only move data."""

    def run(self, prepared: Prepared) -> Prepared:
        graph = prepared.graph
        while (moved := _move_one(graph)) is not None:
            graph = moved
        return prepared.with_graph(graph)


def _move_one(graph: Graph) -> Graph | None:
    """The graph with one conversion moved by one operator; None where none can move.

    Each move brings a QUANTIZE nearer to the start or a DEQUANTIZE nearer to the end, so that the
    moves come to an end.
    """
    for index, second in enumerate(graph.ops):
        producer = graph.producers.get(second.inputs[0]) if second.inputs else None
        if producer is None:
            continue
        first = graph.ops[producer]
        between = graph.input(second, 0)
        if graph.consumers[between.name] != (index,) or between.name in graph.outputs:
            continue
        if between.dtype is not DType.FLOAT32:
            continue
        quantises = first.kind in _MOVERS and second.kind == "quantize"
        dequantises = first.kind == "dequantize" and second.kind in _MOVERS
        if quantises or dequantises:
            return _swapped(graph, producer, index, between)
    return None


def _swapped(graph: Graph, producer: int, consumer: int, between: Tensor) -> Graph:
    """The operators at both places exchanged; the tensor between them changes its type."""
    first, second = graph.ops[producer], graph.ops[consumer]
    source, target = graph.input(first, 0), graph.output(second)
    if second.kind == "quantize":
        quantised, shape = target, source.shape
    else:
        quantised, shape = source, target.shape
    narrow = Tensor(between.name, shape, quantised.dtype, quantised.quantisation)
    ops: list[Op] = list(graph.ops)
    ops[producer] = replace(second, inputs=first.inputs, outputs=(between.name,))
    ops[consumer] = replace(first, inputs=(between.name,), outputs=second.outputs)
    tensors = [narrow if t.name == between.name else t for t in graph.tensors.values()]
    return graph.with_ops(ops, tensors)
