"""Operators that change no byte are removed.

Examples: a reshape to its own shape, a requantisation to equal parameters, a padding by nothing, a
transpose that keeps the order. A transpose that moves only dimensions of size 1 becomes a reshape,
which is a view.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolchain.ir import Graph, Op
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.movement.slice import Slice
from toolchain.ops.movement.transpose import Transpose
from toolchain.passes._pass import Prepared
from toolchain.passes._rewrite import reading, renamed, same_type

_MOVERS = frozenset({"concat", "pad", "quantize", "reshape", "slice", "transpose"})
"""Kinds that compute nothing: with one input of the output's type, the bytes are the same."""


@dataclass(frozen=True)
class RemoveIdentities:
    """Remove operators that change no byte."""

    def run(self, prepared: Prepared) -> Prepared:
        graph = prepared.graph
        source: dict[str, str] = {}
        new_name: dict[str, str] = {}
        kept: list[Op] = []
        for old in graph.ops:
            op = _without_transpose(reading(old, source), graph)
            if not _is_identity(op, graph):
                kept.append(op)
                continue
            given, result = op.inputs[0], op.outputs[0]
            if result not in graph.outputs:
                source[result] = given
            elif _may_take_name(given, graph) and given not in new_name:
                source[result] = given
                new_name[given] = result
            else:
                kept.append(op)
        outputs = tuple(source.get(name, name) for name in graph.outputs)
        shorter = replace(graph, outputs=outputs).with_ops(kept)
        return prepared.with_graph(renamed(shorter, new_name))


def _may_take_name(name: str, graph: Graph) -> bool:
    """Whether an operator's own result, which nobody outside knows by its name."""
    return name in graph.producers and name not in graph.outputs


def _is_identity(op: Op, graph: Graph) -> bool:
    if op.kind not in _MOVERS or len(op.present_inputs()) != 1 or len(op.outputs) != 1:
        return False
    x, y = graph.input(op, 0), graph.output(op)
    if x.is_constant or not same_type(x, y):
        return False
    if isinstance(op.attributes, Slice):
        return min(op.attributes.strides, default=1) > 0  # else it reverses an axis
    if isinstance(op.attributes, Transpose):
        axes = [axis for axis in _axes(op.attributes, len(x.shape)) if x.shape[axis] > 1]
        return axes == sorted(axes)
    return True


def _without_transpose(op: Op, graph: Graph) -> Op:
    """The operator, or the reshape that does the same."""
    if not isinstance(op.attributes, Transpose):
        return op
    shape = graph.input(op, 0).shape
    moved = [axis for axis in _axes(op.attributes, len(shape)) if shape[axis] > 1]
    if moved != sorted(moved):
        return op
    return replace(op, kind="reshape", attributes=Reshape(graph.output(op).shape))


def _axes(transpose: Transpose, rank: int) -> list[int]:
    return [axis % rank for axis in transpose.permutation]
