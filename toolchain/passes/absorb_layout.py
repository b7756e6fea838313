"""A model whose own images are NCHW gets and returns NHWC images; the caller permutes the axes.

The front end's transpose of a model input that nothing else reads, and of a model output, is
removed from the graph and recorded in the `Boundary`. Transposes in the model's own file stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolchain.ir import Boundary, Graph, Op
from toolchain.ops.movement.transpose import Transpose
from toolchain.passes._pass import Prepared
from toolchain.passes._rewrite import reading, renamed


@dataclass(frozen=True)
class AbsorbLayout:
    """Leave transposes between NCHW and NHWC at the model's ends to the caller."""

    def run(self, prepared: Prepared) -> Prepared:
        boundaries = {boundary.tensor: boundary for boundary in prepared.boundaries}
        graph = prepared.graph
        for name in graph.inputs:
            graph = _absorb_input(graph, name, boundaries)
        for name in graph.outputs:
            graph = _absorb_output(graph, name, boundaries)
        return Prepared(graph, tuple(boundaries.values()))


def _layout(op: Op) -> tuple[int, ...] | None:
    """The permutation of a front end's transpose; None for any other operator."""
    attributes = op.attributes
    if isinstance(attributes, Transpose) and attributes.layout:
        return attributes.permutation
    return None


def _absorb_input(graph: Graph, name: str, boundaries: dict[str, Boundary]) -> Graph:
    readers = [graph.ops[index] for index in graph.consumers[name]]
    if len(readers) != 1 or name in graph.outputs or readers[0].outputs[0] in graph.outputs:
        return graph
    permutation = _layout(readers[0])
    old = boundaries.get(name) or Boundary(name, graph.tensors[name].dtype)
    if permutation is None or old.permutation:
        return graph
    boundaries[name] = replace(old, permutation=permutation)
    moved = graph.output(readers[0])
    tensors = [
        replace(moved, name=name) if known.name == name else known
        for known in graph.tensors.values()
    ]
    ops = [reading(op, {moved.name: name}) for op in graph.ops if op is not readers[0]]
    return graph.with_ops(ops, tensors)


def _absorb_output(graph: Graph, name: str, boundaries: dict[str, Boundary]) -> Graph:
    index = graph.producers.get(name)
    if index is None or graph.consumers[name]:
        return graph
    last = graph.ops[index]
    permutation, inner = _layout(last), graph.tensors[last.inputs[0]]
    old = boundaries.get(name) or Boundary(name, graph.tensors[name].dtype)
    if permutation is None or old.permutation or inner.is_constant:
        return graph
    if inner.name in graph.sources or inner.name in graph.outputs:
        return graph
    back = tuple(permutation.index(axis) for axis in range(len(permutation)))
    boundaries[name] = replace(old, permutation=back)
    ops = [op for op in graph.ops if op is not last]
    tensors = [tensor for tensor in graph.tensors.values() if tensor.name != name]
    outputs = tuple(inner.name if output == name else output for output in graph.outputs)
    return renamed(replace(graph, outputs=outputs).with_ops(ops, tensors), {inner.name: name})
