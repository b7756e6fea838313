"""Layers of TFLite that walk over a sequence: its sizes, the order of its steps, the bytes of its
rows; and what a cell computes in float32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic import float_math

Number = TypeVar("Number", np.float32, np.int64)


@dataclass(frozen=True)
class Sequential(kit.Attributes):
    """`time_major`: the input is [steps, batches, inputs], else [batches, steps, inputs]."""

    time_major: bool = False


@dataclass(frozen=True)
class Walk:
    """The sizes of a layer with so many `units`. `backwards`: the last step comes first."""

    batches: int
    steps: int
    inputs: int
    units: int
    time_major: bool
    backwards: bool = False

    @property
    def members(self) -> dict[str, kit.Argument]:
        """Members of a kernel's params. Row (batch, step) is number batch * batch_stride + step *
        step_stride.
        """
        return {
            "batches": self.batches,
            "steps": self.steps,
            "inputs": self.inputs,
            "units": self.units,
            "batch_stride": 1 if self.time_major else self.steps,
            "step_stride": self.batches if self.time_major else 1,
        }

    def split(self, x: NDArray[Number]) -> list[NDArray[Number]]:
        """The rows [batches, inputs] of each step, in the order in which they are computed."""
        shape = (self.steps, self.batches) if self.time_major else (self.batches, self.steps)
        steps = list(np.moveaxis(x.reshape(*shape, self.inputs), 0 if self.time_major else 1, 0))
        return steps[::-1] if self.backwards else steps

    def joined(self, rows: Sequence[kit.Array]) -> kit.Array:
        """The output, of the rows [batches, units] in the order in which they were computed."""
        return np.stack(rows[::-1] if self.backwards else rows, axis=0 if self.time_major else 1)

    def macs(self, gates: int) -> int:
        """Multiply-accumulates of input and hidden state with the weights of so many gates."""
        return self.batches * self.steps * gates * self.units * (self.inputs + self.units)


def walk_of(op: kit.Operator[Sequential], hidden: int, *, backwards: bool = False) -> Walk:
    """The walk of a `Sequential` operator whose hidden state is operand `hidden`. An input without
    steps has one.
    """
    *rows, inputs = op.input(0).shape
    first, second = rows if len(rows) == 2 else (rows[0], 1)
    time_major = op.attributes.time_major
    swapped = time_major and len(rows) == 2
    batches, steps = (second, first) if swapped else (first, second)
    units = op.input(hidden).shape[-1]
    return Walk(batches, steps, inputs, units, time_major, backwards)


def check_shapes(op: kit.AnyOperator, wanted: Mapping[int, tuple[int, ...]]) -> None:
    """Raise ValueError where an input has another shape than its index wants; it may be absent."""
    for index, shape in wanted.items():
        tensor = op.given(index)
        if tensor is not None and tensor.shape != shape:
            raise ValueError(f"{tensor} is not {list(shape)}")


def check_types(node: kit.TfliteNode, wanted: Mapping[int, kit.DType]) -> None:
    """Raise UnsupportedError where an input is of another type than its index wants; it may be
    absent.
    """
    for index, dtype in wanted.items():
        tensor = node.inputs[index]
        if tensor is not None and tensor.dtype is not dtype:
            raise node.unsupported(
                f"tensor {tensor.name!r} is {tensor.dtype.value}, not {dtype.value}",
                "quantise the model fully to int8",
            )


def row_extents(
    call: kit.Call, element_bytes: int, *state_bytes: int
) -> tuple[dict[int, kit.Extent], dict[int, kit.Extent]]:
    """Input 0 and the outputs (the rows, then the states) of a call with `Walk.members` among its
    params, from the widths of their elements.
    """
    batches, steps, inputs, units = call.params("batches", "steps", "inputs", "units")
    rows = (batches - 1) * call["params.batch_stride"] + 1
    rows += (steps - 1) * call["params.step_stride"]

    def extent(width: int) -> kit.Extent:
        count = element_bytes * width
        return kit.Extent(0, rows * count, touched=batches * steps * count)

    states = {1 + i: kit.whole(batches * units, width) for i, width in enumerate(state_bytes)}
    return {0: extent(inputs)}, {0: extent(units), **states}


def products(
    weights: kit.Float32, rows: kit.Float32, start: kit.Float32 | None = None
) -> kit.Float32:
    """[batches, units] sums in float32, added to `start` in the order of the depth."""
    first = np.zeros(len(weights), np.float32) if start is None else start
    total = np.broadcast_to(first, (len(rows), len(weights))).astype(np.float32)
    for place in range(weights.shape[1]):
        total = total + weights[:, place] * rows[:, place : place + 1]
    return total


def lstm_cell(
    gates: Sequence[kit.Float32], cell: kit.Float32, clip: float = 0.0
) -> tuple[kit.Float32, kit.Float32]:
    """The hidden and the cell state after a step, from the sums of the gates of input, forget, cell
    and output. A `clip` of 0 is none.
    """
    into, forget, candidate, output = gates
    kept = float_math.logistic(forget) * cell
    cell = kept + float_math.logistic(into) * float_math.tanh(candidate)
    if clip > 0:
        cell = np.clip(cell, -np.float32(clip), np.float32(clip))
    return float_math.logistic(output) * float_math.tanh(cell), cell
