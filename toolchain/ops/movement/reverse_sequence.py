"""The first rows of each batch in reverse, as many as its length says. TFLite REVERSE_SEQUENCE."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Argument, Call, Input, Kernel, Output, Struct, Touched
from toolchain.ops.movement.copies import sample_shape
from toolchain.ops.spec import (
    STORED,
    Array,
    Axis,
    Reach,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_WORD_BYTES = 4
_LENGTHS = (DType.INT32, DType.INT64)
_TYPES = (DType.FLOAT32, DType.INT16, DType.INT32, DType.INT64)


@dataclass(frozen=True)
class ReverseSequence(Attributes):
    """The dimension that is reversed, and the one whose indices have a length each."""

    sequence: int
    batch: int


def _attributes(op: Op) -> ReverseSequence:
    assert isinstance(op.attributes, ReverseSequence)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    """Raises ValueError for dimensions that there are not, or lengths that do not fit."""
    x, lengths, own = graph.input(op, 0), graph.input(op, 1), _attributes(op)
    rank = len(x.shape)
    if own.sequence == own.batch or not {own.sequence, own.batch} <= set(range(rank)):
        raise ValueError(f"dimensions {own.sequence} and {own.batch} of {x}")
    if lengths.dtype not in _LENGTHS or lengths.shape != (x.shape[own.batch],):
        raise ValueError(f"{lengths} is no length for each of {x.shape[own.batch]} batches")
    data = lengths.constant
    known = np.zeros(0, np.int64) if data is None else data.astype(np.int64)
    if not ((known >= 0) & (known <= x.shape[own.sequence])).all():
        raise ValueError(f"lengths outside of 0 to {x.shape[own.sequence]}")
    return (TensorType(x.shape, x.dtype),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    own = _attributes(op)
    rows = np.moveaxis(inputs[0], (own.batch, own.sequence), (0, 1))
    result = rows.copy()
    for target, row, length in zip(result, rows, inputs[1].astype(np.int64), strict=True):
        target[:length] = row[:length][::-1]
    return (np.ascontiguousarray(np.moveaxis(result, (0, 1), (own.batch, own.sequence))),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x, own = graph.input(op, 0), _attributes(op)
    first, second = sorted((own.sequence, own.batch))
    params = Struct(
        "thimble_reverse_sequence_params",
        {
            "outer": math.prod(x.shape[:first]),
            "first": x.shape[first],
            "middle": math.prod(x.shape[first + 1 : second]),
            "second": x.shape[second],
            "run_bytes": math.prod(x.shape[second + 1 :]) * x.dtype.size_bytes,
            "length_bytes": graph.input(op, 1).dtype.size_bytes,
            "batch_first": int(own.batch == first),
        },
    )
    given: dict[str, Argument] = {
        "params": params,
        "data": Input(0, element="void"),
        "lengths": Input(1, element="void"),
        "target": Output(0, element="void"),
    }
    run_bytes = math.prod(x.shape[second + 1 :]) * x.dtype.size_bytes
    runs = x.elements * x.dtype.size_bytes // run_bytes
    words, rest = divmod(run_bytes, _WORD_BYTES)
    return Kernel(
        (Call("thimble_reverse_sequence", given, status=True),),
        _extents,
        find_terms=lambda: {"call": 1.0, "run": runs, "word": runs * words, "byte": runs * rest},
    )


def _extents(touched: Touched) -> Extents:
    """`thimble_reverse_sequence` checks every length."""
    sizes = {
        name: touched.call[f"params.{name}"]
        for name in ("outer", "first", "middle", "second", "run_bytes", "length_bytes")
    }
    batches = sizes["first" if touched.call["params.batch_first"] else "second"]
    runs = sizes["outer"] * sizes["first"] * sizes["middle"] * sizes["second"]
    data = whole(runs, sizes["run_bytes"])
    return Extents({0: data, 1: whole(batches, sizes["length_bytes"])}, {0: data})


def _axes(op: Op, graph: Graph) -> tuple[Axis, ...]:
    """All but the one that is reversed; a block of batches takes their lengths."""
    own = _attributes(op)
    return tuple(
        Axis(
            axis,
            (Reach(axis), Reach(0) if axis == own.batch else None),
            lambda part: op.attributes,
        )
        for axis in range(len(graph.input(op, 0).shape))
        if axis != own.sequence
    )


def _read(node: TfliteNode) -> ReadOp:
    options = node.options
    return ReadOp(ReverseSequence(int(options.seqDim), int(options.batchDim)), (0, 1))


def _write(op: Op, graph: Graph) -> WrittenOp:
    own = _attributes(op)
    options = {"seqDim": own.sequence, "batchDim": own.batch}
    return WrittenOp("REVERSE_SEQUENCE", "ReverseSequenceOptions", options)


def _sample(rng: np.random.Generator) -> Graph:
    rank = int(rng.integers(2, 5))
    shape = sample_shape(rng, rank, 400)
    sequence, batch = (int(axis) for axis in rng.permutation(rank)[:2])
    dtype = _TYPES[int(rng.integers(len(_TYPES)))]
    length_type = _LENGTHS[int(rng.integers(len(_LENGTHS)))]
    data = rng.integers(0, shape[sequence] + 1, shape[batch]).astype(length_type.numpy)
    tensors = [
        Tensor("x", shape, dtype),
        Tensor("lengths", data.shape, length_type, None, data),
        Tensor("y", shape, dtype),
    ]
    attributes = ReverseSequence(sequence, batch)
    op = Op("reverse_sequence", "reverse", ("x", "lengths"), ("y",), attributes)
    return Graph.build("sample", tensors, [op], ["x"], ["y"])


SPEC = OldForm(
    kind="reverse_sequence",
    attributes=ReverseSequence,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=_axes,
    tflite=TfliteBinding(("REVERSE_SEQUENCE",), _read, _write),
    types=frozenset(_TYPES),
    quantised=STORED,
    limits="float32 or integers of 16, 32 or 64 bits; int32 or int64 lengths, constant or computed",
)
