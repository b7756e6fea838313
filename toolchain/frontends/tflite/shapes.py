"""Shape arithmetic, which converters write to flatten a tensor whose batch size was undefined.

SHAPE, STRIDED_SLICE, PACK and similar operators compute a shape at run time. With the batch fixed
at 1 every shape is known, so these operators are computed while reading, and none remains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.frontends.tflite.file import FileOp
from toolchain.ir import DType, Tensor
from toolchain.ops.movement.reshape import squeezed

_INTEGERS = (DType.INT32, DType.INT64)
_LARGEST_ELEMENTS = 256

Integers = NDArray[Any]
Rule = Callable[[FileOp, Sequence[Integers]], Integers]


def _strided_slice(op: FileOp, given: Sequence[Integers]) -> Integers:
    data, begins, ends, strides = given
    index: list[slice | int] = []
    for axis, (begin, end, stride) in enumerate(zip(begins, ends, strides, strict=True)):
        bit = 1 << axis
        if op.needed_options.shrinkAxisMask & bit:
            index.append(int(begin))
            continue
        first = None if op.needed_options.beginMask & bit else int(begin)
        last = None if op.needed_options.endMask & bit else int(end)
        index.append(slice(first, last, int(stride)))
    return data[tuple(index)]


def _gather(op: FileOp, given: Sequence[Integers]) -> Integers:
    taken: Integers = np.take(given[0], given[1], axis=int(op.needed_options.axis))
    return taken


def _product(op: FileOp, given: Sequence[Integers]) -> Integers:
    axes = tuple(int(axis) for axis in given[1].reshape(-1))
    return np.asarray(np.prod(given[0], axis=axes, keepdims=bool(op.needed_options.keepDims)))


_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "ADD": lambda op, given: given[0] + given[1],
        "CAST": lambda op, given: given[0],
        "CONCATENATION": lambda op, given: np.concatenate(given, axis=int(op.needed_options.axis)),
        "EXPAND_DIMS": lambda op, given: np.expand_dims(given[0], int(given[1].reshape(-1)[0])),
        "GATHER": _gather,
        "MAXIMUM": lambda op, given: np.maximum(given[0], given[1]),
        "MINIMUM": lambda op, given: np.minimum(given[0], given[1]),
        "MUL": lambda op, given: given[0] * given[1],
        "PACK": lambda op, given: np.stack(given, axis=int(op.needed_options.axis)),
        "REDUCE_PROD": _product,
        "RESHAPE": lambda op, given: given[0].reshape(tuple(given[1].reshape(-1))),
        "SQUEEZE": lambda op, given: squeezed(given[0], op.options),
        "STRIDED_SLICE": _strided_slice,
        "SUB": lambda op, given: given[0] - given[1],
    }
)


def folded(op: FileOp, inputs: Sequence[Tensor | None], output: Tensor | None) -> Integers | None:
    """The value of the operator's output if the operator only computes with shapes; otherwise None.

    Raises what NumPy raises if the operator contradicts itself.
    """
    present = [tensor for tensor in inputs if tensor is not None]
    if output is None or output.dtype not in _INTEGERS or len(present) != len(inputs):
        return None
    if op.code == "SHAPE" and len(present) == 1:
        return np.array(present[0].shape, output.dtype.numpy)
    rule = _RULES.get(op.code)
    if rule is None or not present:
        return None
    constants = [tensor.constant for tensor in present if tensor.dtype in _INTEGERS]
    given = [data for data in constants if data is not None and data.size <= _LARGEST_ELEMENTS]
    if len(given) != len(present):
        return None
    return np.asarray(rule(op, given)).astype(output.dtype.numpy)
