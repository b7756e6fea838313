"""Numbers of one type to another: a narrower integer keeps the low bits. TFLite CAST.

A float loses its fraction and is held within the integers; what is no number becomes the least one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import (
    Argument,
    Call,
    Input,
    Kernel,
    Output,
    SafeOverlap,
    Symbol,
    Touched,
)
from toolchain.ops.samples import sample_shape
from toolchain.ops.spec import (
    STORED,
    Array,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_ELEMENTS = MappingProxyType(
    {
        DType.INT8: "S8",
        DType.UINT8: "U8",
        DType.BOOL: "BOOL",
        DType.INT16: "S16",
        DType.INT32: "S32",
        DType.UINT32: "U32",
        DType.INT64: "S64",
        DType.FLOAT32: "F32",
    }
)
_TYPES = tuple(_ELEMENTS)


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
    (x,), to = inputs, _attributes(op).to
    if x.dtype != np.float32 or to in (DType.FLOAT32, DType.BOOL):
        return (x.astype(to.numpy),)
    info, real = np.iinfo(to.value), x.astype(np.float64)
    inside = (real >= info.min) & (real < info.max + 1.0)
    ends = np.where(real > 0, info.max, info.min).astype(to.numpy)
    return (np.where(inside, np.where(inside, real, 0.0).astype(to.numpy), ends),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x, y = graph.input(op, 0), graph.output(op)
    arguments: dict[str, Argument] = {
        "input": Input(0, element="void"),
        "from": Symbol(f"THIMBLE_{_ELEMENTS[x.dtype]}"),
        "count": x.elements,
        "output": Output(0, element="void"),
        "to": Symbol(f"THIMBLE_{_ELEMENTS[y.dtype]}"),
    }
    widens = y.dtype.size_bytes > x.dtype.size_bytes
    return Kernel(
        (Call("thimble_cast", arguments),),
        _extents,
        find_overlaps=lambda: () if widens else (SafeOverlap(0),),
    )


def _extents(touched: Touched) -> Extents:
    call, source = touched.call, touched.inputs[0]
    assert source is not None
    return Extents(
        {0: whole(call["count"], source.element_bytes)},
        {0: whole(call["count"], touched.outputs[0].element_bytes)},
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


SPEC = OldForm(
    kind="cast",
    attributes=Cast,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("CAST",), _read, _write),
    types=frozenset(_TYPES),
    quantised=STORED,
    limits="float32, bool and integers, to each other",
)
