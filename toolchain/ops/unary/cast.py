"""Numbers of one type to another: a narrower integer keeps the low bits. TFLite CAST.

A float loses its fraction and is held within the integers; what is no number becomes the least one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from toolchain.ops import kit
from toolchain.ops.elementwise.kernels import sized_extents

_ELEMENTS = MappingProxyType(
    {
        kit.DType.INT8: "S8",
        kit.DType.UINT8: "U8",
        kit.DType.BOOL: "BOOL",
        kit.DType.INT16: "S16",
        kit.DType.INT32: "S32",
        kit.DType.UINT32: "U32",
        kit.DType.INT64: "S64",
        kit.DType.FLOAT32: "F32",
    }
)
_TYPES = tuple(_ELEMENTS)


@dataclass(frozen=True)
class Cast(kit.Attributes):
    """`to`: the output's type."""

    to: kit.DType = kit.DType.INT32


def _infer(op: kit.Operator[Cast]) -> tuple[kit.TensorType, ...]:
    return (kit.TensorType(op.x.shape, op.attributes.to),)


def _reference(op: kit.Operator[Cast], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    (x,), to = inputs, op.attributes.to
    if x.dtype != np.float32 or to in (kit.DType.FLOAT32, kit.DType.BOOL):
        return (x.astype(to.numpy),)
    info, real = np.iinfo(to.value), x.astype(np.float64)
    inside = (real >= info.min) & (real < info.max + 1.0)
    ends = np.where(real > 0, info.max, info.min).astype(to.numpy)
    return (np.where(inside, np.where(inside, real, 0.0).astype(to.numpy), ends),)


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    x, y = op.x, op.y
    arguments: dict[str, kit.Argument] = {
        "input": kit.Input(0, element="void"),
        "from": kit.Symbol(f"THIMBLE_{_ELEMENTS[x.dtype]}"),
        "size": x.elements,
        "output": kit.Output(0, element="void"),
        "to": kit.Symbol(f"THIMBLE_{_ELEMENTS[y.dtype]}"),
    }
    widens = y.dtype.size_bytes > x.dtype.size_bytes
    return kit.Kernel(
        (kit.Call("thimble_cast", arguments),),
        sized_extents,
        find_overlaps=lambda: () if widens else (kit.SafeOverlap(0),),
    )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    if node.legacy:
        raise node.unsupported(
            "it changes the type of legacy uint8",
            "quantise the float model to int8 by TensorFlow 2",
        )
    return kit.ReadOp(Cast(node.outputs[0].dtype), (0,))


def _write(op: kit.Operator[Cast]) -> kit.WrittenOp:
    source, target = op.x.dtype.name, op.attributes.to.name
    return kit.WrittenOp(
        "CAST", "CastOptions", {"inDataType": source, "outDataType": target}, (), 3
    )


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = kit.sample_shape(rng, int(rng.integers(1, 4)))
    source, target = (_TYPES[int(rng.integers(len(_TYPES)))] for _ in range(2))
    given, made = (
        kit.Quantisation((1.0,), (0,)) if dtype is kit.DType.INT8 else None
        for dtype in (source, target)
    )
    return kit.sample("cast", Cast(target), kit.Tensor("x", shape, source, given), q=made)


SPEC = kit.Form(
    kind="cast",
    attributes=Cast,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("CAST",), _read, _write),
    types=frozenset(_TYPES),
    quantised=kit.STORED,
    limits="float32, bool and integers, to each other",
)
