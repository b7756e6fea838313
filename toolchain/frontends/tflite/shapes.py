"""Operators of which all inputs are known while reading, above all shape arithmetic.

SHAPE, STRIDED_SLICE, PACK and similar operators compute a shape at run time. With the batch fixed
at 1 every shape is known, so these operators are computed while reading, and none remains. Counters
and conditions of loops are computed, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.frontends.tflite.file import FileOp
from toolchain.ir import DType, Tensor
from toolchain.ops.elementwise.compare import RELATIONS
from toolchain.ops.elementwise.functions import BINARY, UNARY
from toolchain.ops.elementwise.kinds import float_values
from toolchain.ops.elementwise.rows import Binary, Unary
from toolchain.ops.movement.reshape import squeezed
from toolchain.ops.movement.slicing import selected

TYPES = frozenset({DType.INT32, DType.INT64, DType.BOOL, DType.FLOAT32})
"""Element types of values that are computed while reading."""
LARGEST_ELEMENTS = 1 << 16
"""Above it an operator is left to its kernel."""

Values = NDArray[Any]
Rule = Callable[[FileOp, Sequence[Values]], Values | Sequence[Values] | None]


def _strided_slice(op: FileOp, given: Sequence[Values]) -> Values:
    data, *limits = given
    whole = ([int(value) for value in limit.reshape(-1)] for limit in limits)
    taken = selected(op.needed_options, data.shape, whole)
    parts = []
    for begin, count, stride in zip(taken.begin, taken.sizes, taken.strides, strict=True):
        end = begin + count * stride
        parts.append(slice(begin, None if end < 0 else end, stride))
    return np.reshape(data[tuple(parts)] if all(taken.sizes) else data[:0], taken.shape)


def _slice(op: FileOp, given: Sequence[Values]) -> Values:
    data, begins, sizes = given
    ends = [
        size if count == -1 else begin + count
        for begin, count, size in zip(begins, sizes, data.shape, strict=True)
    ]
    if any(end > size for end, size in zip(ends, data.shape, strict=True)):
        raise ValueError(f"it takes elements to {[int(e) for e in ends]} of {list(data.shape)}")
    return np.asarray(data[tuple(slice(b, e) for b, e in zip(begins, ends, strict=True))])


def _gather(op: FileOp, given: Sequence[Values]) -> Values | None:
    if op.needed_options.batchDims:
        return None
    return np.asarray(np.take(given[0], given[1], axis=int(op.needed_options.axis)))


def _gather_nd(op: FileOp, given: Sequence[Values]) -> Values:
    data, places = given
    return np.asarray(data[tuple(np.moveaxis(places, -1, 0))])


def _scatter_nd(op: FileOp, given: Sequence[Values]) -> Values | None:
    places, updates, shape = given
    if not 0 <= np.prod(shape, dtype=float) <= LARGEST_ELEMENTS:
        return None
    result = np.zeros(tuple(shape), updates.dtype)
    np.add.at(result, tuple(np.moveaxis(places, -1, 0)), updates)
    return result


def _reduced(function: Callable[..., Any]) -> Rule:
    def rule(op: FileOp, given: Sequence[Values]) -> Values:
        axes = tuple(int(axis) for axis in given[1].reshape(-1))
        return np.asarray(function(given[0], axis=axes, keepdims=bool(op.needed_options.keepDims)))

    return rule


def _product(data: Values, **how: Any) -> Values:
    """The product in the type of its data, in which integers wrap."""
    return np.asarray(np.prod(data, dtype=data.dtype, **how))


def _of_one(row: Unary) -> Rule:
    """A function of the table, of integers or as its C computes floats."""

    def rule(op: FileOp, given: Sequence[Values]) -> Values:
        function = row.formula.own
        if row.integers is not None and given[0].dtype != np.float32:
            function = row.integers.apply
        assert function is not None
        return np.asarray(function(given[0]))

    return rule


def _of_two(row: Binary) -> Rule:
    """As `_of_one`. NumPy's own functions of floats have another sign of zero, or round once less.

    None where a fused activation, a division by 0, or what is not finite, leaves it to the kernel.
    """
    rule_of_integers = row.integers
    assert rule_of_integers is not None
    integers, limited = rule_of_integers.apply, rule_of_integers.limited

    def rule(op: FileOp, given: Sequence[Values]) -> Values | None:
        one, two = given[0], given[1]
        if getattr(op.options, "fusedActivationFunction", "NONE") != "NONE":
            return None
        if limited is not None and not limited.holds(two):
            return None
        with np.errstate(all="ignore"):
            of_float = one.dtype == two.dtype == np.float32
            value = float_values(row, one, two) if of_float else np.asarray(integers(one, two))
        return value if np.isfinite(value).all() else None

    return rule


def _pair(function: Callable[[Values, Values], Values]) -> Rule:
    return lambda op, given: function(given[0], given[1])


def _fill(op: FileOp, given: Sequence[Values]) -> Values | None:
    dims, value = given
    if not 0 <= np.prod(dims, dtype=float) <= LARGEST_ELEMENTS:
        return None
    return np.full(tuple(dims), value)


def _range(op: FileOp, given: Sequence[Values]) -> Values | None:
    """RANGE. Floats are summed up from the first one, as LiteRT does."""
    start, limit, delta = (value.reshape(())[()] for value in given)
    if delta == 0:
        raise ValueError("its step is 0")
    count = max(0, int(np.ceil((float(limit) - float(start)) / float(delta))))
    if count > LARGEST_ELEMENTS:
        return None
    steps = np.full(count, delta)
    steps[:1] = start
    return np.cumsum(steps, dtype=steps.dtype)


def _broadcast(op: FileOp, given: Sequence[Values]) -> Values | None:
    shape = np.broadcast_shapes(given[0].shape, tuple(int(size) for size in given[1]))
    return np.broadcast_to(given[0], shape) if np.prod(shape) <= LARGEST_ELEMENTS else None


def _cast(op: FileOp, given: Sequence[Values]) -> Values | None:
    """CAST, towards zero. None where a float lies outside of the integers, which is not defined."""
    value = given[0]
    inside = value.dtype.kind != "f" or bool((np.abs(value) < 2.0**31).all())
    return value if inside else None


def _unpacked(op: FileOp, given: Sequence[Values]) -> Sequence[Values]:
    axis = int(op.needed_options.axis)
    return [np.take(given[0], index, axis) for index in range(given[0].shape[axis])]


def _split(op: FileOp, given: Sequence[Values]) -> Sequence[Values]:
    axis, data = given
    return np.split(data, int(op.needed_options.numSplits), int(axis.reshape(())))


_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "BROADCAST_ARGS": lambda op, given: np.array(
            np.broadcast_shapes(*(tuple(int(size) for size in shape) for shape in given)),
            given[0].dtype,
        ),
        "BROADCAST_TO": _broadcast,
        "CAST": _cast,
        "CONCATENATION": lambda op, given: np.concatenate(given, axis=int(op.needed_options.axis)),
        "EXPAND_DIMS": lambda op, given: np.expand_dims(given[0], int(given[1].reshape(-1)[0])),
        "FILL": _fill,
        "GATHER": _gather,
        "GATHER_ND": _gather_nd,
        "LOGICAL_AND": _pair(np.logical_and),
        "LOGICAL_NOT": lambda op, given: np.logical_not(given[0]),
        "LOGICAL_OR": _pair(np.logical_or),
        "PACK": lambda op, given: np.stack(given, axis=int(op.needed_options.axis)),
        "RANGE": _range,
        "REDUCE_ALL": _reduced(np.all),
        "REDUCE_ANY": _reduced(np.any),
        "REDUCE_MAX": _reduced(np.max),
        "REDUCE_MIN": _reduced(np.min),
        "REDUCE_PROD": _reduced(_product),
        "RESHAPE": lambda op, given: given[0].reshape(tuple(given[1].reshape(-1))),
        "REVERSE_V2": lambda op, given: np.flip(given[0], tuple(given[1].reshape(-1))),
        "SCATTER_ND": _scatter_nd,
        "SELECT_V2": lambda op, given: np.where(*given),
        "SLICE": _slice,
        "SPLIT": _split,
        "SQUEEZE": lambda op, given: squeezed(given[0], op.options),
        "STRIDED_SLICE": _strided_slice,
        "TILE": lambda op, given: np.tile(given[0], given[1]),
        "TRANSPOSE": lambda op, given: given[0].transpose(tuple(given[1])),
        "UNPACK": _unpacked,
        **{relation.name: _pair(function) for relation, function in RELATIONS.items()},
        **{row.tflite: _of_one(row) for row in UNARY.values() if row.folds},
        **{row.tflite: _of_two(row) for row in BINARY.values() if row.folds},
    }
)
FOLDED = tuple(_RULES)
"""Operators that are computed while reading where all that they read is constant."""
_LIMITED = ("SLICE", "STRIDED_SLICE")
"""Operators whose first operand's shape tells whether anything is taken."""
OPERATORS = (
    "BROADCAST_ARGS",
    "RANGE",
    "RANK",
    "SHAPE",
    "ZEROS_LIKE",
)
"""Operators that reading removes in networks whose shapes are known."""


