"""Tile: a tensor repeated along its axes.

TFLite TILE and BROADCAST_TO, ONNX Tile and Expand. Any element type.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.copies import MAX_LOOPS, StridedCopy, row_major, strided_copy
from toolchain.ops.movement.kernels import copies_kernel

_MOST_COPIES = 64
"""Each copy is a call in the generated C."""


@dataclass(frozen=True)
class Tile(kit.Attributes):
    """How often each axis of the output repeats the input's. Missing leading axes count as 1."""

    repeats: tuple[int, ...]


def _repeats(op: kit.Operator[Tile]) -> tuple[int, ...]:
    return op.attributes.repeats


def _padded(op: kit.Operator[Tile]) -> tuple[int, ...]:
    """The input's shape with as many axes as the output has. Raises ValueError if it has more."""
    shape, rank = op.x.shape, len(_repeats(op))
    if len(shape) > rank:
        raise ValueError(f"{rank} repeats of {len(shape)} dimensions")
    return (1,) * (rank - len(shape)) + shape


def _infer(op: kit.Operator[Tile]) -> kit.TensorTypes:
    x = op.x
    if min(_repeats(op), default=1) < 1:
        raise ValueError(f"repeats {list(_repeats(op))} leave nothing")
    shape = tuple(d * n for d, n in zip(_padded(op), _repeats(op), strict=True))
    return (kit.TensorType(shape, x.dtype),)


def _reference(op: kit.Operator[Tile], inputs: kit.Inputs) -> kit.Arrays:
    return (np.tile(inputs[0].reshape(_padded(op)), _repeats(op)),)


def _copies(op: kit.Operator[Tile]) -> tuple[StridedCopy, ...]:
    """Each axis is two: the repeats, which read the same again, and the input's own."""
    x, padded, repeats = op.x, _padded(op), _repeats(op)
    block = [size for pair in zip(repeats, padded, strict=True) for size in pair]
    reads = [step for stride in row_major(padded) for step in (0, stride)]
    writes = row_major(block)
    loops = sum(size > 1 for size in block)
    peeled = max(loops - MAX_LOOPS, 0)  # as copies of their own, one for each turn
    outer = [i for i, size in enumerate(block) if size > 1][:peeled]
    inner = [i for i in range(len(block)) if i not in outer]
    turns = math.prod(block[i] for i in outer)
    if turns > _MOST_COPIES:
        raise op.refused(
            f"{list(repeats)} repeats of {list(padded)} take {loops} nested "
            "loops; tile in two steps"
        )
    starts = itertools.product(*(range(block[i]) for i in outer))
    return tuple(
        copy
        for start in starts
        for copy in strided_copy(
            [block[i] for i in inner],
            [reads[i] for i in inner],
            [writes[i] for i in inner],
            x.dtype.size_bytes,
            source_offset=sum(n * reads[i] for n, i in zip(start, outer, strict=True)),
            target_offset=sum(n * writes[i] for n, i in zip(start, outer, strict=True)),
        )
    )


def _select(op: kit.Operator[Tile], core: kit.Core) -> kit.Kernel:
    return copies_kernel(op, _copies(op))


def _aliases(op: kit.Operator[Tile]) -> tuple[kit.Alias, ...]:
    plain = set(_repeats(op)) <= {1}
    return (kit.Alias(op.y.name, op.x.name),) if plain else ()


def _axes(op: kit.Operator[Tile]) -> tuple[kit.Axis, ...]:
    """The axes that do not repeat."""
    missing = len(_repeats(op)) - len(op.x.shape)
    return tuple(
        kit.Axis(axis, (kit.Reach(axis - missing),))
        for axis, times in enumerate(_repeats(op))
        if times == 1 and axis >= missing
    )


def _broadcast(node_shape: tuple[int, ...], wanted: Sequence[int]) -> tuple[int, ...]:
    """The repeats that broadcast to a shape. Raises ValueError where that is impossible."""
    target = np.broadcast_shapes(node_shape, tuple(wanted))
    padded = (1,) * (len(target) - len(node_shape)) + node_shape
    return tuple(t if d == 1 else 1 for t, d in zip(target, padded, strict=True))


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    if node.builtin == "FILL":
        value = node.inputs[1]
        if value is None or value.shape:
            raise node.unsupported("its value is no scalar")
        return kit.ReadOp(Tile(node.integers(0)), (1,))
    x = node.inputs[0]
    assert x is not None
    wanted = node.integers(1)
    if node.builtin == "BROADCAST_TO":
        wanted = _broadcast(x.shape, wanted)
    return kit.ReadOp(Tile(wanted), (0,))


def _write(op: kit.Operator[Tile]) -> kit.WrittenOp:
    x, y = op.x, op.y
    if not x.shape:
        dims = kit.int32_constant("dims", _repeats(op))
        return kit.WrittenOp("FILL", "FillOptions", extra_inputs=(dims,), version=3, order=(1, 0))
    if len(x.shape) == len(y.shape):
        return kit.WrittenOp(
            "TILE", extra_inputs=(kit.int32_constant("repeats", _repeats(op)),), version=2
        )
    shape = kit.int32_constant("shape", y.shape)
    return kit.WrittenOp("BROADCAST_TO", "BroadcastToOptions", extra_inputs=(shape,), version=3)


def _sample(rng: np.random.Generator) -> kit.Graph:
    rank = int(rng.integers(1, 5))
    shape = kit.sample_shape(rng, rank, 200)
    repeats = tuple(int(n) for n in rng.choice([1, 1, 2, 3, 5], rank))
    if rng.random() < 0.3:  # as BROADCAST_TO may do it
        shape = tuple(d if n == 1 else 1 for d, n in zip(shape, repeats, strict=True))
        repeats = (*(int(n) for n in rng.integers(1, 4, int(rng.integers(0, 5 - rank)))), *repeats)
    if rng.random() < 0.15:  # as FILL does it
        rank, shape = 0, ()
    return kit.sample("tile", Tile(repeats), kit.Tensor("x", shape, *kit.sample_type(rng)))


def _read_onnx(node: kit.OnnxNode) -> None:
    """The result lies as ONNX says."""
    shape, out = node.shape(0), node.output_shape()
    wanted = node.integers(1)
    repeats = _broadcast(shape, wanted) if node.operator == "Expand" else wanted
    operand = node.operand(0, tuple(range(len(shape))))
    axes = tuple(range(len(out)))
    node.emit("tile", Tile(repeats), [operand], node.quantisation(0), axes, out)


SPEC = kit.Form(
    quantised=kit.ALIKE,
    kind="tile",
    attributes=Tile,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("TILE", "BROADCAST_TO", "FILL"), _read, _write),
    onnx=kit.OnnxBinding(("Tile", "Expand"), _read_onnx),
    aliases=_aliases,
    axes=_axes,
    types=frozenset(kit.DType),
    limits="any type; repeats are constant",
)
