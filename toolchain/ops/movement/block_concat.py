"""BlockConcat: what a block needs of earlier blocks, side by side along an axis (MOTES 4.4).

Operand i contributes `parts[i]`: a run of its indices along `axis`. Rows of one NHWC image are one
run of bytes each. Always a copy: it lets the operands die. Made by the partitioner only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops import extents
from toolchain.ops.movement.copies import StridedCopy, lower_copies, sample_shape, sample_type
from toolchain.ops.movement.copies import strided_copy as copy_block
from toolchain.ops.movement.copy_overlaps import copy_overlaps
from toolchain.ops.spec import STORED, Array, Lowering, OpSpec, SafeOverlap, TensorType


@dataclass(frozen=True)
class BlockConcat(Attributes):
    """`parts`: for each operand the half-open run of indices of `axis` that it contributes."""

    axis: int
    parts: tuple[tuple[int, int], ...]


def _attributes(op: Op) -> BlockConcat:
    assert isinstance(op.attributes, BlockConcat)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    attributes, first = _attributes(op), graph.input(op, 0)
    axis = attributes.axis
    if not 0 <= axis < len(first.shape):
        raise ValueError(f"{first} has no axis {axis}")
    if len(attributes.parts) != len(op.inputs):
        raise ValueError(f"{len(attributes.parts)} parts of {len(op.inputs)} operands")
    for x, (begin, end) in zip(graph.input_tensors(op), attributes.parts, strict=True):
        if x is None or x.dtype is not first.dtype:
            raise ValueError(f"{x} cannot stand beside {first}")
        if (*x.shape[:axis], *x.shape[axis + 1 :]) != (
            *first.shape[:axis],
            *first.shape[axis + 1 :],
        ):
            raise ValueError(f"{x} and {first} differ in more than axis {axis}")
        if not 0 <= begin < end <= x.shape[axis]:
            raise ValueError(f"[{begin}, {end}) of {x} along axis {axis}")
    length = sum(end - begin for begin, end in attributes.parts)
    shape = (*first.shape[:axis], length, *first.shape[axis + 1 :])
    return (TensorType(shape, first.dtype),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    attributes = _attributes(op)
    runs = zip(inputs, attributes.parts, strict=True)
    taken = [np.take(x, range(begin, end), attributes.axis) for x, (begin, end) in runs]
    return (np.concatenate(taken, attributes.axis),)


def _copies(op: Op, graph: Graph) -> tuple[StridedCopy, ...]:
    attributes, y = _attributes(op), graph.output(op)
    outer, inner = math.prod(y.shape[: attributes.axis]), math.prod(y.shape[attributes.axis + 1 :])
    copies: list[StridedCopy] = []
    at = 0
    for index, (begin, end) in enumerate(attributes.parts):
        length = (end - begin) * inner
        copies += copy_block(
            (outer, length),
            (graph.input(op, index).shape[attributes.axis] * inner, 1),
            (y.shape[attributes.axis] * inner, 1),
            y.dtype.size_bytes,
            source=index,
            source_offset=begin * inner,
            target_offset=at,
        )
        at += length
    return tuple(copies)


def single_run(op: Op, graph: Graph) -> StridedCopy | None:
    """The one run of bytes that the operator copies; None where it copies more than one."""
    copies = _copies(op, graph)
    return copies[0] if len(copies) == 1 and not copies[0].loops else None


def _reads(op: Op, graph: Graph) -> tuple[tuple[int, int], ...]:
    """A run of indices is a run of bytes where nothing longer than 1 stands before the axis."""
    runs = []
    for x, (begin, end) in zip(graph.input_tensors(op), _attributes(op).parts, strict=True):
        assert x is not None
        axis = _attributes(op).axis
        unit = x.size_bytes // x.shape[axis]
        one_run = math.prod(x.shape[:axis]) == 1
        runs.append((begin * unit, end * unit) if one_run else (0, x.size_bytes))
    return tuple(runs)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    """One run of bytes by `thimble_move`, overlap or not; anything else by `thimble_copy_nd`."""
    run = single_run(op, graph)
    if run is None:
        return lower_copies(_copies(op, graph))
    return Lowering(functions=("thimble_move",), fields={"copies": (run,)})


def _overlaps(op: Op, graph: Graph, core: Core) -> tuple[SafeOverlap, ...]:
    """One run of bytes is moved at once: it may go anywhere, to where it was even."""
    if single_run(op, graph) is not None:
        return (SafeOverlap(0, lead_bytes=-graph.input(op, 0).size_bytes),)
    return copy_overlaps(op, graph, _copies(op, graph))


def _sample(rng: np.random.Generator) -> Graph:
    rank = int(rng.integers(1, 5))
    axis = int(rng.integers(rank))
    shape = sample_shape(rng, rank, 500)
    if rng.random() < 0.5:
        shape = tuple(1 if i < axis else d for i, d in enumerate(shape))
    dtype, quantisation = sample_type(rng)
    tensors, parts = [], []
    for index in range(int(rng.integers(1, 4))):
        length = int(rng.integers(1, 8))
        begin = int(rng.integers(length))
        parts.append((begin, int(rng.integers(begin, length)) + 1))
        part = (*shape[:axis], length, *shape[axis + 1 :])
        tensors.append(Tensor(f"x{index}", part, dtype, quantisation))
    names = tuple(t.name for t in tensors)
    total = sum(end - begin for begin, end in parts)
    y = Tensor("y", (*shape[:axis], total, *shape[axis + 1 :]), dtype, quantisation)
    op = Op("block_concat", "join", names, ("y",), BlockConcat(axis, tuple(parts)))
    return Graph.build("sample", [*tensors, y], [op], names, ["y"])


SPEC = OpSpec(
    quantised=STORED,
    kind="block_concat",
    attributes=BlockConcat,
    infer=_infer,
    reference=_reference,
    lower=_lower,
    extents=extents.copies,
    sample=_sample,
    overlaps=_overlaps,
    reads=_reads,
    dtypes=frozenset(DType),
    made_by_passes=True,
    limits="any type; made by splitting, never read from a file",
)
