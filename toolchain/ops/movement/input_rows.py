"""InputRows: rows of an input that the caller hands over a few at a time, copied into the arena.

The input takes no RAM then: only what this operator makes of it does. Splitting makes one operator
for each block of rows; together they copy each row once, in order. Only the planner makes this
operator (`planning.rows`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.kernels import MOVE, move_terms

KIND = "input_rows"


@dataclass(frozen=True)
class InputRows(kit.Attributes):
    """Indices [begin, end) along `axis`, the rows, of the input seen in `shape`.

    `shape` has as many elements as the input. Nothing longer than 1 stands before the rows.
    """

    shape: tuple[int, ...]
    axis: int
    begin: int
    end: int

    @property
    def row_elements(self) -> int:
        return math.prod(self.shape[self.axis + 1 :])

    @property
    def rows(self) -> int:
        return self.end - self.begin


def rows_of(op: kit.Op) -> InputRows:
    """The attributes of an operator of this kind."""
    assert isinstance(op.attributes, InputRows)
    return op.attributes


def _infer(op: kit.Operator[InputRows]) -> kit.TensorTypes:
    x, taken = op.x, op.attributes
    if not 0 <= taken.axis < len(taken.shape) or math.prod(taken.shape) != x.elements:
        raise ValueError(f"{x} has no rows along axis {taken.axis} of {list(taken.shape)}")
    if math.prod(taken.shape[: taken.axis]) != 1:
        raise ValueError(f"the rows of {list(taken.shape)} are several runs of bytes")
    if not 0 <= taken.begin < taken.end <= taken.shape[taken.axis]:
        raise ValueError(f"rows [{taken.begin}, {taken.end}) of {x}")
    shape = (*taken.shape[: taken.axis], taken.rows, *taken.shape[taken.axis + 1 :])
    return (kit.TensorType(shape, x.dtype),)


def _reference(op: kit.Operator[InputRows], inputs: kit.Inputs) -> kit.Arrays:
    taken = op.attributes
    image = inputs[0].reshape(taken.shape)
    return (np.take(image, range(taken.begin, taken.end), taken.axis),)


def _reads(op: kit.Operator[InputRows]) -> tuple[tuple[int, int], ...]:
    taken = op.attributes
    row_bytes = taken.row_elements * op.x.dtype.size_bytes
    return ((taken.begin * row_bytes, taken.end * row_bytes),)


def _axes(op: kit.Operator[InputRows]) -> tuple[kit.Axis, ...]:
    """The rows, in blocks that the caller brings one after the other."""
    taken = op.attributes

    def block(part: kit.Part) -> InputRows:
        begin = taken.begin + part.begin
        return replace(taken, begin=begin, end=begin + part.length)

    return (kit.Axis(taken.axis, (None,), block, once=True),)


def _select(op: kit.Operator[InputRows], core: kit.Core) -> kit.Kernel:
    taken, y = op.attributes, op.y
    arguments: dict[str, kit.Argument] = {
        "target": kit.Output(0),
        "source": kit.Input(0, taken.begin * taken.row_elements),
        "size_bytes": y.size_bytes,
    }
    return kit.Kernel(
        (kit.Call(MOVE, arguments),),
        _extents,
        find_terms=lambda: move_terms(y.size_bytes, y.size_bytes % 4 == 0, core),
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    source, size_bytes = touched.call.arguments["source"], touched.call["size_bytes"]
    assert isinstance(source, kit.Input)
    pointer = touched.inputs[source.index]
    assert pointer is not None
    begin = source.at * pointer.element_bytes
    return kit.Extents({0: kit.Extent(begin, begin + size_bytes)}, {0: kit.whole(size_bytes)})


def _sample(rng: np.random.Generator) -> kit.Graph:
    ahead = (1,) * int(rng.integers(2))
    shape = (*ahead, *(int(size) for size in rng.integers(1, 9, 3)))
    axis = len(ahead)
    begin = int(rng.integers(shape[axis]))
    end = int(rng.integers(begin, shape[axis])) + 1
    dtype, quantisation = kit.sample_type(rng)
    flat = rng.random() < 0.5
    x = kit.Tensor("x", (math.prod(shape),) if flat else shape, dtype, quantisation)
    return kit.sample(KIND, InputRows(shape, axis, begin, end), x, name="rows")


SPEC = kit.Form(
    quantised=kit.ALIKE,
    kind=KIND,
    attributes=InputRows,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    reads=_reads,
    axes=_axes,
    types=frozenset(kit.DType),
    made_by_passes=True,
    limits="any type; made by --stream-input, never read from a file",
)
