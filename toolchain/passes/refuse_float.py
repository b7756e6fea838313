"""Which operators compute in float32, and whether a model is a float model."""

from __future__ import annotations

from collections.abc import Iterator

from toolchain.errors import FloatModelError
from toolchain.ir import DType, Graph, Op
from toolchain.ops import spec_of

_INTEGERS = frozenset({DType.INT8, DType.UINT8, DType.INT16})
_QUANTISE = "(`thimble quantize MODEL --data FILES -o OUT`), or run it in float with --float"
_OF_THE_MOMENT = ("dynamic_conv2d", "dynamic_depthwise_conv2d", "dynamic_fully_connected")
"""Kinds of dynamically quantised ONNX models, which `thimble quantize` does not take."""


def computes_in_float(op: Op, graph: Graph) -> bool:
    """Whether the operator's kernel takes and returns only float32, or does so inside of it."""
    if op.attributes.nested:
        each = (part for graph in op.attributes.nested for part in _parts(graph))
        return any(computes_in_float(*part) for part in each)
    return spec_of(op.kind).form(op, graph).dtypes == {DType.FLOAT32}


def refuse_float(graph: Graph, *, allowed: bool) -> None:
    """Raise FloatModelError for a float model unless float is `allowed`.

    A quantised model may have some operators that compute in float. A float model is one without
    integer activations, or one that multiplies more by float weights than by integer ones. Kinds
    without an integer form, as ONNX's GRU, do not count: no quantiser can make integers of them.
    """
    parts = list(_parts(graph))
    floats = [part for part in parts if computes_in_float(*part)]
    if allowed or not floats:
        return
    integers = any(t.dtype in _INTEGERS for t in graph.activations())
    weighted = sum(_weights(*p) for p in floats if spec_of(p[0].kind).dtypes & _INTEGERS)
    others = sum(_weights(*part) for part in parts if not computes_in_float(*part))
    if integers and weighted <= others:
        return
    part, whole = len(floats), len(parts)
    begin = f"{graph.name} is a float model ({part} of {whole} operators compute in float32)"
    if any(op.kind in _OF_THE_MOMENT for op, _ in parts):
        raise FloatModelError(
            f"{begin}, whose weights alone are stored in 8 bits; quantise the float model that it "
            f"was made of {_QUANTISE}"
        )
    raise FloatModelError(f"{begin}; quantise it to int8 {_QUANTISE}")


def _parts(graph: Graph) -> Iterator[tuple[Op, Graph]]:
    """The operators, each with its graph; in place of one that holds graphs, the operators inside
    of it."""
    for op in graph.ops:
        for nested in op.attributes.nested:
            yield from _parts(nested)
        if not op.attributes.nested:
            yield op, graph


def _weights(op: Op, graph: Graph) -> int:
    """The number of constant elements that an operator multiplies by; elementwise operators have
    few."""
    if not spec_of(op.kind).macs(op, graph):
        return 0
    given = [graph.tensors[name] for name in op.present_inputs()]
    return sum(tensor.elements for tensor in given if tensor.is_constant)
