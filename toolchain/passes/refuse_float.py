"""Which operators compute in float32, and whether a model is a float model."""

from __future__ import annotations

from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op
from toolchain.ops import spec_of

_INTEGERS = frozenset({DType.INT8, DType.UINT8, DType.INT16})
ADVICE = (
    "quantise it to int8 (`thimble quantize MODEL --data FILES -o OUT`), or run it in float with "
    "--float"
)


def computes_in_float(op: Op, graph: Graph) -> bool:
    """Whether the operator's kernel takes and returns only float32."""
    return spec_of(op.kind).form(op, graph).dtypes == {DType.FLOAT32}


def refuse_float(graph: Graph, *, allowed: bool) -> None:
    """Raise UnsupportedError for a float model unless float is `allowed`.

    A quantised model may have some operators that compute in float. A float model is one without
    integer activations, or one that multiplies more by float weights than by integer ones.
    """
    floats = [op for op in graph.ops if computes_in_float(op, graph)]
    if allowed or not floats:
        return
    integers = any(t.dtype in _INTEGERS for t in graph.activations())
    weighted = sum(_weights(op, graph) for op in floats)
    others = sum(_weights(op, graph) for op in graph.ops if not computes_in_float(op, graph))
    if integers and weighted <= others:
        return
    raise UnsupportedError(
        f"{graph.name} is a float model ({len(floats)} of {len(graph.ops)} operators compute in "
        f"float32); {ADVICE}"
    )


def _weights(op: Op, graph: Graph) -> int:
    """Constant elements that an operator multiplies by; those of mere elementwise ones are few."""
    if not spec_of(op.kind).macs(op, graph):
        return 0
    given = [graph.tensors[name] for name in op.present_inputs()]
    return sum(tensor.elements for tensor in given if tensor.is_constant)
