"""Integers of one width to another: a narrower type keeps the low bits. TFLite CAST."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.kernel import Argument, Call, Input, Kernel, Output, SafeOverlap, Touched
from toolchain.ops.movement.copies import sample_shape
from toolchain.ops.spec import (
    STORED,
    Array,
    OpSpec,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_TYPES = (DType.INT8, DType.INT16, DType.INT32, DType.UINT32)


@dataclass(frozen=True)
class Cast(Attributes):
    """`to`: the output's type."""

    to: DType = DType.INT32


def _attributes(op: Op) -> Cast:
    assert isinstance(op.attributes, Cast)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    return (TensorType(graph.input(op, 0).shape, _attributes(op).to),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    return (inputs[0].astype(_attributes(op).to.numpy),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x, y = graph.input(op, 0), graph.output(op)
    arguments: dict[str, Argument] = {
        "input": Input(0, element="void"),
        "input_bytes": x.dtype.size_bytes,
        "count": x.elements,
        "output": Output(0, element="void"),
        "output_bytes": y.dtype.size_bytes,
    }
    widens = y.dtype.size_bytes > x.dtype.size_bytes
    return Kernel(
        (Call("thimble_cast", arguments),),
        _extents,
        find_overlaps=lambda: () if widens else (SafeOverlap(0),),
    )


def _extents(touched: Touched) -> Extents:
    call = touched.call
    return Extents(
        {0: whole(call["count"], call["input_bytes"])},
        {0: whole(call["count"], call["output_bytes"])},
    )


def _read(node: TfliteNode) -> ReadOp:
    if node.legacy:
        raise node.unsupported("it changes the type of legacy uint8", "convert with int8 tensors")
    return ReadOp(Cast(node.outputs[0].dtype), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    source, target = graph.input(op, 0).dtype.name, _attributes(op).to.name
    return WrittenOp("CAST", "CastOptions", {"inDataType": source, "outDataType": target}, (), 3)


def _sample(rng: np.random.Generator) -> Graph:
    shape = sample_shape(rng, int(rng.integers(1, 4)))
    source, target = (_TYPES[int(rng.integers(len(_TYPES)))] for _ in range(2))
    tensors = [
        Tensor(name, shape, dtype, Quantisation((1.0,), (0,)) if dtype is DType.INT8 else None)
        for name, dtype in (("x", source), ("y", target))
    ]
    op = Op("cast", "cast", ("x",), ("y",), Cast(target))
    return Graph.build("sample", tensors, [op], ["x"], ["y"])


SPEC = OpSpec(
    kind="cast",
    attributes=Cast,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("CAST",), _read, _write),
    dtypes=frozenset(_TYPES),
    quantised=STORED,
    limits="int8, int16, int32 and uint32, to each other",
)
