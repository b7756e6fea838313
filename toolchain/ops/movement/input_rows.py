"""InputRows: rows of an input that the caller hands over a few at a time, copied into the arena.

The input takes no RAM then: only what this operator makes of it does. Splitting makes one operator
for each block of rows; together they copy each row once, in order. Only the planner makes this
operator (`planning.rows`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.extents import Extent, Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Argument, Call, Input, Kernel, Output, Touched
from toolchain.ops.movement.copies import sample_type
from toolchain.ops.movement.kernels import MOVE, move_terms
from toolchain.ops.spec import ALIKE, Array, Axis, Part, TensorType

KIND = "input_rows"


@dataclass(frozen=True)
class InputRows(Attributes):
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


def rows_of(op: Op) -> InputRows:
    """The attributes of an operator of this kind."""
    assert isinstance(op.attributes, InputRows)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, taken = graph.input(op, 0), rows_of(op)
    if not 0 <= taken.axis < len(taken.shape) or math.prod(taken.shape) != x.elements:
        raise ValueError(f"{x} has no rows along axis {taken.axis} of {list(taken.shape)}")
    if math.prod(taken.shape[: taken.axis]) != 1:
        raise ValueError(f"the rows of {list(taken.shape)} are several runs of bytes")
    if not 0 <= taken.begin < taken.end <= taken.shape[taken.axis]:
        raise ValueError(f"rows [{taken.begin}, {taken.end}) of {x}")
    shape = (*taken.shape[: taken.axis], taken.rows, *taken.shape[taken.axis + 1 :])
    return (TensorType(shape, x.dtype),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    taken = rows_of(op)
    image = inputs[0].reshape(taken.shape)
    return (np.take(image, range(taken.begin, taken.end), taken.axis),)


def _reads(op: Op, graph: Graph) -> tuple[tuple[int, int], ...]:
    taken = rows_of(op)
    row_bytes = taken.row_elements * graph.input(op, 0).dtype.size_bytes
    return ((taken.begin * row_bytes, taken.end * row_bytes),)


def _axes(op: Op, graph: Graph) -> tuple[Axis, ...]:
    """The rows, in blocks that the caller brings one after the other."""
    taken = rows_of(op)

    def block(part: Part) -> InputRows:
        begin = taken.begin + part.begin
        return replace(taken, begin=begin, end=begin + part.length)

    return (Axis(taken.axis, (None,), block, once=True),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    taken, y = rows_of(op), graph.output(op)
    arguments: dict[str, Argument] = {
        "target": Output(0),
        "source": Input(0, taken.begin * taken.row_elements),
        "size_bytes": y.size_bytes,
    }
    return Kernel(
        (Call(MOVE, arguments),),
        _extents,
        find_terms=lambda: move_terms(y.size_bytes, y.size_bytes % 4 == 0, core),
    )


def _extents(touched: Touched) -> Extents:
    source, size_bytes = touched.call.arguments["source"], touched.call["size_bytes"]
    assert isinstance(source, Input)
    pointer = touched.inputs[source.index]
    assert pointer is not None
    begin = source.at * pointer.element_bytes
    return Extents({0: Extent(begin, begin + size_bytes)}, {0: whole(size_bytes)})


def _sample(rng: np.random.Generator) -> Graph:
    ahead = (1,) * int(rng.integers(2))
    shape = (*ahead, *(int(size) for size in rng.integers(1, 9, 3)))
    axis = len(ahead)
    begin = int(rng.integers(shape[axis]))
    end = int(rng.integers(begin, shape[axis])) + 1
    dtype, quantisation = sample_type(rng)
    flat = rng.random() < 0.5
    x = Tensor("x", (math.prod(shape),) if flat else shape, dtype, quantisation)
    y = Tensor("y", (*ahead, end - begin, *shape[axis + 1 :]), dtype, quantisation)
    op = Op(KIND, "rows", ("x",), ("y",), InputRows(shape, axis, begin, end))
    return Graph.build("sample", [x, y], [op], ["x"], ["y"])


SPEC = OldForm(
    quantised=ALIKE,
    kind=KIND,
    attributes=InputRows,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    reads=_reads,
    axes=_axes,
    types=frozenset(DType),
    made_by_passes=True,
    limits="any type; made by --stream-input, never read from a file",
)
