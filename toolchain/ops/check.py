"""The verifier with the shape rules of all operator kinds."""

from __future__ import annotations

from toolchain.ir import DType, Graph, Op
from toolchain.ir.verify import InvalidGraphError, verify
from toolchain.ops import specs


def _infer(op: Op, graph: Graph) -> tuple[tuple[tuple[int, ...], DType], ...]:
    spec = specs().get(op.kind)
    if spec is None:
        raise InvalidGraphError(f"there is no operator kind {op.kind!r}")
    if not isinstance(op.attributes, spec.attributes):
        raise InvalidGraphError(f"attributes are {type(op.attributes).__name__}")
    return tuple((t.shape, t.dtype) for t in spec.infer(op, graph))


def check(graph: Graph) -> Graph:
    """The same graph. Raises `InvalidGraphError` where it breaks a rule of `ir.verify`."""
    verify(graph, _infer)
    return graph
