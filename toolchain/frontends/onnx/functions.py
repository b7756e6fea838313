"""Functions that an ONNX model defines, written out where they are called.

`torch.onnx.dynamo_export` and onnxscript leave such functions in their files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from toolchain.errors import InputError
from toolchain.packages import ONNX, lazy

if TYPE_CHECKING:
    import onnx
    from onnx import inliner
else:
    inliner = lazy("onnx.inliner", ONNX)

_MOST_NODES = 100_000
"""Operators of a model without functions: calls of calls stand for far more than a file holds."""
Key = tuple[str, str, str]


def without_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its functions written out; `model` itself if it defines none.

    Raises InputError for functions that call each other in a circle, that stand for too many
    operators, and that cannot be written out.
    """
    if not model.functions:
        return model
    _check_size(model)
    try:
        return inliner.inline_local_functions(model)
    except Exception as error:  # the inliner's exceptions share no base but this
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"the functions that the model defines are not sound: {said}") from error


def _check_size(model: onnx.ModelProto) -> None:
    bodies = {(f.domain, f.name, f.overload): f.node for f in model.functions}
    calls = {
        key: {_key(node) for node in _all(nodes)} & set(bodies) for key, nodes in bodies.items()
    }
    sizes: dict[Key, int] = {}

    def total(nodes: Iterable[onnx.NodeProto]) -> int:
        return min(sum(sizes.get(_key(node), 1) for node in _all(nodes)), _MOST_NODES + 1)

    try:
        for key in TopologicalSorter(calls).static_order():
            sizes[key] = total(bodies[key])
    except CycleError as error:
        names = " -> ".join(name for _, name, _ in error.args[1])
        raise InputError(f"the model's functions call each other in a circle: {names}") from error
    if total(model.graph.node) > _MOST_NODES:
        raise InputError(f"the model's functions stand for more than {_MOST_NODES:,} operators")


def _key(node: onnx.NodeProto) -> Key:
    return (node.domain, node.op_type, node.overload)


def _all(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes and the nodes of the graphs inside of them."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                waiting.extend(graph.node)
