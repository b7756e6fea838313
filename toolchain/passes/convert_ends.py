"""Float32 and uint8 inputs and outputs become integers; the caller converts, as the model's file
says.

A model input that goes only into QUANTIZE operators of one kind, and a model output that comes from
DEQUANTIZE, are removed from the graph and recorded as a `Boundary`. The caller's conversion is that
operator's arithmetic, so the result is the same bit for bit. uint8 inputs and outputs are removed
only where their zero point is 128 above the int8 one at the same scale: the bytes are then the same
with the top bit flipped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolchain.ir import Boundary, DType, Graph, Tensor
from toolchain.ops.unary.quantize import Quantize
from toolchain.passes._pass import Prepared
from toolchain.passes._rewrite import reading, renamed


@dataclass(frozen=True)
class ConvertEnds:
    """Make float32 and uint8 ends of the model integers that the caller converts."""

    def run(self, prepared: Prepared) -> Prepared:
        graph, boundaries = prepared.graph, list(prepared.boundaries)
        taken = {boundary.tensor for boundary in boundaries}
        for name in graph.inputs:
            if name not in taken:
                graph = _convert_input(graph, name, boundaries)
        for name in graph.outputs:
            if name not in taken:
                graph = _convert_output(graph, name, boundaries)
        return Prepared(graph, tuple(boundaries))


def _boundary(outer: Tensor, inner: Tensor) -> Boundary | None:
    """The conversion by which the caller turns one into the other; None where only an operator
    can."""
    if inner.dtype not in (DType.INT8, DType.INT16) or inner.shape != outer.shape:
        return None
    if outer.dtype is DType.FLOAT32:
        return Boundary(outer.name, DType.FLOAT32)
    if (
        outer.dtype is DType.UINT8
        and inner.dtype is DType.INT8
        and outer.q.scales == inner.q.scales
        and outer.q.zero_point == inner.q.zero_point + 128
    ):
        return Boundary(outer.name, DType.UINT8, outer.quantisation)
    return None


def _convert_input(graph: Graph, name: str, boundaries: list[Boundary]) -> Graph:
    """Make the outputs of the input's readers the input, where all of them quantise it alike."""
    outer = graph.tensors[name]
    readers = [graph.ops[index] for index in graph.consumers[name]]
    if not readers or name in graph.outputs:
        return graph
    inner = graph.output(readers[0])
    for op in readers:
        quantised = graph.output(op)
        if op.kind != "quantize" or quantised.quantisation != inner.quantisation:
            return graph
        if quantised.name in graph.outputs:
            return graph
    boundary = _boundary(outer, inner)
    if boundary is None:
        return graph
    attributes = readers[0].attributes
    even = isinstance(attributes, Quantize) and attributes.halves_to_even
    boundaries.append(replace(boundary, halves_to_even=even))
    names = {op.outputs[0]: name for op in readers}
    ops = tuple(reading(op, names) for op in graph.ops if op not in readers)
    return graph.with_ops(ops, _replaced(graph, replace(inner, name=name)))


def _convert_output(graph: Graph, name: str, boundaries: list[Boundary]) -> Graph:
    """Make the last operator's input the output, under the output's name."""
    index = graph.producers.get(name)
    if index is None or graph.consumers[name]:
        return graph
    last = graph.ops[index]
    if last.kind not in ("dequantize", "quantize"):
        return graph
    outer, inner = graph.tensors[name], graph.input(last, 0)
    if inner.name in graph.sources or inner.name in graph.outputs or inner.is_constant:
        return graph
    boundary = _boundary(outer, inner)
    if boundary is None:
        return graph
    boundaries.append(boundary)
    ops = [op for op in graph.ops if op is not last]
    tensors = [tensor for tensor in graph.tensors.values() if tensor is not outer]
    outputs = tuple(inner.name if output == name else output for output in graph.outputs)
    return renamed(replace(graph, outputs=outputs).with_ops(ops, tensors), {inner.name: name})


def _replaced(graph: Graph, tensor: Tensor) -> list[Tensor]:
    """The graph's tensors with another of the same name."""
    return [tensor if known.name == tensor.name else known for known in graph.tensors.values()]
