"""BlockConcat: what a block needs of several earlier blocks, side by side along an axis.

Operand i contributes `parts[i]`, a run of its indices along `axis`. Rows of one NHWC image are one
run of bytes each. It is always a copy, so that the operands need not live on. Only the partitioner
makes this operator (MOTES, section 4.4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.copies import StridedCopy, strided_copy
from toolchain.ops.movement.kernels import MOVE, copies_kernel, copy_source, move_terms


@dataclass(frozen=True)
class BlockConcat(kit.Attributes):
    """`parts`: for each operand the half-open range of indices along `axis` that it contributes."""

    axis: int
    parts: tuple[tuple[int, int], ...]


def _infer(op: kit.Operator[BlockConcat]) -> kit.TensorTypes:
    attributes, first = op.attributes, op.x
    axis = attributes.axis
    if not 0 <= axis < len(first.shape):
        raise ValueError(f"{first} has no axis {axis}")
    if len(attributes.parts) != len(op.inputs):
        raise ValueError(f"{len(attributes.parts)} parts of {len(op.inputs)} operands")
    for x, (begin, end) in zip(op.inputs, attributes.parts, strict=True):
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
    return (kit.TensorType(shape, first.dtype),)


def _reference(op: kit.Operator[BlockConcat], inputs: kit.Inputs) -> kit.Arrays:
    attributes = op.attributes
    runs = zip(inputs, attributes.parts, strict=True)
    taken = [np.take(x, range(begin, end), attributes.axis) for x, (begin, end) in runs]
    return (np.concatenate(taken, attributes.axis),)


def _copies(op: kit.Operator[BlockConcat]) -> tuple[StridedCopy, ...]:
    attributes, y = op.attributes, op.y
    outer, inner = math.prod(y.shape[: attributes.axis]), math.prod(y.shape[attributes.axis + 1 :])
    copies: list[StridedCopy] = []
    at = 0
    for index, (begin, end) in enumerate(attributes.parts):
        length = (end - begin) * inner
        copies += strided_copy(
            (outer, length),
            (op.input(index).shape[attributes.axis] * inner, 1),
            (y.shape[attributes.axis] * inner, 1),
            y.dtype.size_bytes,
            source=index,
            source_offset=begin * inner,
            target_offset=at,
        )
        at += length
    return tuple(copies)


def single_run(op: kit.Operator[BlockConcat]) -> StridedCopy | None:
    """The only run of bytes that the operator copies; None if it copies several."""
    copies = _copies(op)
    return copies[0] if len(copies) == 1 and not copies[0].loops else None


def _reads(op: kit.Operator[BlockConcat]) -> tuple[tuple[int, int], ...]:
    """A run of indices is a run of bytes where nothing longer than 1 stands before the axis."""
    runs = []
    for x, (begin, end) in zip(op.inputs, op.attributes.parts, strict=True):
        assert x is not None
        axis = op.attributes.axis
        unit = x.size_bytes // x.shape[axis]
        one_run = math.prod(x.shape[:axis]) == 1
        runs.append((begin * unit, end * unit) if one_run else (0, x.size_bytes))
    return tuple(runs)


def _select(op: kit.Operator[BlockConcat], core: kit.Core) -> kit.Kernel:
    """One run of bytes by `thimble_move`, overlap or not; anything else by `thimble_copy_nd`."""
    run = single_run(op)
    if run is None:
        return copies_kernel(op, _copies(op))
    arguments: dict[str, kit.Argument] = {
        "target": kit.Output(0),
        "source": copy_source(run, op),
        "size_bytes": run.run_bytes,
    }
    # Moved at once, it may go anywhere, to where it was even.
    overlap = kit.SafeOverlap(0, lead_bytes=-op.x.size_bytes)
    return kit.Kernel(
        (kit.Call(MOVE, arguments),),
        _move_extents,
        find_overlaps=lambda: (overlap,),
        find_terms=lambda: move_terms(
            run.run_bytes, run.source_offset % 4 == 0 and run.run_bytes % 4 == 0, core
        ),
    )


def _move_extents(touched: kit.Touched) -> kit.Extents:
    source, size_bytes = touched.call.arguments["source"], touched.call["size_bytes"]
    assert isinstance(source, kit.Input)
    pointer = touched.inputs[source.index]
    assert pointer is not None
    begin = source.at * pointer.element_bytes
    return kit.Extents(
        {source.index: kit.Extent(begin, begin + size_bytes)}, {0: kit.whole(size_bytes)}
    )


def _sample(rng: np.random.Generator) -> kit.Graph:
    rank = int(rng.integers(1, 5))
    axis = int(rng.integers(rank))
    shape = kit.sample_shape(rng, rank, 500)
    if rng.random() < 0.5:
        shape = tuple(1 if i < axis else d for i, d in enumerate(shape))
    dtype, quantisation = kit.sample_type(rng)
    tensors, parts = [], []
    for index in range(int(rng.integers(1, 4))):
        length = int(rng.integers(1, 8))
        begin = int(rng.integers(length))
        parts.append((begin, int(rng.integers(begin, length)) + 1))
        part = (*shape[:axis], length, *shape[axis + 1 :])
        tensors.append(kit.Tensor(f"x{index}", part, dtype, quantisation))
    return kit.sample("block_concat", BlockConcat(axis, tuple(parts)), *tensors, name="join")


SPEC = kit.Form(
    quantised=kit.STORED,
    kind="block_concat",
    attributes=BlockConcat,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    reads=_reads,
    types=frozenset(kit.DType),
    made_by_passes=True,
    limits="any type; made by splitting, never read from a file",
)
