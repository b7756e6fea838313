"""What the operators of TFLM's signal library share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.kernel import Touched
from toolchain.ops.spec import (
    STORED,
    Array,
    Quantised,
    ReadOp,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

TYPES = frozenset({DType.INT16, DType.INT32, DType.UINT32, DType.UINT64})
QUANTISED: Quantised = STORED
"""These operators know no scales."""


def vector(tensor: Tensor, dtype: DType, what: str) -> int:
    """The elements of a tensor of rank 1. Raises ValueError for another rank or type."""
    if len(tensor.shape) != 1 or tensor.dtype is not dtype:
        raise ValueError(f"{what} {tensor} is no {dtype.value} of rank 1")
    return tensor.shape[0]


def within(name: str, value: int, least: int, most: int) -> None:
    """Raise ValueError where an attribute is beyond its limits."""
    if not least <= value <= most:
        raise ValueError(f"its {name} is {value}, not within {least} to {most}")


def option(node: TfliteNode, name: str) -> int:
    """An option of a custom operator. Raises AttributeError where the file lacks it."""
    return int(getattr(node.options, name))


def binding(
    name: str,
    inputs: int,
    attributes: Callable[[TfliteNode], Attributes],
    options: Callable[[Any], dict[str, int]] = vars,
    memories: Callable[[TfliteNode], tuple[Array, ...]] = lambda node: (),
) -> TfliteBinding:
    """Reads and writes the custom operator `name`, whose inputs all stay inputs. `memories` are as
    in `ReadOp`.
    """

    def read(node: TfliteNode) -> ReadOp:
        return ReadOp(attributes(node), tuple(range(inputs)), memories=memories(node))

    def write(op: Op, graph: Graph) -> WrittenOp:
        return WrittenOp(name, "", options(op.attributes), order=tuple(range(inputs)))

    return TfliteBinding((name,), read, write)


def same_length(touched: Touched, count: str, sizes: Sequence[int]) -> Extents:
    """Operands of the call's `count` elements each: bytes of an element, the output's last."""
    elements = touched.call[count]
    *inputs, output = sizes
    read = {index: whole(elements, size) for index, size in enumerate(inputs)}
    return Extents(read, {0: whole(elements, output)})


def single(
    op: Op, tensors: Sequence[Tensor], inputs: Sequence[str], outputs: Sequence[str]
) -> Graph:
    """A graph of one operator, for samples."""
    return Graph.build("sample", tensors, [op], inputs, outputs)


def some(rng: np.random.Generator, least: int, most: int) -> int:
    return int(rng.integers(least, most + 1))
