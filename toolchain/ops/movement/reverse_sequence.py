"""The first rows of each batch in reverse, as many as its length says. TFLite REVERSE_SEQUENCE."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit

_WORD_BYTES = 4
_LENGTHS = (kit.DType.INT32, kit.DType.INT64)
_TYPES = (kit.DType.FLOAT32, kit.DType.INT16, kit.DType.INT32, kit.DType.INT64)


@dataclass(frozen=True)
class ReverseSequence(kit.Attributes):
    """The dimension that is reversed, and the one whose indices have a length each."""

    sequence: int
    batch: int


def _infer(op: kit.Operator[ReverseSequence]) -> kit.TensorTypes:
    """Raises ValueError for dimensions that there are not, or lengths that do not fit."""
    x, lengths, attributes = op.x, op.input(1), op.attributes
    rank = len(x.shape)
    if attributes.sequence == attributes.batch or not {
        attributes.sequence,
        attributes.batch,
    } <= set(range(rank)):
        raise ValueError(f"dimensions {attributes.sequence} and {attributes.batch} of {x}")
    if lengths.dtype not in _LENGTHS or lengths.shape != (x.shape[attributes.batch],):
        raise ValueError(f"{lengths} is no length for each of {x.shape[attributes.batch]} batches")
    data = lengths.constant
    known = np.zeros(0, np.int64) if data is None else data.astype(np.int64)
    if not ((known >= 0) & (known <= x.shape[attributes.sequence])).all():
        raise ValueError(f"lengths outside of 0 to {x.shape[attributes.sequence]}")
    return (kit.TensorType(x.shape, x.dtype),)


def _reference(op: kit.Operator[ReverseSequence], inputs: kit.Inputs) -> kit.Arrays:
    attributes = op.attributes
    rows = np.moveaxis(inputs[0], (attributes.batch, attributes.sequence), (0, 1))
    result = rows.copy()
    for target, row, length in zip(result, rows, inputs[1].astype(np.int64), strict=True):
        target[:length] = row[:length][::-1]
    return (
        np.ascontiguousarray(np.moveaxis(result, (0, 1), (attributes.batch, attributes.sequence))),
    )


def _select(op: kit.Operator[ReverseSequence], core: kit.Core) -> kit.Kernel:
    x, attributes = op.x, op.attributes
    first, second = sorted((attributes.sequence, attributes.batch))
    params = kit.Struct(
        "thimble_reverse_sequence_params",
        {
            "outer": math.prod(x.shape[:first]),
            "first": x.shape[first],
            "middle": math.prod(x.shape[first + 1 : second]),
            "second": x.shape[second],
            "run_bytes": math.prod(x.shape[second + 1 :]) * x.dtype.size_bytes,
            "length_bytes": op.input(1).dtype.size_bytes,
            "batch_first": int(attributes.batch == first),
        },
    )
    given: dict[str, kit.Argument] = {
        "params": params,
        "data": kit.Input(0, element="void"),
        "lengths": kit.Input(1, element="void"),
        "target": kit.Output(0, element="void"),
    }
    run_bytes = math.prod(x.shape[second + 1 :]) * x.dtype.size_bytes
    runs = x.elements * x.dtype.size_bytes // run_bytes
    words, rest = divmod(run_bytes, _WORD_BYTES)
    return kit.Kernel(
        (kit.Call("thimble_reverse_sequence", given, status=True),),
        _extents,
        find_terms=lambda: {"call": 1.0, "run": runs, "word": runs * words, "byte": runs * rest},
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    """`thimble_reverse_sequence` checks every length."""
    sizes = {
        name: touched.call[f"params.{name}"]
        for name in ("outer", "first", "middle", "second", "run_bytes", "length_bytes")
    }
    batches = sizes["first" if touched.call["params.batch_first"] else "second"]
    runs = sizes["outer"] * sizes["first"] * sizes["middle"] * sizes["second"]
    data = kit.whole(runs, sizes["run_bytes"])
    return kit.Extents({0: data, 1: kit.whole(batches, sizes["length_bytes"])}, {0: data})


def _axes(op: kit.Operator[ReverseSequence]) -> tuple[kit.Axis, ...]:
    """All but the one that is reversed; a block of batches takes their lengths."""
    attributes = op.attributes
    return tuple(
        kit.Axis(axis, (kit.Reach(axis), kit.Reach(0) if axis == attributes.batch else None))
        for axis in range(len(op.x.shape))
        if axis != attributes.sequence
    )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    options = node.options
    return kit.ReadOp(ReverseSequence(int(options.seqDim), int(options.batchDim)), (0, 1))


def _write(op: kit.Operator[ReverseSequence]) -> kit.WrittenOp:
    attributes = op.attributes
    options = {"seqDim": attributes.sequence, "batchDim": attributes.batch}
    return kit.WrittenOp("REVERSE_SEQUENCE", "ReverseSequenceOptions", options)


def _sample(rng: np.random.Generator) -> kit.Graph:
    rank = int(rng.integers(2, 5))
    shape = kit.sample_shape(rng, rank, 400)
    sequence, batch = (int(axis) for axis in rng.permutation(rank)[:2])
    dtype = _TYPES[int(rng.integers(len(_TYPES)))]
    length_type = _LENGTHS[int(rng.integers(len(_LENGTHS)))]
    data = rng.integers(0, shape[sequence] + 1, shape[batch]).astype(length_type.numpy)
    x, lengths = kit.Tensor("x", shape, dtype), kit.constant_sample("lengths", data)
    attributes = ReverseSequence(sequence, batch)
    return kit.sample("reverse_sequence", attributes, x, lengths, name="reverse")


SPEC = kit.Form(
    kind="reverse_sequence",
    attributes=ReverseSequence,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=_axes,
    tflite=kit.TfliteBinding(("REVERSE_SEQUENCE",), _read, _write),
    types=frozenset(_TYPES),
    quantised=kit.STORED,
    limits="float32 or integers of 16, 32 or 64 bits; int32 or int64 lengths, constant or computed",
)
