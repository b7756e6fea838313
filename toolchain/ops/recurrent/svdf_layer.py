"""An SVDF layer, whatever it computes in: operands, sizes, the bytes that it touches.

Each unit adds the results of `rank` filters. A filter is a feature filter, whose product with the
input is the newest value of its state, and a time filter over the last `memory` of these values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit

INPUT, FEATURES, TIME, BIAS, STATE = range(5)
OPERANDS: Mapping[str, kit.Argument] = MappingProxyType(
    {
        "input": kit.Input(INPUT),
        "features": kit.Input(FEATURES),
        "time": kit.Input(TIME),
        "bias": kit.Input(BIAS),
        "state": kit.Output(1),
        "output": kit.Output(0),
    }
)
"""The arguments of Thimble's kernels behind their params."""
Number = TypeVar("Number", np.float32, np.int64)


@dataclass(frozen=True)
class Svdf(kit.Attributes):
    """The results of `rank` filters are added to make one output."""

    rank: int


@dataclass(frozen=True)
class Sizes:
    """The sizes of a layer, as its kernels get them."""

    batches: int
    depth: int
    units: int
    rank: int
    memory: int

    @property
    def filters(self) -> int:
        return self.units * self.rank

    def extents(
        self, touched: kit.Touched, element_bytes: int, time_bytes: int, state_bytes: int
    ) -> kit.Extents:
        """From the bytes of an element of input, feature filters and output; of the time filters;
        and of the state. A bias has four.
        """
        past = self.filters * self.memory
        read = {
            INPUT: kit.whole(self.batches * self.depth, element_bytes),
            FEATURES: kit.whole(self.filters * self.depth, element_bytes),
            TIME: kit.whole(past, time_bytes),
        }
        if touched.has(BIAS):
            read[BIAS] = kit.whole(self.units, 4)
        output = kit.whole(self.batches * self.units, element_bytes)
        return kit.Extents(read, {0: output, 1: kit.whole(self.batches * past, state_bytes)})

    def terms(self, core: kit.Core, together: int = 1) -> kit.Terms:
        """How often loops over bytes run, `together` filters of features at a time."""
        width = 16 if core.mve else 4 if core.dsp else 1
        words, rest = divmod(self.depth, width)
        if core.mve:
            words, rest = words + bool(rest), 0
        groups, last = divmod(self.filters, together)
        pairs, filters = self.memory // 2, self.batches * self.filters
        return {
            "call": 1.0,
            "batch": self.batches,
            "group": self.batches * groups,
            "group word": self.batches * groups * words,
            "group rest": self.batches * groups * rest,
            "last": self.batches * last,
            "last word": self.batches * last * words,
            "last rest": self.batches * last * rest,
            "filter": filters,
            "past pair": filters * pairs,
            "past rest": filters * (self.memory % 2),
            "past word": filters * (self.memory // width),
            "unit": self.batches * self.units,
        }


def sizes_of(op: kit.Operator[Svdf]) -> Sizes:
    (batches, depth), units = op.input(INPUT).shape, op.y.shape[1]
    return Sizes(batches, depth, units, op.attributes.rank, op.input(TIME).shape[1])


def extents(
    touched: kit.Touched, element_bytes: int, time_bytes: int, state_bytes: int
) -> kit.Extents:
    """As `Sizes.extents`, by the sizes among a call's params."""
    sizes = Sizes(*touched.call.params("batches", "depth", "units", "rank", "memory"))
    return sizes.extents(touched, element_bytes, time_bytes, state_bytes)


def infer(op: kit.Operator[Svdf]) -> kit.TensorTypes:
    x, features, time, state = (op.input(i) for i in (INPUT, FEATURES, TIME, STATE))
    if len(x.shape) != 2 or len(features.shape) != 2 or len(time.shape) != 2:
        raise ValueError("input and filters must be matrices")
    batches, filters, memory = x.shape[0], features.shape[0], time.shape[1]
    if op.attributes.rank < 1 or filters % op.attributes.rank:
        raise ValueError(f"{filters} filters do not divide into ranks of {op.attributes.rank}")
    units = filters // op.attributes.rank
    if features.shape[1] != x.shape[1] or time.shape[0] != filters:
        raise ValueError(f"filters {features} and {time} do not fit input {x}")
    if op.given(BIAS) and op.input(BIAS).shape != (units,):
        raise ValueError(f"{op.input(BIAS)} has no value for each of {units} units")
    if state.shape != (batches, memory * filters):
        raise ValueError(f"state {state} is not {[batches, memory * filters]}")
    return (kit.TensorType((batches, units), x.dtype), kit.TensorType(state.shape, state.dtype))


def macs(op: kit.Operator[Svdf]) -> int:
    features, time = op.input(FEATURES), op.input(TIME)
    return op.input(INPUT).shape[0] * (features.elements + time.elements)


def moved(state: NDArray[Number], newest: NDArray[Number], memory: int) -> NDArray[Number]:
    """The state after a run, [batches, filters, memory]: a value of each filter goes, and `newest`
    [batches, filters] comes.
    """
    kept = state.reshape(*newest.shape, memory)
    return np.concatenate([kept[:, :, 1:], newest[:, :, None]], axis=2)


def check_present(node: kit.TfliteNode) -> None:
    """Raise what `node.unsupported` makes where anything but the bias is missing."""
    given = node.inputs
    if len(given) != 5 or any(given[i] is None for i in (INPUT, FEATURES, TIME, STATE)):
        raise node.unsupported("an input is missing")


def check_constant(node: kit.TfliteNode) -> None:
    """Raise what `node.constant` raises where a filter or the bias is not constant."""
    for index in (FEATURES, TIME, *((BIAS,) if node.inputs[BIAS] is not None else ())):
        node.constant(index)