def folded(
    op: FileOp, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor | None]
) -> tuple[Values, ...] | None:
    """The values of the operator's outputs if all that it reads is known; otherwise None.

    Values are integers, booleans and floats without scales. A tensor without elements may be of any
    type, and is known even where it is taken from unknown data. Raises what NumPy raises if the
    operator contradicts itself.
    """
    present = [tensor for tensor in inputs if tensor is not None]
    types = [None if tensor is None else tensor.dtype for tensor in outputs]
    if not types or None in types or len(present) != len(inputs):
        return None
    computed = _computed(op, present)
    if computed is None:
        return None
    values = computed if isinstance(computed, list | tuple) else (computed,)
    if len(values) != len(types):
        raise ValueError(f"it has {len(types)} outputs, where its inputs make {len(values)}")
    if not TYPES.issuperset(types) and any(np.size(value) for value in values):
        return None
    made = tuple(np.asarray(value) for value in values)
    return tuple(_declared(op, *pair) for pair in zip(made, outputs, strict=True))


def _declared(op: FileOp, value: Values, output: Tensor | None) -> Values:
    """The value in its output's declared type: only CAST converts. An operator that moves bytes has
    its operand's type, one that compares or tests bool. Raises ValueError elsewhere.
    """
    assert output is not None
    if value.dtype != output.dtype.numpy and op.code != "CAST":
        raise ValueError(
            f"its output {output.name!r} is declared as {output.dtype.value}, and it makes "
            f"{value.dtype.name}; declare it as that, or put a CAST behind it"
        )
    return value.astype(output.dtype.numpy)


