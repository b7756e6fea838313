"""ONE_HOT, MATRIX_DIAG and MATRIX_SET_DIAG, which become a choice by a mask.

The mask of ONE_HOT is computed: which number of a row is the index. The mask of the others is a
constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.tflite.file import FileOp
from toolchain.ir import Attributes, DType, Op, Quantisation, Tensor
from toolchain.ir.names import Names
from toolchain.ops.axes import resolve_axis
from toolchain.ops.elementwise.compare import Compare, Relation
from toolchain.ops.elementwise.select import Select
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.spec import Array

_INDICES = (DType.INT32, DType.INT64)
_MATRIX = (-2, -1)
LARGEST_ELEMENTS = 1 << 24
"""Above it a shape is no network's."""


@dataclass
class Chosen:
    """The operators, the tensors that they add, and the output's shape."""

    name: str
    names: Names
    ops: list[Op] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    shape: tuple[int, ...] = ()

    def constant(self, stem: str, data: Array, like: Tensor | None = None) -> Tensor:
        """A constant, of the type and scale of `like` if given."""
        dtype = DType(data.dtype.name) if like is None else like.dtype
        q = None if like is None else like.quantisation
        return self._tensor(stem, np.asarray(data, dtype.numpy).shape, dtype, q, data)

    def operator(
        self,
        kind: str,
        attributes: Attributes,
        inputs: Sequence[Tensor],
        shape: tuple[int, ...],
        like: Tensor | None = None,
    ) -> Tensor:
        """An operator's output: of `like`'s type and scale, or bool."""
        dtype, q = (DType.BOOL, None) if like is None else (like.dtype, like.quantisation)
        made = self._tensor(kind, shape, dtype, q)
        names = tuple(tensor.name for tensor in inputs)
        self.ops.append(Op(kind, f"{self.name}_{len(self.ops)}", names, (made.name,), attributes))
        return made

    def end(self, mask: Tensor, yes: Tensor, no: Tensor, y: Tensor) -> None:
        """`yes` where the mask holds, else `no`."""
        shapes = (mask.shape, yes.shape, no.shape)
        self.shape = tuple(int(size) for size in np.broadcast_shapes(*shapes))
        self.into(y, "select", Select(), (mask, yes, no))

    def into(self, y: Tensor, kind: str, attributes: Attributes, inputs: Sequence[Tensor]) -> None:
        """An operator whose output is one of the file's."""
        names = tuple(tensor.name for tensor in inputs)
        self.ops.append(Op(kind, f"{self.name}_{len(self.ops)}", names, (y.name,), attributes))

    def _tensor(
        self,
        stem: str,
        shape: tuple[int, ...],
        dtype: DType,
        q: Quantisation | None,
        data: Array | None = None,
    ) -> Tensor:
        name = self.names.fresh(f"{self.name}_{stem}")
        constant = None if data is None else np.asarray(data, dtype.numpy)
        self.tensors.append(Tensor(name, shape, dtype, q, constant))
        return self.tensors[-1]


def _one_hot(op: FileOp, inputs: Sequence[Tensor], y: Tensor, made: Chosen) -> None:
    indices, depth, on, off = inputs
    if depth.constant is None or depth.elements != 1:
        raise RefusedError("its depth is computed at run time", "convert with a constant depth")
    if indices.dtype not in _INDICES:
        raise RefusedError(f"its indices are {indices.dtype.value}", "cast them to int32")
    if on.elements != 1 or off.elements != 1 or on.dtype is not y.dtype or off.dtype is not y.dtype:
        raise InputError(f"{op} puts {on} and {off} into {y}")
    count, rank = int(depth.constant.reshape(())), len(indices.shape) + 1
    if not 0 < count * indices.elements <= LARGEST_ELEMENTS:
        raise InputError(f"{op} has the depth {count}")
    axis = resolve_axis(int(op.needed_options.axis), rank)
    places = np.arange(count, dtype=indices.dtype.numpy)
    numbers = made.constant("numbers", places.reshape((count, *[1] * (rank - 1 - axis))))
    shape = (*indices.shape[:axis], 1, *indices.shape[axis:])
    columns = made.operator("reshape", Reshape(shape), (indices,), shape, indices)
    whole = (*indices.shape[:axis], count, *indices.shape[axis:])
    mask = made.operator("compare", Compare(Relation.EQUAL), (columns, numbers), whole)
    made.end(mask, on, off, y)


def _matrix_diag(op: FileOp, inputs: Sequence[Tensor], y: Tensor, made: Chosen) -> None:
    (diagonal,) = inputs
    if not diagonal.shape:
        raise InputError(f"{op} puts {diagonal} into {y}")
    count = diagonal.shape[-1]
    if diagonal.elements * count > LARGEST_ELEMENTS:
        raise InputError(f"{op} makes matrices of {diagonal}")
    zero = made.constant("zero", np.zeros(()), y)
    _on_diagonal(diagonal, zero, (count, count), y, made)


def _matrix_set_diag(op: FileOp, inputs: Sequence[Tensor], y: Tensor, made: Chosen) -> None:
    matrix, diagonal = inputs
    if len(matrix.shape) < len(_MATRIX):
        raise InputError(f"{op} puts {diagonal} into {matrix}")
    rows, columns = (matrix.shape[axis] for axis in _MATRIX)
    if diagonal.shape != (*matrix.shape[:-2], min(rows, columns)):
        raise InputError(f"{op} puts {diagonal} into {matrix}")
    _on_diagonal(diagonal, matrix, (rows, columns), y, made)


def _on_diagonal(
    diagonal: Tensor, other: Tensor, sizes: tuple[int, int], y: Tensor, made: Chosen
) -> None:
    """Put `diagonal` on the diagonal of each matrix, and `other` elsewhere."""
    rows, columns = sizes
    mask = made.constant("mask", np.eye(rows, columns, dtype=np.bool_))
    side = (rows, 1) if rows <= columns else (1, columns)
    shape = (*diagonal.shape[:-1], *side)
    lines = made.operator("reshape", Reshape(shape), (diagonal,), shape, diagonal)
    made.end(mask, lines, other, y)


_RULES: Mapping[str, tuple[int, Callable[[FileOp, Sequence[Tensor], Tensor, Chosen], None]]] = (
    MappingProxyType(
        {
            "MATRIX_DIAG": (1, _matrix_diag),
            "MATRIX_SET_DIAG": (2, _matrix_set_diag),
            "ONE_HOT": (4, _one_hot),
        }
    )
)
OPERATORS = tuple(_RULES)


def chosen(op: FileOp, inputs: Sequence[Tensor], y: Tensor, names: Names) -> tuple[Chosen, Tensor]:
    """The operators that it becomes, and its output. `names`: gives names to the tensors that it
    adds.

    Raises InputError where its shapes contradict each other, RefusedError for a depth or an index
    type that has no form.
    """
    count, rule = _RULES[op.code]
    if len(inputs) != count:
        raise InputError(f"{op} has {len(inputs)} inputs")
    made = Chosen(f"{op.code.lower()}_{op.index}", names)
    rule(op, inputs, y, made)
    if math.prod(made.shape) > LARGEST_ELEMENTS:
        raise InputError(f"{op} makes the shape {list(made.shape)}")
    return made, replace(y, shape=made.shape)
