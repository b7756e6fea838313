"""Slices added to zeros where rows of coordinates say. TFLite SCATTER_ND.

Bytes keep the last 8 bits of a sum of stored values, whatever their scale, as in LiteRT.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.gather_nd import rows_struct

_TYPES = (
    kit.DType.FLOAT32,
    kit.DType.INT32,
    kit.DType.INT64,
    kit.DType.INT8,
    kit.DType.UINT8,
    kit.DType.BOOL,
)
_OTHER_SUFFIXES = MappingProxyType({kit.DType.UINT8: "s8", kit.DType.BOOL: "bool"})
"""Functions whose names have another word than the type's: uint8 is added as int8, bools by OR."""
_INDICES = (kit.DType.INT32, kit.DType.INT64)


@dataclass(frozen=True)
class ScatterNd(kit.Attributes):
    """`shape` of the output. `zero` is what stands for 0: a stored byte where uint8 was lowered."""

    shape: tuple[int, ...]
    zero: int = 0


def _infer(op: kit.Operator[ScatterNd]) -> kit.TensorTypes:
    indices, updates, shape = op.x, op.input(1), op.attributes.shape
    if indices.dtype not in _INDICES or not indices.shape:
        raise ValueError(f"coordinates are rows of int32 or int64, not {indices}")
    depth = indices.shape[-1]
    if not 1 <= depth <= len(shape) or min(shape, default=1) < 1:
        raise ValueError(f"rows of {depth} coordinates into {list(shape)}")
    if updates.shape != (*indices.shape[:-1], *shape[depth:]):
        raise ValueError(f"updates {updates} do not fit {indices} and {list(shape)}")
    if indices.constant is not None:
        known = indices.constant.astype(np.int64)
        if not ((known >= 0) & (known < np.array(shape[:depth]))).all():
            raise ValueError(f"coordinates outside of {list(shape[:depth])}")
    return (kit.TensorType(shape, updates.dtype),)


def _reference(op: kit.Operator[ScatterNd], inputs: kit.Inputs) -> kit.Arrays:
    attributes, updates = op.attributes, inputs[1]
    result = np.full(attributes.shape, attributes.zero, updates.dtype)
    with np.errstate(all="ignore"):
        summands = np.subtract(updates, attributes.zero) if attributes.zero else updates
        np.add.at(result, tuple(np.moveaxis(inputs[0].astype(np.int64), -1, 0)), summands)
    return (result,)


def _select(op: kit.Operator[ScatterNd], core: kit.Core) -> kit.Kernel:
    indices, y = op.x, op.y
    suffix = _OTHER_SUFFIXES.get(y.dtype, kit.SUFFIXES[y.dtype])
    arguments: dict[str, kit.Argument] = {
        "params": rows_struct(y, indices, indices.shape[-1]),
        "size": y.elements,
        **({"zero": op.attributes.zero} if suffix == "s8" else {}),
        "indices": kit.Input(0),
        "updates": kit.Input(1, element="int8_t" if y.dtype is kit.DType.UINT8 else ""),
        "target": kit.Output(0, element="int8_t" if y.dtype is kit.DType.UINT8 else ""),
    }
    call = kit.Call(f"thimble_scatter_nd_{suffix}", arguments, status=True)
    rows, depth = math.prod(indices.shape[:-1]), indices.shape[-1]
    return kit.Kernel(
        (call,),
        partial(_extents, y.dtype.size_bytes),
        find_terms=lambda: {
            "call": 1.0,
            "cleared": y.elements,
            "row": rows,
            "coordinate": rows * depth,
            "added": op.input(1).elements,
        },
    )


def _extents(element_bytes: int, touched: kit.Touched) -> kit.Extents:
    """Every coordinate is checked against `sizes`."""
    rows, depth, run_bytes, index_bytes = touched.call.params(
        "rows", "depth", "run_bytes", "index_bytes"
    )
    return kit.Extents(
        {0: kit.whole(rows * depth, index_bytes), 1: kit.whole(rows, run_bytes)},
        {0: kit.whole(touched.call["size"], element_bytes)},
        largest=math.prod(touched.call.row("params.sizes")),
    )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    return kit.ReadOp(ScatterNd(node.integers(2), -128 if node.legacy else 0), (0, 1))


def _write(op: kit.Operator[ScatterNd]) -> kit.WrittenOp:
    shape = kit.int32_constant("shape", op.attributes.shape)
    return kit.WrittenOp("SCATTER_ND", "ScatterNdOptions", {}, (shape,))


def _sample(rng: np.random.Generator) -> kit.Graph:
    """Some rows name one slice twice. The coordinates are constant, because random ones would
    mostly lie outside; TFLite has int32 ones.
    """
    rank = int(rng.integers(1, 5))
    shape = kit.sample_shape(rng, rank, 300)
    depth = int(rng.integers(1, rank + 1))
    rows = kit.sample_shape(rng, int(rng.integers(1, 3)), 12)
    dtype = _TYPES[int(rng.integers(len(_TYPES)))]
    quantisation = kit.sample_quantisation(rng) if dtype is kit.DType.INT8 else None
    picked = rng.integers(0, shape[:depth], (*rows, depth)).astype(np.int32)
    indices = kit.constant_sample("indices", picked)
    updates = kit.Tensor("updates", (*rows, *shape[depth:]), dtype, quantisation)
    attributes = ScatterNd(shape)
    return kit.sample("scatter_nd", attributes, indices, updates, q=quantisation, name="scatter")


SPEC = kit.Form(
    quantised=kit.STORED,
    kind="scatter_nd",
    attributes=ScatterNd,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("SCATTER_ND",), _read, _write),
    types=frozenset({*_TYPES, *_INDICES}),
    limits="float32, bool or integers of 8, 32 or 64 bits; int32 or int64 coordinates; "
    "the shape is constant",
)