def _computed(op: FileOp, present: Sequence[Tensor]) -> Values | Sequence[Values] | None:
    if op.code in ("RANK", "SHAPE", "ZEROS_LIKE") and len(present) == 1:
        shape = present[0].shape
        if op.code == "ZEROS_LIKE":
            return np.zeros(shape, present[0].dtype.numpy)
        wide = op.code == "SHAPE" and getattr(op.options, "outType", "") == "INT64"
        dtype = np.int64 if wide else np.int32
        return np.array(shape if op.code == "SHAPE" else len(shape), dtype)
    rule = _RULES.get(op.code)
    if rule is None or not present:
        return None
    first, *others = (_known(tensor) for tensor in present)
    taken_from = first is None and op.code in _LIMITED
    if taken_from:
        first = np.broadcast_to(np.zeros((), present[0].dtype.numpy), present[0].shape)
    given = [value for value in (first, *others) if value is not None]
    if len(given) != len(present):
        return None
    values = rule(op, given)
    return None if taken_from and (values is None or np.size(values)) else values


def _known(tensor: Tensor) -> Values | None:
    """A constant's values, if rules compute with its type and size; None otherwise."""
    data = tensor.constant
    if data is None or not data.size:
        return data
    return data if tensor.dtype in TYPES and data.size <= LARGEST_ELEMENTS else None
