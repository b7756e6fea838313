"""Parts of the operators of TFLM's signal library."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from toolchain.ops import kit

TYPES = frozenset({kit.DType.INT16, kit.DType.INT32, kit.DType.UINT32, kit.DType.UINT64})
FRAMED = frozenset({kit.DType.BOOL, kit.DType.INT16})
MEMORIES = (("y_memory", "y_memory_next"), ("y_memory_", "y_memory__next"))
"""Names that the reader gives to two states of an operator with the output y, and to their next
values."""
INT16, FLOAT32 = 7, 0
"""The option T for these element types, by the schema's TensorType."""
LENGTHS = tuple(4 << n for n in range(13))
"""Samples of a transform."""
QUANTISED: kit.Quantised = kit.STORED
"""These operators know no scales."""
A = TypeVar("A", bound=kit.Attributes)


def vector(tensor: kit.Tensor, dtype: kit.DType, what: str) -> int:
    """The elements of a tensor of rank 1. Raises ValueError for another rank or type."""
    if len(tensor.shape) != 1 or tensor.dtype is not dtype:
        raise ValueError(f"{what} {tensor} is no {dtype.value} of rank 1")
    return tensor.shape[0]


def within(name: str, value: int, least: int, most: int) -> None:
    """Raise ValueError where an attribute is beyond its limits."""
    if not least <= value <= most:
        raise ValueError(f"its {name} is {value}, not within {least} to {most}")


def option(node: kit.TfliteNode, name: str) -> int:
    """An option of a custom operator. Raises AttributeError where the file lacks it."""
    return int(getattr(node.options, name))


def check_length(length: int, count: int) -> None:
    """Raise ValueError where a transform is not of a power of 2, or below `count` samples."""
    if length not in LENGTHS or count > length:
        raise ValueError(f"a transform of {length} for {count} samples: it is a power of 2 from 4")


def check_type(node: kit.TfliteNode) -> None:
    """Raise UnsupportedError where an operator's T is no int16 or float32 of its input."""
    tensor, code = node.inputs[0], option(node, "T")
    wanted = FLOAT32 if tensor is not None and tensor.dtype is kit.DType.FLOAT32 else INT16
    if code not in (INT16, FLOAT32):
        raise node.unsupported("its T is no int16 or float32", "use samples of one of these")
    if code != wanted:
        raise node.unsupported(
            "its T is not the type of its tensors",
            "the file was edited or is damaged: export it with one type of samples",
        )


def length_of(node: kit.TfliteNode) -> int:
    """The samples of a transform. Raises UnsupportedError as `check_type`."""
    check_type(node)
    return option(node, "fft_length")


def rows_of(shape: Sequence[int], inner: int = 1) -> int:
    """The product of all dimensions but the last `inner`."""
    return math.prod(shape[: len(shape) - inner])


def attributes_of(node: kit.TfliteNode, attributes: type[A]) -> A:
    """Attributes whose fields are the options. Raises AttributeError where the file lacks one."""
    return attributes(**{one.name: option(node, one.name) for one in fields(attributes)})


def binding(
    name: str,
    inputs: int,
    attributes: type[kit.Attributes],
    read_attributes: Callable[[kit.TfliteNode], kit.Attributes] | None = None,
    options: Callable[[Any], dict[str, int]] = vars,
    memories: Callable[[kit.TfliteNode], kit.Arrays] = lambda node: (),
) -> kit.TfliteBinding:
    """Reads and writes the custom operator `name`, whose inputs all stay inputs.

    Its options are the fields of `attributes`, unless `read_attributes` reads and `options` writes
    others. `memories` are as in `ReadOp`.
    """

    def read(node: kit.TfliteNode) -> kit.ReadOp:
        own = read_attributes(node) if read_attributes else attributes_of(node, attributes)
        return kit.ReadOp(own, tuple(range(inputs)), memories=memories(node))

    def write(op: kit.AnyOperator) -> kit.WrittenOp:
        return kit.WrittenOp(name, "", options(op.attributes), order=tuple(range(inputs)))

    return kit.TfliteBinding((name,), read, write)


def transform_binding(
    name: str, attributes: Callable[[int], kit.Attributes], dtype: int
) -> kit.TfliteBinding:
    """Reads and writes a transform of samples that the file calls `dtype`."""
    return binding(
        name,
        1,
        kit.Attributes,
        lambda node: attributes(length_of(node)),
        lambda own: {"T": dtype, "fft_length": own.length},
    )


def same_length(touched: kit.Touched, count: str, sizes: Sequence[int]) -> kit.Extents:
    """Operands of the call's `count` elements each: bytes of an element, the output's last."""
    elements = touched.call[count]
    *inputs, output = sizes
    read = {index: kit.whole(elements, size) for index, size in enumerate(inputs)}
    return kit.Extents(read, {0: kit.whole(elements, output)})


def some(rng: np.random.Generator, least: int, most: int) -> int:
    return int(rng.integers(least, most + 1))


def sample_kept(
    kind: str,
    attributes: kit.Attributes,
    x: kit.Tensor,
    *,
    firsts: Sequence[kit.Array],
    outputs: Sequence[str] = ("y",),
    name: str,
) -> kit.Graph:
    """A graph of one operator that keeps values from run to run, at first `firsts`."""
    states = [kit.State(*pair, first) for pair, first in zip(MEMORIES, firsts, strict=False)]
    kept = [
        kit.Tensor(state.input, state.initial.shape, kit.DType(state.initial.dtype.name))
        for state in states
    ]
    made = (*outputs, *(state.output for state in states))
    return kit.sample(kind, attributes, x, *kept, outputs=made, states=states, name=name)
