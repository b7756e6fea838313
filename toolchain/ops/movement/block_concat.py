"""BlockConcat: what a block needs of several earlier blocks, side by side along an axis.

Operand i contributes `parts[i]`, a run of its indices along `axis`. Rows of one NHWC image are one
run of bytes each. It is always a copy, so that the operands need not live on. Only the partitioner
makes this operator (MOTES, section 4.4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.extents import Extent, Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Argument, Call, Input, Kernel, Output, SafeOverlap, Touched
from toolchain.ops.movement.copies import StridedCopy, sample_shape, sample_type
from toolchain.ops.movement.copies import strided_copy as copy_block
from toolchain.ops.movement.kernels import MOVE, copies_kernel, copy_source, move_terms
from toolchain.ops.spec import STORED, Array, TensorType


@dataclass(frozen=True)
class BlockConcat(Attributes):
    """`parts`: for each operand the half-open range of indices along `axis` that it contributes."""

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
    """The only run of bytes that the operator copies; None if it copies several."""
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


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    """One run of bytes by `thimble_move`, overlap or not; anything else by `thimble_copy_nd`."""
    run = single_run(op, graph)
    if run is None:
        return copies_kernel(op, graph, _copies(op, graph))
    arguments: dict[str, Argument] = {
        "target": Output(0),
        "source": copy_source(run, op, graph),
        "size_bytes": run.run_bytes,
    }
    # Moved at once, it may go anywhere, to where it was even.
    overlap = SafeOverlap(0, lead_bytes=-graph.input(op, 0).size_bytes)
    return Kernel(
        (Call(MOVE, arguments),),
        _move_extents,
        find_overlaps=lambda: (overlap,),
        find_terms=lambda: move_terms(
            run.run_bytes, run.source_offset % 4 == 0 and run.run_bytes % 4 == 0, core
        ),
    )


def _move_extents(touched: Touched) -> Extents:
    source, size_bytes = touched.call.arguments["source"], touched.call["size_bytes"]
    assert isinstance(source, Input)
    pointer = touched.inputs[source.index]
    assert pointer is not None
    begin = source.at * pointer.element_bytes
    return Extents({source.index: Extent(begin, begin + size_bytes)}, {0: whole(size_bytes)})


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


SPEC = OldForm(
    quantised=STORED,
    kind="block_concat",
    attributes=BlockConcat,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    reads=_reads,
    types=frozenset(DType),
    made_by_passes=True,
    limits="any type; made by splitting, never read from a file",
)
