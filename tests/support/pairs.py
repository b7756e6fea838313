"""Operators of two operands, of every kind that has them, on operands of any two shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from enum import Enum
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import Attributes, DType, Graph, Op
from toolchain.ir.verify import InvalidGraphError
from toolchain.ops import forms
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.check import check
from toolchain.ops.elementwise.integers import Pow
from toolchain.ops.forms import Form

_SMALLEST, _TINY = 2.0**-149, 2.0**-126
_LARGEST = float(np.finfo(np.float32).max)
_SIZES = (
    *(0.0, _SMALLEST, 1e-40, _TINY, 1e-30, 0.25, 0.5, 1 - 2.0**-24, 1.0, 1 + 2.0**-23, 1.5, 2.0),
    *(2.5, 3.0, 7.0, 10.0, 127.0, 150.0, 2.0**23 + 1, 2.0**24 - 1, 2.0**24, 2.0**31, 1e30),
    *(_LARGEST, np.inf),
)
SPECIALS = np.array([sign * size for size in _SIZES for sign in (1.0, -1.0)] + [np.nan], np.float32)
"""Zeros of both signs, numbers below the normal ones, odd and even whole numbers, infinities, NaN;
no positive size but it is beside its negative."""

Shape = tuple[int, ...]


def of_two(spec: Form[Any], dtype: DType) -> bool:
    """Whether a form computes element by element from two operands of the type."""
    graph = spec.sample(np.random.default_rng(0))
    op = graph.ops[0]
    if len(op.inputs) != 2 or len(op.outputs) != 1 or not all(op.inputs):
        return False
    if any(graph.input(op, place).dtype is not dtype for place in (0, 1)):
        return False
    try:
        made = pair(spec, op.attributes, (5,), (5,))
        check(made)
    except (InvalidGraphError, ValueError):
        return False
    return not made.tensors["b"].is_constant


def pair(spec: Form[Any], attributes: Attributes, one: Shape, two: Shape) -> Graph:
    """The form on inputs 'a' and 'b' of these shapes, typed and quantised as those of a sample."""
    graph = spec.sample(np.random.default_rng(0))
    op = graph.ops[0]
    if isinstance(attributes, Pow):
        attributes = Pow.of(one, two)
    try:
        shape = tuple(np.broadcast_shapes(one, two))
    except ValueError:
        shape = one
    ends = zip("aby", (*op.inputs, *op.outputs), (one, two, shape), strict=True)
    tensors = [
        replace(graph.tensors[old], name=name, shape=own, constant=None) for name, old, own in ends
    ]
    made = Op(op.kind, op.kind, ("a", "b"), ("y",), attributes)
    return Graph.build(op.kind, tensors, [made], ["a", "b"], ["y"])


def all_attributes(spec: Form[Any]) -> Iterator[Attributes]:
    """Those of a sample with every activation and relation in turn, as TFLite rounds."""
    given = spec.sample(np.random.default_rng(0)).ops[0].attributes
    names = [
        entry.name
        for entry in fields(given)
        if isinstance(getattr(given, entry.name), Enum)
        and not isinstance(getattr(given, entry.name), Rounding)
    ]
    choices = [list(type(getattr(given, name))) for name in names]
    for chosen in product(*choices):
        changes: dict[str, Any] = dict(zip(names, chosen, strict=True))
        yield replace(given, **changes)


FLOAT_PAIRS = sorted(kind for kind, spec in forms().items() if of_two(spec, DType.FLOAT32))


def equal_bits(got: NDArray[Any], want: NDArray[Any]) -> NDArray[np.bool_]:
    """Place by place; the sign of a zero counts, and one NaN is as good as another."""
    if got.dtype != np.float32:
        return np.asarray(got == want)
    same = (got == want) & (np.signbit(got) == np.signbit(want))
    return np.asarray(same | (np.isnan(got) & np.isnan(want)))
